"""PyTorch sets a thread's state around each node of a backward only if it is another one."""

from typing import Any

import pytest
import torch

from opscope.bridges import torch as bridge

from .torch_observed import pointers_in_library, profiled_calls, profiler

pytestmark = pytest.mark.usefixtures("torch_attached")

PART = "backward without repeated states"


def pointers_to_the_function() -> int:
    name = "_ZN2at24set_record_function_tls_ERKNS_17RecordFunctionTLSE"
    return pointers_in_library("libtorch_cpu.so", name)


def negate(x: torch.Tensor) -> torch.Tensor:
    return x.neg()


def negate_in_task(x: torch.Tensor) -> torch.Tensor:
    """On another thread, which inherits this thread's state."""
    done: torch.Tensor = torch.jit.wait(torch.jit.fork(negate, x))
    return done


def profiled() -> int:
    """How many of two tasks' operators torch.profiler sees. It has callbacks of single threads. (It
    may stop before a task's own range has ended, which is on the task's thread.)"""
    script: Any = torch.jit.script
    scripted, x = script(negate_in_task), torch.ones(1)
    scripted(x)
    with profiler() as seen:
        scripted(x)
        scripted(x)
    scripted(x)
    return profiled_calls(seen)["aten::neg"]


def test_the_function_is_not_called_while_the_bridge_is_attached() -> None:
    assert PART not in bridge.facts().get("torch.without", "")
    attached = pointers_to_the_function()
    bridge.detach()
    try:
        assert pointers_to_the_function() == attached + 1
    finally:
        bridge.attach()
    assert pointers_to_the_function() == attached


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
def test_another_thread_inherits_the_profiler_s_callbacks_as_without_the_bridge() -> None:
    attached = profiled()
    bridge.detach()
    try:
        assert attached == profiled() == 2
    finally:
        bridge.attach()
