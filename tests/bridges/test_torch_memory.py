"""The bytes that PyTorch's operators allocate are those that torch.profiler counts."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import opscope
from opscope.bridges import torch as bridge
from opscope.host.host import Host
from opscope.record import recorder
from opscope.timeline.averages import Average

from .torch_observed import pointers_in_library, profiler

pytestmark = pytest.mark.usefixtures("torch_attached", "without_onednn")

WEIGHT = torch.randn(64, 32)
INPUT = torch.randn(16, 32)


@pytest.fixture
def without_onednn() -> Iterator[None]:
    """On aarch64 it allocates and frees memory within a product; the profiler nets them."""
    was_enabled = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    yield
    torch._C._set_mkldnn_enabled(was_enabled)


def forward() -> list[torch.Tensor]:
    """Operators that keep all that they allocate."""
    with torch.no_grad():
        hidden = torch.nn.functional.linear(INPUT, WEIGHT).relu()
        return [hidden, torch.cat([hidden, hidden]), hidden.clone(), hidden @ WEIGHT, hidden.t()]


def train() -> list[torch.Tensor]:
    """Forward and backward, which free most of it again."""
    layer = torch.nn.Linear(32, 64)
    loss = layer(INPUT).softmax(1).square().sum()
    loss.backward()
    return [loss, layer.weight]


def in_profiler(run: Callable[[], object]) -> tuple[int, dict[str, int]]:
    """All that was allocated; what each operator allocated less what it freed."""
    run()
    with profiler(memory=True) as profiled:
        kept = run()
    del kept
    results: Any = profiled.profiler
    changes = [
        event.nbytes() for event in results.kineto_results.events() if event.name() == "[memory]"
    ]
    averages = {event.key: event.self_cpu_memory_usage for event in profiled.key_averages()}
    return sum(change for change in changes if change > 0), averages


def in_profile(run: Callable[[], object]) -> dict[str, Average]:
    with opscope.profile() as profiled, opscope.record_function("all"):
        kept = run()
    del kept
    return {row.key: row for row in profiled.key_averages()}


def test_operators_allocate_what_the_profiler_says() -> None:
    _, averages = in_profiler(forward)
    rows = in_profile(forward)
    assert rows["aten::cat"].self_cpu_memory_usage == 2 * 16 * 64 * 4
    assert rows["aten::t"].self_cpu_memory_usage == 0  # known: it allocates nothing
    found = {name: row.self_cpu_memory_usage for name, row in rows.items() if name != "all"}
    assert found == {name: averages[name] for name in found}


def test_what_is_freed_is_not_subtracted() -> None:
    total, averages = in_profiler(train)
    rows = in_profile(train)
    assert rows["all"].cpu_memory_usage == total
    assert sum(averages.values()) < total


def test_the_recorder_has_the_same_bytes(tmp_path: Path) -> None:
    _, averages = in_profiler(forward)
    recorder.start(str(tmp_path))
    for _ in range(3):
        forward()
    recorder.stop()
    snapshot = Host([str(tmp_path)], consume=False, max_series=1000).collect()
    found = {key.op: int(each) for key, each in zip(snapshot.keys, snapshot.bytes, strict=True)}
    assert found == {name: 3 * averages[name] for name in found}
    assert found["aten::cat"] > 0


def test_an_allocation_that_fails_is_not_counted_and_raises_as_before() -> None:
    def fail() -> None:
        with pytest.raises(RuntimeError, match="allocate memory"):
            torch.empty(1 << 50)
        torch.empty(4)

    rows = in_profile(fail)
    assert rows["aten::empty"].count == 2
    assert rows["aten::empty"].self_cpu_memory_usage == 16


def test_a_detached_bridge_sees_no_allocation() -> None:
    seen = in_profile(lambda: torch.empty(4))["all"].cpu_memory_usage
    bridge.detach()
    with opscope.record_function("outside"):
        torch.empty(4)
    os.environ["OPSCOPE_BRIDGES"] = "none"
    try:
        unseen = in_profile(lambda: torch.empty(4))["all"].cpu_memory_usage
    finally:
        del os.environ["OPSCOPE_BRIDGES"]
    bridge.attach()
    again = in_profile(lambda: torch.empty(4))["all"].cpu_memory_usage
    assert (seen, unseen, again) == (16, None, 16)


def pointers_to_the_allocation() -> int:
    return pointers_in_library("libc10.so", "_ZN3c109alloc_cpuEm")


def test_pytorch_calls_its_allocation_itself_unless_operators_are_recorded() -> None:
    torch.empty(4)
    before = pointers_to_the_allocation()
    with opscope.profile():
        assert pointers_to_the_allocation() == before - 1
    assert pointers_to_the_allocation() == before


INTERPOSED = r"""
#include <stddef.h>
#include <stdlib.h>

void *_ZN3c109alloc_cpuEm(size_t bytes) /* c10::alloc_cpu(unsigned long) */
{
    return bytes != 0 ? aligned_alloc(64, (bytes + 63) / 64 * 64) : NULL;
}
"""

PROGRAM = """
import torch
import opscope
from opscope.bridges import torch as bridge

bridge.attach()
with opscope.profile() as profiled:
    kept = torch.ones(4)
rows = {row.key: row for row in profiled.key_averages()}
print(rows["aten::empty"].self_cpu_memory_usage, kept.sum().item())
print(bridge.facts()["torch.without"])
"""


def test_an_interposed_allocator_stays_and_the_part_says_so(tmp_path: Path) -> None:
    source, library = tmp_path / "interposed.c", tmp_path / "interposed.so"
    source.write_text(INTERPOSED)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    environ = {**os.environ, "LD_PRELOAD": str(library)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environ, capture_output=True, text=True, check=True
    )
    assert done.stdout == (
        "None 4.0\nallocated memory (its library calls another function in place of its own)\n"
    )
