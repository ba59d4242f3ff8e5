"""Gradients in Python: leaves, modes, custom functions, ranges, errors."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import opscope
from opscope import tensor as ot


def leaf(*values: float) -> ot.Tensor:
    return ot.tensor([float(value) for value in values], requires_grad=True)


def grad_of(tensor: ot.Tensor) -> Any:
    assert tensor.grad is not None
    return tensor.grad.tolist()


def test_backward_accumulates_into_leaves() -> None:
    x = leaf(2, 3)
    (x * x).sum().backward()
    assert grad_of(x) == [4, 6]
    (x * 2).sum().backward()
    assert grad_of(x) == [6, 8]
    x.grad = None
    assert x.grad is None


def test_result_knows_the_node_that_made_it() -> None:
    x = leaf(1)
    y = x * x + x
    assert x.is_leaf and x.grad_fn is None
    assert not y.is_leaf and y.requires_grad
    assert y.grad_fn is not None
    assert y.grad_fn.name() == "core::AddBackward"
    behind = y.grad_fn.next_functions[0]
    assert behind is not None and behind.name() == "core::MulBackward"


def test_no_grad_nests_and_restores() -> None:
    x = leaf(1)
    results = []
    with ot.no_grad():
        results.append(x + 1)
        with ot.enable_grad():
            results.append(x + 1)
        results.append(x + 1)
    results.append(x + 1)
    assert [result.requires_grad for result in results] == [False, True, False, True]

    @ot.no_grad()
    def inside(tensor: ot.Tensor) -> ot.Tensor:
        return tensor + 1

    assert not inside(x).requires_grad
    with pytest.raises(KeyError), ot.no_grad():
        raise KeyError
    assert ot.is_grad_enabled()


def test_grad_mode_belongs_to_the_thread() -> None:
    seen: list[bool] = []
    with ot.no_grad():
        thread = threading.Thread(target=lambda: seen.append(ot.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_detach_shares_memory_off_the_tape() -> None:
    x = leaf(1, 2)
    y = x.detach()
    assert not y.requires_grad
    assert y.data_ptr() == x.data_ptr()


def test_grad_returns_gradients_and_touches_no_leaf() -> None:
    x, unused = leaf(3), leaf(1)
    y = x * x
    (found,) = ot.grad(y, x)
    assert found is not None and found.tolist() == [6]
    assert x.grad is None
    assert ot.grad(x * x, [x, unused], allow_unused=True)[1] is None
    with pytest.raises(RuntimeError):
        ot.grad(x * x, [x, unused])


def test_tape_can_be_walked_twice_only_where_retained() -> None:
    x = leaf(2)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert grad_of(x) == [8]
    with pytest.raises(RuntimeError, match="retain_graph"):
        y.backward()


def test_backward_of_many_elements_needs_a_gradient() -> None:
    x = leaf(1, 2)
    with pytest.raises(RuntimeError, match="gradient"):
        (x * x).backward()
    (x * x).backward(ot.tensor([1.0, 10.0]))
    assert grad_of(x) == [2, 40]


def test_backward_without_a_tape_is_refused() -> None:
    with pytest.raises(RuntimeError, match="grad"):
        ot.tensor([1.0]).backward()


def test_integers_cannot_require_grad() -> None:
    with pytest.raises((RuntimeError, TypeError), match="int64"):
        ot.tensor([1]).requires_grad_()


def test_leaf_that_requires_grad_is_not_written_in_place() -> None:
    x = leaf(1)
    with pytest.raises(RuntimeError, match=r"leaf"):
        x += 1
    with ot.no_grad():
        x += 1
    assert x.tolist() == [2]


def test_saved_tensor_changed_in_place_is_named() -> None:
    x = leaf(1, 2)
    y = x * 1
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"core::MulBackward.*version"):
        z.sum().backward()


def test_backward_nodes_are_ranges_with_the_forwards_number_and_labels() -> None:
    forward: dict[str, int] = {}
    seen: list[tuple[str, opscope.RecordScope, int, Any]] = []

    def start(fn: opscope.RecordFunction) -> None:
        seen.append((fn.name, fn.scope, fn.sequence_nr, opscope.get_debug_info("model_id")))

    x = leaf(1, 2)
    handle = opscope.add_thread_local_callback(start)
    y = (x * x).sum()
    forward = {name: number for name, _, number, _ in seen}
    seen.clear()
    with opscope.debug_info(model_id="m"):
        y.backward()
    opscope.remove_callback(handle)
    nodes = [entry for entry in seen if entry[1] is opscope.RecordScope.BACKWARD_FUNCTION]
    assert [name for name, *_ in nodes] == ["core::SumBackward", "core::MulBackward"]
    for (_, _, number, label), operator in zip(nodes, ("core::sum", "core::mul"), strict=True):
        assert number == forward[operator] >= 0
        assert label == "m"


def test_a_label_that_is_masked_around_a_backward_is_masked_in_its_nodes() -> None:
    seen: list[dict[str, str]] = []

    def start(fn: opscope.RecordFunction) -> None:
        if fn.scope is opscope.RecordScope.BACKWARD_FUNCTION:
            seen.append(fn.debug_info)

    handle = opscope.add_global_callback(start)
    with opscope.debug_info(model_id="m", other="x"), opscope.debug_info(model_id=None):
        (leaf(1, 2) * 2).sum().backward()
    opscope.remove_callback(handle)
    assert seen == [{"other": "x"}] * 2


class Cube(ot.Function):
    @staticmethod
    def forward(ctx: Any, x: ot.Tensor, scale: float) -> ot.Tensor:
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x * x * x * scale

    @staticmethod
    def backward(ctx: Any, gradient: ot.Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return gradient * x * x * (3 * ctx.scale), None


def test_function_written_in_python_is_a_node() -> None:
    x = leaf(2, 3)
    y = Cube.apply(x, 2.0)
    assert repr(y.grad_fn) == "<CubeBackward0>"
    (y * 1).sum().backward()
    assert grad_of(x) == [24, 54]


def test_function_off_the_tape_only_computes() -> None:
    assert not Cube.apply(ot.tensor([2.0]), 1.0).requires_grad
    with ot.no_grad():
        assert not Cube.apply(leaf(2), 1.0).requires_grad


def test_function_with_several_inputs_and_outputs() -> None:
    class Swap(ot.Function):
        @staticmethod
        def forward(ctx: Any, a: ot.Tensor, b: ot.Tensor) -> Any:
            return b * 2, a * 3

        @staticmethod
        def backward(ctx: Any, first: ot.Tensor, second: ot.Tensor | None) -> Any:
            return None if second is None else second * 3, first * 2

    a, b = leaf(1), leaf(1)
    first, second = Swap.apply(a, b)
    (first * 5 + second * 7).sum().backward()
    assert (grad_of(a), grad_of(b)) == ([21], [10])


def test_exception_in_a_custom_backward_reaches_the_caller() -> None:
    class Broken(ot.Function):
        @staticmethod
        def forward(ctx: Any, x: ot.Tensor) -> ot.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, gradient: ot.Tensor) -> Any:
            raise LookupError("mine")

    x = leaf(1)
    with pytest.raises(LookupError, match="mine"):
        Broken.apply(x).backward()
    assert (x * x).sum().item() == 1


@pytest.mark.parametrize("returned", [(), (None, None), 5])
def test_custom_backward_must_return_a_gradient_for_each_argument(returned: Any) -> None:
    class Wrong(ot.Function):
        @staticmethod
        def forward(ctx: Any, x: ot.Tensor) -> ot.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, gradient: ot.Tensor) -> Any:
            return returned

    with pytest.raises((RuntimeError, TypeError), match=r"backward"):
        Wrong.apply(leaf(1)).backward()


def test_custom_function_notices_a_saved_tensor_changed_in_place() -> None:
    x = leaf(2)
    y = x * 1
    z = Cube.apply(y, 1.0)
    y.add_(1)
    with pytest.raises(RuntimeError, match="version 1, saved was 0"):
        z.sum().backward()


def test_tape_of_a_long_chain_is_freed_without_recursion() -> None:
    x = leaf(1)
    y = x
    for _ in range(100_000):
        y = y + 1
    del y
    assert x.grad is None


def test_fork_carries_tensors_and_labels() -> None:
    with opscope.debug_info(model_id="forked"):
        future = opscope.fork(
            lambda a: ((a + 1).tolist(), opscope.get_debug_info("model_id")), ot.tensor([1.0])
        )
    assert opscope.wait(future) == ([2.0], "forked")
