"""PyTorch sets a thread's state around each node of a backward only if it is another one."""

from pathlib import Path

import pytest

from opscope.bridges import torch as bridge

from .torch_observed import pointers_in_library, unobserved_fork

pytestmark = pytest.mark.usefixtures("torch_attached")

PART = "backward without repeated states"


def pointers_to_the_function() -> int:
    name = "_ZN2at24set_record_function_tls_ERKNS_17RecordFunctionTLSE"
    return pointers_in_library("libtorch_cpu.so", name)


# A task's own range ends on the thread of tasks, after the task has told that it is done. If the
# profiler has stopped then, PyTorch writes into its freed memory. So there is one such thread, and
# before the profiler stops, it has begun a task of a thread without profiler.
PROFILED = """
import threading
import torch
from opscope.bridges import torch as bridge
from torch.profiler import ProfilerActivity, profile

torch.set_num_interop_threads(1)

def negate(x):
    # type: (Tensor) -> Tensor
    return x.neg()

@torch.jit.script
def negate_in_task(x):
    # type: (Tensor) -> Tensor
    return torch.jit.wait(torch.jit.fork(negate, x))

def profiled():
    x = torch.ones(1)
    negate_in_task(x)
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        negate_in_task(x)
        negate_in_task(x)
        last = threading.Thread(target=negate_in_task, args=(x,))
        last.start()
        last.join()
    negate_in_task(x)
    return sum(event.count for event in seen.key_averages() if event.key == "aten::neg")

bridge.attach()
attached = profiled()
bridge.detach()
print([attached, profiled()])
"""


def test_the_function_is_not_called_while_the_bridge_is_attached() -> None:
    assert PART not in bridge.facts().get("torch.without", "")
    attached = pointers_to_the_function()
    bridge.detach()
    try:
        assert pointers_to_the_function() == attached + 1
    finally:
        bridge.attach()
    assert pointers_to_the_function() == attached


def test_another_thread_inherits_the_profiler_s_callbacks_as_without_the_bridge(
    tmp_path: Path,
) -> None:
    """torch.profiler has callbacks of single threads, and a task inherits those of its own."""
    assert unobserved_fork(tmp_path, PROFILED).splitlines()[-1] == "[2, 2]"
