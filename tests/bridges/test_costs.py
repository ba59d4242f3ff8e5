"""The cost of recording, by the source of ranges: measured when attaching, reported exactly.

The nanoseconds depend on the machine, so the tests compare them only with the recorder's own part.
"""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

import opscope
from opscope.bridges import numpy as numpy_bridge
from opscope.bridges import torch as torch_bridge
from opscope.host.host import Host
from opscope.record import recorder
from opscope.segments.dictionary import Dictionary
from opscope.segments.segment import COLUMNS, Segment, read_header, read_segment

from .torch_observed import TIMEOUT_S, observing

SAMPLES = COLUMNS.index("sample_count")


def _segment(directory: Path) -> Segment:
    (path,) = directory.glob("*.seg")
    raw = path.read_bytes()

    def read(offset: int, size: int) -> bytes:
        return raw[offset : offset + size]

    return read_segment(read, read_header(read), Dictionary())


def _extra_costs_ps(segment: Segment) -> dict[str, int]:
    """By operator; 0 for those that cost no more than the recorder's own part."""
    dictionary = segment.dictionary
    return {
        name: dictionary.extra_costs_ps.get(number, 0) for number, name in dictionary.ops.items()
    }


def _summed_ns(segment: Segment) -> int:
    """Samples times cost, row by row, and what is in no row; as dear as it is in this program."""
    extras = segment.dictionary.extra_costs_ps
    own = segment.header.record_cost_ps
    rows = zip(segment.rows.keys.tolist(), segment.rows.values[:, SAMPLES].tolist(), strict=True)
    ps = sum(samples * (own + extras.get(key & 0xFFFFFFFF, 0)) for key, samples in rows)
    header = segment.header
    ps += header.uncounted_cost_ps
    return int(ps) * (header.cost_factor_ppm or 10**6) // 10**6 // 1000


@pytest.fixture(autouse=True)
def stopped() -> Iterator[None]:
    yield
    numpy_bridge.detach()
    torch_bridge.detach()
    if recorder.is_running():
        recorder.stop(discard=True)


@pytest.mark.parametrize("attach_first", [True, False])
def test_ranges_cost_by_whose_they_are(tmp_path: Path, attach_first: bool) -> None:
    a, b = np.ones(3), torch.ones(3)
    if attach_first:
        torch_bridge.attach()
        numpy_bridge.attach()
    recorder.start(str(tmp_path))
    if not attach_first:
        torch_bridge.attach()
        numpy_bridge.attach()
    before = _segment(tmp_path)
    assert before.rows.values[:, SAMPLES].sum() == 0  # the trial is not counted
    assert before.overhead_ns == 0
    for _ in range(10):
        np.add(a, a)
        np.add.reduce(a)
        np.dot(a, a)
        a[a > 0]
        torch.add(b, b)
        with torch.profiler.record_function("block of PyTorch's"):
            pass
        with opscope.record_function("block"):
            pass
    recorder.stop()

    segment = _segment(tmp_path)
    own, extras = segment.header.record_cost_ps, _extra_costs_ps(segment)
    assert own > 0
    for op in ("numpy::add", "numpy::add.reduce", "numpy::dot", "numpy::getitem_advanced"):
        assert 0 < extras[op] == extras["numpy::add"] < 20_000_000
    for op in ("aten::add", "block of PyTorch's"):
        assert extras[op] == extras["aten::add"]
        assert 1.2 < (own + extras[op]) / own < 60
    assert 1.2 < (own + extras["block"]) / own < 1000
    assert segment.overhead_ns == _summed_ns(segment)


KILLED = """
import os, signal
import torch
b = torch.ones(3)
for _ in range(1000):
    b + b
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_agent_tells_what_a_killed_program_of_pytorch_paid(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED], env=observing(tmp_path, {}), timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == -signal.SIGKILL
    segment = _segment(tmp_path / "segments")
    extra = _extra_costs_ps(segment)["aten::add"]
    assert extra > 0
    health = Host([str(tmp_path / "segments")], consume=False).collect().health
    assert health.overhead_ns == _summed_ns(segment)
    assert health.overhead_ns > 1000 * (segment.header.record_cost_ps + extra) // 1000
