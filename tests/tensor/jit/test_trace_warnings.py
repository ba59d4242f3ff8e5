"""What a trace warns of, and what it refuses."""

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import opscope
from opscope import tensor as ops
from opscope.tensor import jit, nn

READS: list[Callable[[ops.Tensor], Any]] = [
    lambda x: int(x[0]),
    lambda x: float(x[0]),
    lambda x: bool(x[0]),
    lambda x: x[0].item(),
    lambda x: x.tolist(),
    lambda x: memoryview(x),
    lambda x: ops.from_dlpack(x),
    lambda x: ops.tensor(x),
    lambda x: range(10)[x[0].to(ops.int64)],
]


@pytest.mark.parametrize("read", READS)
def test_a_python_value_of_a_tensor_is_reported_once_a_line(
    read: Callable[[ops.Tensor], Any],
) -> None:
    def function(x: ops.Tensor) -> ops.Tensor:
        for _ in range(3):
            read(x * 1)
        return x + 1

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        jit.trace(function, ops.ones(2))
    (warning,) = caught
    assert warning.category is jit.TracerWarning
    assert f"{__file__}:{warning.lineno}: a Python value is taken" in str(warning.message)


def test_nothing_else_is_reported() -> None:
    table = ops.arange(3.0)

    def function(x: ops.Tensor) -> ops.Tensor:
        rows = [row * len(x) for row in x]
        return rows[0] * x.shape[1] * table[0]  # type: ignore[no-any-return]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jit.trace(function, ops.ones(2, 3))
        int(ops.ones(1)[0])


def test_a_number_among_the_results_is_reported() -> None:
    with pytest.warns(jit.TracerWarning, match=r"the result\[1\] is the int 2: a constant"):
        model = jit.trace(lambda x: (x, x.shape[0]), ops.ones(2))
    assert model(ops.ones(5))[1] == 2


DECIDES = """\
graph(%x : Tensor):
  %flag : bool = py::bool(%x)
  %y : Tensor = prim::If(%flag)
    block0():
      %1 : Tensor = core::neg(%x)
      -> (%1)
    block1():
      -> (%x)
  return (%y)
"""


def test_control_flow_of_a_compiled_model_is_reported() -> None:
    inner = jit.CompiledModel({"forward": DECIDES}, {}, name="inner")
    with pytest.warns(jit.TracerWarning, match="control flow of the compiled model inner is not"):
        outer = jit.trace(lambda x: inner(x) * 2, ops.ones(1))
    assert outer(ops.zeros(1)).item() == 0.0
    assert list(outer.graph.operators()) == ["core::neg", "prim::Constant", "core::mul"]


def test_random_numbers_are_not_compared() -> None:
    with pytest.warns(jit.TracerWarning, match=r"draws random numbers \(core::dropout\)"):
        jit.trace(nn.Dropout(0.5), ops.ones(100))


def test_a_function_that_changes_with_each_call_passes_only_by_its_graph() -> None:
    calls = []

    def function(x: ops.Tensor) -> ops.Tensor:
        calls.append(x)
        return x + len(calls)

    assert jit.trace(function, ops.ones(1))(ops.ones(1)).item() == 2.0


def test_a_backward_of_the_functions_own_is_found_by_the_check() -> None:
    class Double(ops.Function):
        @staticmethod
        def forward(context: Any, x: ops.Tensor) -> ops.Tensor:
            return x * 2

        @staticmethod
        def backward(context: Any, gradient: ops.Tensor) -> ops.Tensor:
            return gradient * 3

    with pytest.raises(jit.TraceError, match=r"output 0 of the graph differs .* its own backward"):
        jit.trace(Double.apply, ops.ones(2).requires_grad_())


def test_the_first_output_that_differs_is_named() -> None:
    # Memory that NumPy writes is unknown to the trace.
    def function(x: ops.Tensor) -> tuple[ops.Tensor, ops.Tensor]:
        y = x * 1
        y.numpy()[0] = 7
        return x + 0, y + 0

    with (
        pytest.warns(jit.TracerWarning, match="a Python value"),
        pytest.raises(jit.TraceError, match=r"output 1 of the graph differs .*: 1 of 3 elements"),
    ):
        jit.trace(function, ops.zeros(3))


REFUSED: list[tuple[Callable[[ops.Tensor], Any], str]] = [
    (lambda x: {"a": x}, "the result is a dict; a traced function returns tensors"),
    (lambda x: [x, None], "a list of None, Tensor; a list holds values of one type"),
    (lambda x: [], "a list of nothing"),
    (lambda x: x.clone().requires_grad_().sum().backward(), "a backward pass cannot be part"),
]


@pytest.mark.parametrize(("function", "reason"), REFUSED)
def test_what_a_graph_cannot_have_is_refused(
    function: Callable[[ops.Tensor], Any], reason: str
) -> None:
    with pytest.raises(jit.TraceError, match=reason):
        jit.trace(function, ops.ones(2))


@pytest.mark.parametrize("example", [1, 2.0, None, "a", {"a": 1}, [1], (1,), [[ops.ones(1)]]])
def test_an_example_that_is_no_tensor_is_refused(example: Any) -> None:
    with pytest.raises(TypeError, match=r"the example 'y' is or contains a \w+; examples are"):
        jit.trace(lambda x, y: x, ops.ones(1), example)


def test_one_tensor_as_two_examples_is_refused() -> None:
    x = ops.ones(1)
    with pytest.raises(jit.TraceError, match="'y' is the same tensor as another example"):
        jit.trace(lambda x, y: x + y, x, x)


def test_a_thread_that_records_nothing_cannot_trace() -> None:
    with opscope.recording(False), pytest.raises(jit.TraceError, match="are not recorded"):
        jit.trace(lambda x: x + 1, ops.ones(1))
    assert jit.trace(lambda x: x + 1, ops.ones(1))(ops.ones(1)).item() == 2.0


def test_an_error_of_the_function_is_raised_as_it_is() -> None:
    def function(x: ops.Tensor) -> ops.Tensor:
        raise KeyError("missing")

    with pytest.raises(KeyError, match="missing"):
        jit.trace(function, ops.ones(1))
    assert not opscope.has_callbacks()
