"""Memory on the agent's page: the operators' bytes add up to the allocator's."""

import sys
from collections import Counter

from tests.e2e.observed_host import ObservedHost

# All within one range, so that no memory is allocated outside of operators. Prints the
# allocator's counts from beginning to end.
PROGRAM = """
import os
import numpy
import opscope
from opscope import tensor as ot

def train(steps):
    w = ot.rand([64, 32]).requires_grad_()
    x = ot.rand([128, 64])
    for _ in range(steps):
        h = (x @ w).relu()
        loss = ((h * h).mean() + h.sum() * 1e-3) / 3
        loss.backward()
        w.grad = None

def allocated():
    return ot.memory_stats("cpu")["allocated_bytes.all.allocated"]

with opscope.record_function("program"):
    before = allocated()
    train(5)
    assert before == 0
    child = os.fork()
    if child == 0:
        forked = allocated()
        with opscope.record_function("child"):
            train(3)
        print(allocated() - forked, flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    kept = ot.zeros([1000, 1000])
    print(allocated())
"""


def by_op(host: ObservedHost) -> Counter[str]:
    found: Counter[str] = Counter()
    for sample in host.samples():
        if sample.name == "opscope_op_memory_allocated_bytes_total":
            found[sample.labels["op"]] += int(sample.value)
    return found


def test_bytes_of_operators_add_up_to_what_the_allocator_gave_out(host: ObservedHost) -> None:
    child, parent = map(int, host.run(sys.executable, "-c", PROGRAM).split())
    calls = host.calls()
    found = by_op(host)
    assert found.total() == child + parent
    assert found["core::zeros"] == 4_000_000
    assert found["core::mm"] + found["core::matmul"] >= 8 * 128 * 32 * 4
    assert calls["program"] == calls["child"] == 1
    (allocated,) = (
        int(sample.value)
        for sample in host.samples()
        if sample.name == "opscope_memory_allocated_bytes_total"
        and sample.labels["allocator"] == "cpu"
    )
    assert allocated == child + parent
    # The processes have ended, and their memory is free.
    assert not any(sample.name == "opscope_memory_live_bytes" for sample in host.samples())
