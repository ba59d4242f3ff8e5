"""A DataLoader's workers are observed like their consumer: own segments, phase data."""

import sys
from collections import Counter

import pytest

from tests.e2e.observed_host import ObservedHost

PROGRAM = """
import os
import sys
from opscope import tensor as ot
from opscope.tensor import data

class Rows(data.Dataset):
    def __len__(self):
        return 12
    def __getitem__(self, index):
        return ot.full((2,), float(index)) * 2

if __name__ == "__main__":
    loader = data.DataLoader(Rows(), batch_size=3, num_workers=2,
                             multiprocessing_context=sys.argv[1])
    batches = iter(loader)
    total = sum(next(batches).sum().item() for _ in range(4))
    segments = [name for name in os.listdir(os.environ["OPSCOPE_DIR"]) if name.endswith(".seg")]
    assert next(batches, None) is None
    print(total, len(segments))
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_waits_and_fetches_are_counted_in_three_segments(host: ObservedHost, method: str) -> None:
    script = host.directory.parent / "program.py"
    script.write_text(PROGRAM)
    assert host.run(sys.executable, str(script), method) == "264.0 3\n"
    calls = host.calls()
    assert calls["data::next"] == 5
    assert calls["data::fetch"] == calls["core::stack"] == 4
    assert calls["core::full"] == calls["core::mul"] == 12
    assert calls["core::sum"] == 4
    phases: dict[str, Counter[str]] = {}
    for sample in host.samples():
        if sample.name == "opscope_op_duration_seconds_count":
            phases.setdefault(sample.labels["op"], Counter())[sample.labels["phase"]] += 1
    # What a worker computes is data, not forward.
    for name in ("data::next", "data::fetch", "core::stack", "core::mul"):
        assert list(phases[name]) == ["data"], name
    assert list(phases["core::sum"]) == ["forward"]
