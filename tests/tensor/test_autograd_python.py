"""Python code on the tape: hooks, retained gradients, other threads' exceptions, garbage."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import traceback
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import opscope
from opscope import tensor as ot
from opscope._native import lib

LARGE = 70_000  # elements; two such branches are walked on two threads


def leaf(*values: float) -> ot.Tensor:
    return ot.tensor([float(value) for value in values], requires_grad=True)


def grad_of(tensor: ot.Tensor) -> Any:
    assert tensor.grad is not None
    return tensor.grad.tolist()


def test_a_tensor_of_the_core_is_one_object() -> None:
    x = leaf(1, 2)
    (x * x).sum().backward()
    first = x.grad
    assert x.grad is first
    (x * x).sum().backward()
    assert x.grad is first
    given = ot.tensor([5.0, 6.0])
    x.grad = given
    assert x.grad is given
    x.grad = None
    assert x.grad is None
    weak = weakref.ref(given)
    del given
    assert weak() is None


# ---- hooks --------------------------------------------------------------------------------------


def test_hooks_run_in_order_and_what_they_return_goes_on() -> None:
    x = leaf(1, 2)
    seen: list[Any] = []
    y = x * 2
    y.register_hook(lambda gradient: seen.append(gradient.tolist()))
    y.register_hook(lambda gradient: gradient * 10)
    y.register_hook(lambda gradient: seen.append(gradient.tolist()))
    removed = y.register_hook(lambda gradient: gradient * 100)
    removed.remove()
    removed.remove()
    on_leaf = x.register_hook(lambda gradient: gradient + 1)
    y.sum().backward()
    assert seen == [[1, 1], [10, 10]]
    assert grad_of(x) == [21, 21]
    on_leaf.remove()
    with x.register_hook(lambda gradient: gradient * 0):
        (x * 2).sum().backward()
    (x * 2).sum().backward()
    assert grad_of(x) == [23, 23]


def test_hook_that_removes_itself_lets_the_others_run() -> None:
    x = leaf(1)
    calls: list[str] = []

    def once(gradient: ot.Tensor) -> None:
        calls.append("once")
        handle.remove()

    handle = x.register_hook(once)
    x.register_hook(lambda gradient: calls.append("always"))
    for _ in range(2):
        (x * x).sum().backward()
    assert calls == ["once", "always", "always"]


def test_hooks_want_a_tensor_that_requires_grad_and_give_a_gradient_of_its_shape() -> None:
    with pytest.raises(RuntimeError, match=r"register_hook: .* does not require grad"):
        ot.tensor([1.0]).register_hook(lambda gradient: None)
    with pytest.raises(TypeError, match="callable"):
        leaf(1).register_hook(5)  # type: ignore[arg-type]
    x = leaf(1, 2)
    with (
        x.register_hook(lambda gradient: gradient.sum()),
        pytest.raises(RuntimeError, match=r"\[2\]"),
    ):
        (x * x).sum().backward()
    no_gradient: Any = 3
    with x.register_hook(lambda _: no_gradient), pytest.raises(TypeError, match="hook"):
        (x * x).sum().backward()


def test_retain_grad_keeps_the_gradient_of_a_result() -> None:
    x = leaf(1, 2)
    y = x * 2
    assert [y.retains_grad, y.retain_grad(), y.retains_grad] == [False, None, True]  # type: ignore[func-returns-value]
    assert y.grad is None
    (y * y).sum().backward(retain_graph=True)
    assert grad_of(y) == [4, 8]
    (y * y).sum().backward()
    assert grad_of(y) == [8, 16]
    x.retain_grad()
    assert not x.retains_grad
    with pytest.raises(RuntimeError, match="does not require grad"):
        ot.tensor([1.0]).retain_grad()


# ---- modes --------------------------------------------------------------------------------------


def test_set_grad_enabled_holds_at_once_and_as_a_block() -> None:
    x = leaf(1)
    seen: list[bool] = []
    with ot.set_grad_enabled(False):
        seen.append((x * 1).requires_grad)
        with ot.set_grad_enabled(True):
            seen.append((x * 1).requires_grad)
    ot.set_grad_enabled(False)
    seen.append((x * 1).requires_grad)
    ot.set_grad_enabled(True)
    assert seen == [False, True, False]

    @ot.set_grad_enabled(False)
    def inside() -> bool:
        return (x * 1).requires_grad

    assert ot.is_grad_enabled()
    assert not inside()


def test_forked_task_takes_grad_mode_along_and_gives_history_back() -> None:
    x = leaf(3)
    y = opscope.wait(opscope.fork(lambda tensor: tensor * tensor, x))
    y.backward()
    assert grad_of(x) == [6]
    with ot.no_grad():
        future = opscope.fork(lambda: (ot.is_grad_enabled(), (x * x).requires_grad))
    assert opscope.wait(future) == (False, False)
    assert ot.is_grad_enabled()
    with pytest.raises(RuntimeError, match="core::add"):
        opscope.wait(opscope.fork(lambda: ot.zeros(2, 3) + ot.zeros(4)))


def test_backward_on_another_thread_than_forward() -> None:
    x = leaf(2)
    y = (x * x).sum()
    thread = threading.Thread(target=y.backward)
    thread.start()
    thread.join()
    assert grad_of(x) == [4]


# ---- gradients of gradients ---------------------------------------------------------------------


def test_create_graph_keeps_the_graph_and_accumulates_on_it() -> None:
    x = leaf(3)
    (x * x * x).sum().backward(create_graph=True)
    assert x.grad is not None and x.grad.requires_grad
    first, x.grad = x.grad, None
    first.sum().backward()
    assert grad_of(x) == [18]
    (twice,) = ot.grad(ot.grad((x * x * x).sum(), x, create_graph=True)[0], x, retain_graph=False)  # type: ignore[arg-type]
    assert twice is not None and twice.tolist() == [18]


class Exponential(ot.Function):
    @staticmethod
    def forward(ctx: Any, x: ot.Tensor) -> ot.Tensor:
        result = x.exp()
        ctx.save_for_backward(result, None)
        ctx.kept = result
        return result

    @staticmethod
    def backward(ctx: Any, gradient: ot.Tensor) -> ot.Tensor:
        result, nothing = ctx.saved_tensors
        assert nothing is None
        product: ot.Tensor = gradient * result
        return product


def test_custom_function_is_differentiated_twice_through_its_saved_output() -> None:
    x = leaf(0.5)
    (first,) = ot.grad(Exponential.apply(x).sum(), x, create_graph=True)
    assert first is not None
    (second,) = ot.grad(first.sum(), x)
    assert second is not None
    assert second.tolist() == pytest.approx(first.tolist())


def test_missing_gradients_come_as_zeros_unless_refused() -> None:
    seen: list[Any] = []

    class Pair(ot.Function):
        @staticmethod
        def forward(ctx: Any, x: ot.Tensor, materialize: bool) -> Any:
            ctx.set_materialize_grads(materialize)
            return x * 2, x.sum(), "no tensor"

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            seen.append([each if each is None else each.tolist() for each in gradients])
            return gradients[0], None

    for materialize in (True, False):
        first, _, text = Pair.apply(leaf(1, 2), materialize)
        assert text == "no tensor"
        first.sum().backward()
    assert seen == [[[1, 1], 0, None], [[1, 1], None, None]]


# ---- exceptions ---------------------------------------------------------------------------------


class Raises(ot.Function):
    @staticmethod
    def forward(ctx: Any, x: ot.Tensor) -> ot.Tensor:
        return x * 1

    @staticmethod
    def backward(ctx: Any, gradient: ot.Tensor) -> Any:
        raise LookupError("mine", threading.get_ident())


class Waits(ot.Function):
    """Its backward waits until another thread runs its own backward."""

    barrier = threading.Barrier(2)
    raising = False

    @staticmethod
    def forward(ctx: Any, x: ot.Tensor, name: str) -> ot.Tensor:
        ctx.name = name
        return x * 1

    @staticmethod
    def backward(ctx: Any, gradient: ot.Tensor) -> Any:
        Waits.barrier.wait(300)
        if Waits.raising and threading.get_ident() != Waits.caller:
            raise LookupError("elsewhere", ctx.name)
        return gradient, None

    caller = 0


def test_branches_meet_on_two_threads_and_the_exception_comes_back() -> None:
    assert lib.opscope_pool_set_threads(2) == 0
    Waits.caller = threading.get_ident()
    for raising in (False, True):
        Waits.raising = raising
        x = ot.tensor([1.0] * LARGE, requires_grad=True)
        loss = (Waits.apply(x, "a") + Waits.apply(x, "b")).sum()
        with opscope.debug_info(model_id="m"):
            if not raising:
                loss.backward()
                assert grad_of(x)[:2] == [2, 2]
                continue
            with pytest.raises(LookupError) as caught:
                loss.backward()
        assert caught.value.args[0] == "elsewhere"
        frames = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
        assert frames[0] == "test_branches_meet_on_two_threads_and_the_exception_comes_back"
        assert frames[-1] == "backward"
        assert caught.value.__context__ is None


def test_exception_leaves_a_graph_that_says_what_is_missing() -> None:
    x = leaf(1)
    y = Raises.apply(x)
    loss = (y * y).sum()
    with pytest.raises(LookupError, match="mine"):
        loss.backward()
    with pytest.raises(RuntimeError, match="core::SumBackward: backward a second time"):
        loss.backward()
    assert x.grad is None
    assert (x * x).sum().item() == 1


def test_backward_within_backward() -> None:
    class Inner(ot.Function):
        @staticmethod
        def forward(ctx: Any, x: ot.Tensor, depth: int) -> ot.Tensor:
            ctx.save_for_backward(x)
            ctx.depth = depth
            return x * x

        @staticmethod
        def backward(ctx: Any, gradient: ot.Tensor) -> Any:
            (saved,) = ctx.saved_tensors
            inner = saved.detach().requires_grad_()
            with ot.enable_grad():
                y = Inner.apply(inner, ctx.depth - 1) if ctx.depth else inner * inner
                y.sum().backward()
            return gradient * inner.grad, None

    x = leaf(3)
    Inner.apply(x, 20).sum().backward()
    assert grad_of(x) == [6]


# ---- garbage ------------------------------------------------------------------------------------


def is_collected(make: Callable[[], Any]) -> bool:
    """Whether the object that `make` weakly references is freed with its last reference."""
    gc.collect()
    weak = make()
    gc.collect()
    return weak() is None


class Token:
    pass


def test_hook_that_refers_to_its_tensor_is_collected() -> None:
    def on_leaf() -> Any:
        x, token = leaf(1), Token()
        x.register_hook(lambda gradient: (x, token)[0].sum())
        return weakref.ref(token)

    def on_result() -> Any:
        token = Token()
        y = leaf(1) * 2
        y.register_hook(lambda gradient: (y, token)[0].sum())
        return weakref.ref(token)

    assert is_collected(on_leaf)
    assert is_collected(on_result)


def test_context_that_keeps_what_forward_returned_is_freed_without_the_collector() -> None:
    gc.disable()
    try:
        y = Exponential.apply(leaf(1))
        weak = weakref.ref(y)
        del y
        assert weak() is None
    finally:
        gc.enable()


def test_context_that_refers_to_what_apply_returned_is_collected() -> None:
    class Holds(ot.Function):
        @staticmethod
        def forward(ctx: Any, x: ot.Tensor, holder: list[Any], token: Token) -> ot.Tensor:
            ctx.holder, ctx.token = holder, token
            return x * 2

        @staticmethod
        def backward(ctx: Any, gradient: ot.Tensor) -> Any:
            return gradient, None, None

    def make() -> Any:
        holder: list[Any] = []
        token = Token()
        holder.append(Holds.apply(leaf(1), holder, token))
        return weakref.ref(token)

    assert is_collected(make)


def resident_pages() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1])


def growth() -> tuple[int, int]:
    """The number of pages and objects that 8000 steps leave behind."""
    x, w = leaf(1, 2, 3), leaf(2, 3, 4)

    def steps(count: int) -> None:
        for _ in range(count):
            y = x * w
            y.register_hook(lambda gradient: None)
            y[0].mul_(2)
            (Exponential.apply(y) + w).sum().backward()

    steps(1000)
    gc.collect()
    pages, objects = resident_pages(), len(gc.get_objects())
    steps(8000)
    gc.collect()
    return resident_pages() - pages, len(gc.get_objects()) - objects


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_operators_with_grad_leave_memory_where_it_was() -> None:
    # In a separate process, whose memory nothing else changes.
    program = f"from {__name__} import growth; print(*growth())"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    pages, objects = map(int, done.stdout.split())
    assert pages < 128
    assert objects < 100


def test_a_long_chain_is_walked_and_freed() -> None:
    x = leaf(1)
    y = x
    for _ in range(100_000):
        y = y + 1
    y.backward()
    del y
    assert grad_of(x) == [1]
