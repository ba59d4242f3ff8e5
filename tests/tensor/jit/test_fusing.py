"""Elementwise operators of a graph run in one pass, with the bits that they have one by one."""

from __future__ import annotations

import numpy as np
import pytest

from opscope import tensor as ot
from opscope._tensor import Graph, Program
from tests.tensor.ranges import ranges

CHAIN = """
graph(%x : Tensor, %y : Tensor, %n : float):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = core::mul(%x, %n)
  %b : Tensor = core::add(%a, %y, %one)
  %c : Tensor = core::relu(%b)
  %d : Tensor = core::exp(%c)
  %e : Tensor = core::sub(%d, %x)
  return (%e)
"""


def program() -> Program:
    return Program({"forward": Graph(CHAIN)}, {})


def eager(x: ot.Tensor, y: ot.Tensor, n: float) -> ot.Tensor:
    return (x * n + y).relu().exp() - x


def numbers(*sizes: int, dtype: type = np.float32) -> ot.Tensor:
    count = int(np.prod(sizes))
    return ot.from_numpy(np.linspace(-2, 2, count, dtype=dtype).reshape(sizes))


def names(x: ot.Tensor, y: ot.Tensor) -> list[str]:
    run = program()
    with ranges() as seen:
        result = run(x, y, 0.5)
    assert result.tolist() == eager(x, y, 0.5).tolist()
    assert result.dtype == eager(x, y, 0.5).dtype
    return [name for name, _ in seen]


ONE_BY_ONE = ["core::mul", "core::add", "core::relu", "core::exp", "core::sub"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sizes", [(1,), (3, 5), (40, 100, 3)])
def test_a_chain_is_one_range(sizes: tuple[int, ...], dtype: type) -> None:
    x = numbers(*sizes, dtype=dtype)
    assert names(x, x.clone()) == ["core::fused"]


@pytest.mark.parametrize("count", [8, 16, 32])
def test_a_long_chain_with_omitted_arguments_is_one_range(count: int) -> None:
    lines = [f"  %{place + 1} : Tensor = core::add(%{place}, %y)" for place in range(count)]
    text = "\n".join(["graph(%0 : Tensor, %y : Tensor):", *lines, f"  return (%{count})"])
    run, x, y = Program({"forward": Graph(text)}, {}), ot.ones([3]), ot.ones([3])
    with ranges() as seen:
        result = run(x, y)
    assert [name for name, _ in seen] == ["core::fused"]
    assert result.tolist() == [count + 1.0] * 3


def test_one_element_goes_with_all() -> None:
    assert names(numbers(3, 5), ot.ones([])) == ["core::fused"]
    assert names(numbers(3, 5), ot.ones([1, 1])) == ["core::fused"]


def test_inputs_that_do_not_fit_run_one_by_one() -> None:
    x = numbers(4, 6)
    assert names(x, numbers(6)) == ONE_BY_ONE  # broadcasts
    assert names(x, numbers(6, 4).t()) == ONE_BY_ONE  # strided
    assert names(x, numbers(4, 6, dtype=np.float64)) == ONE_BY_ONE
    assert names(numbers(4, 6).to(ot.int64), x) == ONE_BY_ONE


def test_what_records_a_gradient_runs_one_by_one() -> None:
    x, y = numbers(4, 6), numbers(4, 6)
    own = numbers(4, 6)
    x.requires_grad = own.requires_grad = True
    run = program()
    with ranges() as seen:
        result = run(x, y, 0.5)
    assert [name for name, _ in seen] == ONE_BY_ONE
    result.sum().backward()
    eager(own, y, 0.5).sum().backward()
    assert x.grad is not None and own.grad is not None
    assert x.grad.tolist() == own.grad.tolist()
    with ot.no_grad(), ranges() as seen:
        run(x, y, 0.5)
    assert [name for name, _ in seen] == ["core::fused"]


def test_the_range_names_its_operators() -> None:
    import opscope

    seen: list[str] = []

    def note(fn: opscope.RecordFunction) -> None:
        if fn.name.startswith("core::"):  # NumPy's are seen too, if another test attached it
            seen.append(fn.overload_name)

    handle = opscope.add_thread_local_callback(note)
    try:
        program()(numbers(3), numbers(3), 2.0)
    finally:
        opscope.remove_callback(handle)
    assert seen == ["mul_add_relu_exp_sub"]


def test_errors_are_those_of_the_operators() -> None:
    with pytest.raises(RuntimeError, match="core::add: sizes"):
        program()(numbers(3), numbers(4), 2.0)
