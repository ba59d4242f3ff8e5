"""The Python code of graphs does what the graphs do."""

import math
from typing import Any

import pytest

from opscope import tensor as ops
from opscope._tensor import Graph
from opscope.tensor import jit
from opscope.tensor.jit.nodes import from_text, to_text
from opscope.tensor.jit.python_code import python_code
from tests.tensor.jit.models import digits_model


def _run(code: str, attributes: Any, *args: Any) -> Any:
    names = {"tensor": ops, "math": math, "attributes": attributes}
    exec(code, names)
    return names["forward"](*args)


def test_a_traced_model_is_readable_and_runs() -> None:
    model, x = digits_model(), ops.randn(2, 1, 8, 8)
    assert model.code.startswith("def forward(input):\n    # 0\n    t5 = tensor.conv2d(input, ")
    assert 'tensor.conv2d(input, attributes["0.weight"], attributes["0.bias"]' in model.code
    assert "= tensor.flatten(t17, 1, -1)\n    # 5\n" in model.code
    assert ops.equal(_run(model.code, model.attributes, x), model(x))


def _halved(x: ops.Tensor, limit: float, offsets: list[float]) -> tuple[ops.Tensor, int]:
    count = 0
    while float(x.abs().max()) > limit:
        x = x / 2
        count += 1
    for index, offset in enumerate(offsets):
        if index % 2 == 0 and offset > 0:
            x = x + offset
    return x, count


def test_a_scripted_function_is_readable_and_runs() -> None:
    model = jit.script(_halved)
    arguments = ops.tensor([100.0, -7.0]), 3.0, [1.0, 5.0, -2.0]
    expected, count = _halved(*arguments)
    for actual, rounds in (model(*arguments), _run(model.code, model.attributes, *arguments)):
        assert (actual.tolist(), rounds) == (expected.tolist(), count)


CONTROL_FLOW = """\
graph(%x : Tensor, %n : int, %flag : bool):
  %1 : int = prim::Constant[value=1]()
  %t : bool = prim::Constant[value=True]()
  %big : int = prim::Constant[value=9223372036854775807]()
  %m : float = prim::Constant[value=-2.0]()
  %y : Tensor = prim::If(%flag)
    block0():
      %5 : Tensor = core::add(%x, %1)
      -> (%5)
    block1():
      -> (%x)
  %z : Tensor = prim::Loop(%n, %t, %y)
    block0(%i : int, %a : Tensor):
      %6 : Tensor = core::add(%a, %i)
      -> (%t, %6)
  %w : Tensor, %k : int = prim::Loop(%big, %t, %z, %1)
    block0(%i2 : int, %a2 : Tensor, %k2 : int):
      %7 : Tensor = core::mul(%a2, %m)
      %8 : int = py::add(%k2, %1)
      %c : bool = py::lt(%8, %n)
      -> (%c, %7, %8)
  %r : Tuple[Tensor, int] = prim::TupleConstruct(%w, %k)
  return (%r)
"""


@pytest.mark.parametrize(("n", "flag"), [(3, True), (5, False), (0, True)])
def test_blocks_become_if_for_and_while(n: int, flag: bool) -> None:
    code = python_code({"forward": CONTROL_FLOW}, "forward")
    for line in ("    if flag:", "    else:", "    for i in range(n):", "    while goes_on:"):
        assert line in code.splitlines()
    y = 1.0 + flag + sum(range(n))
    count = 1
    while True:
        y, count = y * -2.0, count + 1
        if count >= n:
            break
    expected = [y, y], count
    tensor, number = _run(code, {}, ops.ones(2), n, flag)
    assert (tensor.tolist(), number) == expected
    model = jit.CompiledModel({"forward": CONTROL_FLOW}, {})
    tensor, number = model(ops.ones(2), n, flag)
    assert (tensor.tolist(), number) == expected


ORDER = """\
graph(%l : List[int], %s : str):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %c : List[int] = py::copy(%l)
  py::append(%c, %1)
  %first : int = py::getitem(%c, %0)
  py::setitem(%c, %0, %1)
  %q : int = py::floordiv(%first, %1)
  %sum : int = prim::CallFunction[name="helpers.total"](%c, %q)
  %has : bool = py::contains(%c, %1)
  %r : Tuple[int, bool] = prim::TupleConstruct(%sum, %has)
  return (%r)
"""
TOTAL = """\
graph(%list : List[int], %start : int):
  %n : int = py::len(%list)
  %sum : int = py::add(%n, %start)
  return (%sum)
"""


def test_calls_lists_and_names_that_python_reserves() -> None:
    code = python_code({"forward": ORDER, "helpers.total": TOTAL}, "forward")
    assert "def helpers_total(list_, start):" in code
    assert _run(code, {}, [5, 6], "a") == (8, True)


EXPRESSIONS = """\
graph(%x : Tensor, %n : int):
  %1 : int = prim::Constant[value=1]()
  %m : int = prim::Constant[value=-1]()
  %d : int = py::dim(%x)
  %sum : int = py::add(%d, %m)
  %product : int = py::mul(%sum, %n)
  %neg : int = py::neg(%product)
  %is : bool = py::lt(%neg, %m)
  %not : bool = py::not(%is)
  %twice : int = py::add(%n, %1)
  %list : List[int] = prim::ListConstruct(%twice, %twice, %d)
  %r : Tuple[bool, List[int]] = prim::TupleConstruct(%not, %list)
  return (%r)
"""


def test_expressions_that_are_used_once_are_not_named() -> None:
    code = python_code({"forward": EXPRESSIONS}, "forward")
    assert code.splitlines() == [
        "def forward(x, n):",
        "    d = x.dim()",
        "    twice = n + 1",
        "    return (not ((-((d + (-1)) * n)) < (-1)), [twice, twice, d])",
    ]
    expected = jit.CompiledModel({"forward": EXPRESSIONS}, {})(ops.ones(2, 2, 2), 3)
    assert _run(code, {}, ops.ones(2, 2, 2), 3) == expected


FAILS = """\
graph(%x : bool):
  %text : str = prim::Constant[value="it is \\"so\\""]()
  %class : str = prim::Constant[value="ValueError: it is"]()
  prim::If(%x)
    block0():
      prim::RaiseException(%text, %class)
      -> ()
    block1():
      -> ()
  %none : None = prim::Constant[value=None]()
  return (%none)
"""


def test_errors_are_raised() -> None:
    code = python_code({"forward": FAILS}, "forward")
    with pytest.raises(ValueError, match='it is "so"'):
        _run(code, {}, True)
    assert _run(code, {}, False) is None


@pytest.mark.parametrize("text", [CONTROL_FLOW, ORDER, TOTAL, FAILS])
def test_a_graph_read_as_objects_has_the_same_text(text: str) -> None:
    assert str(Graph(to_text(from_text(text)))) == str(Graph(text))
