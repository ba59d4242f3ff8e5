"""Labels of `opscope.debug_info` reach PyTorch's operators on all threads."""

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

import opscope

from .torch_observed import profiler, unobserved_fork

pytestmark = pytest.mark.usefixtures("torch_attached")


def _labels(name: str) -> Counter[tuple[str | None, bool]]:
    """For each range of that operator from now on: its model_id, and whether it ran on this
    thread."""
    seen: Counter[tuple[str | None, bool]] = Counter()
    here = threading.get_ident()

    def start(fn: opscope.RecordFunction) -> None:
        if fn.name == name:
            seen[fn.debug_info.get("model_id"), threading.get_ident() == here] += 1

    opscope.add_global_callback(start)
    return seen


@pytest.fixture(scope="module")
def forked() -> Any:
    """A scripted function that runs torch.tanh 10 times in each of 4 forked tasks."""
    source = """
def heavy(x):
    # type: (Tensor) -> Tensor
    for _ in range(10):
        x = torch.tanh(x)
    return x

def fan_out(x):
    # type: (Tensor) -> Tensor
    a = torch.jit.fork(heavy, x)
    b = torch.jit.fork(heavy, x)
    c = torch.jit.fork(heavy, x)
    d = torch.jit.fork(heavy, x)
    return torch.jit.wait(a) + torch.jit.wait(b) + torch.jit.wait(c) + torch.jit.wait(d)
"""
    return torch.jit.CompilationUnit(source).fan_out


def test_forward_and_backward_have_the_labels_of_their_thread() -> None:
    x = torch.ones(3, requires_grad=True)
    forward, backward = _labels("aten::tanh"), _labels("TanhBackward0")
    with opscope.debug_info(model_id="a"):
        y = x.tanh()
    with opscope.debug_info(model_id="b"):
        torch.autograd.backward(y.sum())
    x.tanh()
    assert forward == {("a", True): 1, (None, True): 1}
    assert backward == {("b", True): 1}


def test_forked_tasks_have_the_labels_they_were_forked_with(forked: Any) -> None:
    seen = _labels("aten::tanh")
    x = torch.ones(64)
    forked(x)
    with opscope.debug_info(model_id="a"):
        forked(x)
        with opscope.debug_info(model_id="b"):
            forked(x)
        with opscope.debug_info(other="c"):
            forked(x)
    forked(x)
    labels: Counter[str | None] = Counter()
    for (label, _), count in seen.items():
        labels[label] += count
    assert labels == {None: 80, "a": 80, "b": 40}
    assert any(not is_here for _, is_here in seen), "tasks ran on threads of their own"


def test_a_masked_label_is_masked_where_pytorch_takes_the_work(forked: Any) -> None:
    seen, backward = _labels("aten::tanh"), _labels("TanhBackward0")
    with opscope.debug_info(model_id="a", other="b"):
        with opscope.debug_info(model_id=None):
            forked(torch.ones(64))
            x = torch.ones(3, requires_grad=True)
            torch.autograd.backward(x.tanh().sum())
        torch.autograd.backward(x.tanh().sum())
    assert sum(count for (label, _), count in seen.items() if label is None) == 41
    assert backward == {(None, True): 1, ("a", True): 1}


def test_the_threads_of_tasks_have_their_own_labels_back(forked: Any) -> None:
    seen = _labels("aten::tanh")
    for _ in range(20):
        with opscope.debug_info(model_id="a"):
            forked(torch.ones(8))
        forked(torch.ones(8))
    labels: Counter[str | None] = Counter()
    for (label, _), count in seen.items():
        labels[label] += count
    assert labels == {"a": 800, None: 800}


def test_a_backward_within_a_backward_has_the_labels() -> None:
    # PyTorch runs deeply nested nodes on its own threads.
    class Deep(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor, depth: int) -> torch.Tensor:
            ctx.depth = depth
            return x.clone()

        @staticmethod
        def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
            if ctx.depth > 0:
                with torch.enable_grad():
                    x = torch.ones(1, requires_grad=True)
                    torch.autograd.backward(Deep.apply(x, ctx.depth - 1).exp().sum())
            return gradients[0], None

    seen = _labels("ExpBackward0")
    with opscope.debug_info(model_id="a"):
        x = torch.ones(1, requires_grad=True)
        torch.autograd.backward(Deep.apply(x, 100).exp().sum())
    assert Counter({label: 0 for label, _ in seen}) == {"a": 0}
    assert sum(seen.values()) == 101


def test_a_profiler_that_starts_or_stops_within_a_block_works() -> None:
    seen = _labels("aten::tanh")
    x = torch.ones(2)
    for _ in range(3):
        first = profiler()
        with opscope.debug_info(model_id="a"):
            first.start()
            x.tanh()
        x.tanh()
        with opscope.debug_info(model_id="b"):
            x.tanh()
            first.stop()
            x.tanh()
        found = {event.key: event.count for event in first.key_averages()}
        assert found["aten::tanh"] == 3
    assert seen == {("a", True): 3, (None, True): 3, ("b", True): 6}


@pytest.mark.parametrize("is_within", [False, True])
def test_labels_of_a_block_within_a_profiler_reach_backward(is_within: bool) -> None:
    seen = _labels("ExpBackward0")
    x = torch.ones(8, requires_grad=True)

    def work() -> None:
        torch.autograd.backward(x.exp().sum())

    with opscope.debug_info(model_id="around"):
        running = profiler()
        if is_within:
            running.start()
        with opscope.debug_info(model_id="a"):
            if not is_within:
                running.start()
            work()
            with opscope.debug_info(model_id="b"):
                work()
                running.step()
            work()
        work()
        running.stop()
    work()
    found = {event.key: event.count for event in running.key_averages()}
    assert found["ExpBackward0"] == 4
    assert seen == {("a", True): 2, ("b", True): 1, ("around", True): 1, (None, True): 1}


# In a process of its own, which ends before its profiler does: in PyTorch 2.13 a profiler that ends
# right after tasks may crash by itself.
FORKED_WITHIN_A_PROFILER = """
import os, sys
from collections import Counter
import opscope, torch
from opscope.bridges import torch as bridge
from torch.profiler import ProfilerActivity, profile

def heavy(x):
    # type: (Tensor) -> Tensor
    for _ in range(10):
        x = torch.tanh(x)
    return x

@torch.jit.script
def fan_out(x):
    # type: (Tensor) -> Tensor
    a = torch.jit.fork(heavy, x)
    b = torch.jit.fork(heavy, x)
    return torch.jit.wait(a) + torch.jit.wait(b)

bridge.attach()
seen = Counter()
def start(fn):
    if fn.name == "aten::tanh":
        seen[fn.debug_info.get("model_id")] += 1
opscope.add_global_callback(start)
x = torch.ones(8)
with opscope.debug_info(model_id="around"):
    profile(activities=[ProfilerActivity.CPU]).start()
    fan_out(x)
    with opscope.debug_info(model_id="a"):
        fan_out(x)
        with opscope.debug_info(model_id="b"):
            fan_out(x)
        fan_out(x)
fan_out(x)
print(dict(seen))
sys.stdout.flush()
os._exit(0)
"""


@pytest.mark.filterwarnings("ignore:.torch.jit")
def test_labels_of_a_block_within_a_profiler_reach_forked_tasks(tmp_path: Path) -> None:
    output = unobserved_fork(tmp_path, FORKED_WITHIN_A_PROFILER)
    assert eval(output.splitlines()[-1]) == {"around": 20, "a": 40, "b": 20, None: 20}


def test_labels_that_change_within_a_profiled_backward_are_its_own() -> None:
    seen, x = _labels("aten::sigmoid"), torch.ones(2, requires_grad=True)

    def hook(gradient: torch.Tensor) -> None:
        gradient.sigmoid()
        with opscope.debug_info(model_id="hook"):
            gradient.sigmoid()
        gradient.sigmoid()

    y = x.exp()
    y.register_hook(hook)
    with profiler(), opscope.debug_info(model_id="a"):
        torch.autograd.backward(y.sum())
        x.sigmoid()
    x.sigmoid()
    assert seen == {("a", True): 3, ("hook", True): 1, (None, True): 1}


def test_a_task_run_by_the_thread_that_waits_leaves_that_threads_labels(forked: Any) -> None:
    seen = _labels("aten::sigmoid")
    for _ in range(20):
        with opscope.debug_info(model_id="a"):
            forked(torch.ones(8))
        torch.ones(1).sigmoid()
        with opscope.debug_info(model_id="b"):
            forked(torch.ones(8))
            torch.ones(1).sigmoid()
    assert seen == {(None, True): 20, ("b", True): 20}


def test_labels_on_many_threads_come_and_go() -> None:
    seen = _labels("aten::tanh")

    def work(number: int) -> None:
        for turn in range(50):
            with opscope.debug_info(model_id=f"{number}.{turn % 5}"):
                torch.ones(1).tanh()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {(f"{n}.{t}", False): 10 for n in range(8) for t in range(5)}
