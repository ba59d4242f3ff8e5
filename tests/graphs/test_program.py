"""The type Program: inputs and results, control flow, calls, errors, threads."""

from __future__ import annotations

import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from opscope import tensor as ot
from opscope._tensor import Graph, Program
from tests.graphs.graphs import of_node, program


def same(type_text: str) -> Program:
    return program(f"graph(%x : {type_text}):\n  return (%x)\n")


@pytest.mark.parametrize(
    ("type_text", "value"),
    [
        ("int", -(2**63)),
        ("float", 0.1),
        ("bool", True),
        ("str", "é\0\U0001f600"),
        ("None", None),
        ("Dtype", ot.bfloat16),
        ("Optional[int]", None),
        ("Optional[int]", 3),
        ("List[Optional[str]]", ["a", None]),
        ("Tuple[]", ()),
        ("Tuple[int, Tuple[str, List[float]]]", (1, ("a", [0.5]))),
    ],
)
def test_values_come_back_as_they_were_given(type_text: str, value: Any) -> None:
    result = same(type_text)(value)
    assert result == value
    assert type(result) is type(value)


def test_a_tensor_comes_back_as_the_same_object() -> None:
    tensor = ot.ones([2])
    assert same("List[Tensor]")([tensor])[0] is tensor


def test_results_are_one_value_a_tuple_or_none() -> None:
    assert program("graph(%x : int):\n  return (%x)\n")(1) == 1
    assert program("graph(%x : int):\n  return (%x, %x)\n")(1) == (1, 1)
    assert program("graph(%x : int):\n  return ()\n")(1) is None


@pytest.mark.parametrize(
    ("type_text", "value"),
    [
        ("float", 1),
        ("int", True),
        ("int", 1.0),
        ("bool", 1),
        ("Tensor", 1.0),
        ("Dtype", "float32"),
        ("List[int]", (1,)),
        ("List[int]", [1, "a"]),
        ("Tuple[int]", (1, 2)),
        ("Optional[str]", 1),
    ],
)
def test_a_value_of_another_type_is_refused(type_text: str, value: Any) -> None:
    with pytest.raises(TypeError) as raised:
        same(type_text)(value)
    assert str(raised.value) == f"input x must be {type_text}, not {type(value).__name__}"


def test_values_that_no_graph_has_are_refused() -> None:
    with pytest.raises(OverflowError):
        same("int")(2**63)
    with pytest.raises(UnicodeEncodeError):
        same("str")("\ud800")
    with pytest.raises(TypeError, match="forward takes 1 inputs, not 2"):
        same("int")(1, 2)


# ---- control flow -------------------------------------------------------------------------------

COLLATZ = """graph(%n : int):
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %three : int = prim::Constant[value=3]()
  %zero : int = prim::Constant[value=0]()
  %most : int = prim::Constant[value=9223372036854775807]()
  %begins : bool = py::gt(%n, %one)
  %last : int, %steps : int = prim::Loop(%most, %begins, %n, %zero)
    block0(%i : int, %m : int, %s : int):
      %rest : int = py::mod(%m, %two)
      %odd : bool = py::eq(%rest, %one)
      %next : int = prim::If(%odd)
        block0():
          %a : int = py::mul(%m, %three)
          %b : int = py::add(%a, %one)
          -> (%b)
        block1():
          %c : int = py::floordiv(%m, %two)
          -> (%c)
      %more : int = py::add(%s, %one)
      %goes_on : bool = py::gt(%next, %one)
      -> (%goes_on, %next, %more)
  return (%steps)
"""


def collatz(number: int) -> int:
    steps = 0
    while number > 1:
        number = 3 * number + 1 if number % 2 else number // 2
        steps += 1
    return steps


def test_a_while_loop_with_branches_counts_as_python_does() -> None:
    run = program(COLLATZ)
    for number in range(1, 60):
        assert run(number) == collatz(number)


@pytest.mark.parametrize("most", [-1, 0, 1, 5])
def test_a_loop_ends_at_its_greatest_number_of_rounds(most: int) -> None:
    run = program(
        "graph(%most : int, %a : int, %b : int):\n"
        "  %yes : bool = prim::Constant[value=True]()\n"
        "  %x : int, %y : int = prim::Loop(%most, %yes, %a, %b)\n"
        "    block0(%i : int, %p : int, %q : int):\n"
        "      %sum : int = py::add(%p, %q)\n"
        "      -> (%yes, %q, %sum)\n"
        "  return (%x, %y)\n"
    )
    a, b = 0, 1
    for _ in range(most):
        a, b = b, a + b
    assert run(most, 0, 1) == (a, b)


def test_an_optional_takes_its_part_and_none() -> None:
    run = program(
        "graph(%flag : bool, %n : int):\n"
        "  %none : None = prim::Constant[value=None]()\n"
        "  %maybe : Optional[int] = prim::If(%flag)\n"
        "    block0():\n      -> (%n)\n"
        "    block1():\n      -> (%none)\n"
        "  return (%maybe)\n"
    )
    assert run(True, 3) == 3
    assert run(False, 3) is None


def test_functions_call_functions() -> None:
    add = (
        "graph(%a : Optional[int], %b : int):\n  %n : int = prim::Unwrap(%a)\n"
        "  %c : int = py::add(%n, %b)\n  return (%c)\n"
    )
    text = (
        "graph(%x : int):\n"
        '  %y : int = prim::CallFunction[name="add"](%x, %x)\n'
        '  %z : int = prim::CallFunction[name="twice"](%y)\n'
        "  return (%z)\n"
    )
    twice = 'graph(%x : int):\n  %y : int = prim::CallFunction[name="add"](%x, %x)\n  return (%y)\n'
    assert program(text, add=add, twice=twice)(3) == 12


def test_another_function_can_be_the_entry() -> None:
    graphs = {"f": Graph(of_node("py::neg", ["int"], ["int"])), "g": Graph(COLLATZ)}
    assert Program(graphs, {}, "f")(3) == -3
    assert Program(graphs, {}, entry="g")(7) == 16
    with pytest.raises(ValueError, match='no function "forward"'):
        Program(graphs, {})


def test_a_program_does_not_change_its_graphs() -> None:
    text = 'graph(%x : int):\n  %y : int = prim::CallFunction[name="g"](%x)\n  return (%y)\n'
    graphs = {"forward": Graph(text), "g": Graph(of_node("py::neg", ["int"], ["int"]))}
    Program(graphs, {})
    assert str(graphs["forward"]) == text


# ---- errors -------------------------------------------------------------------------------------

RAISES = [
    ("py::floordiv", ["int", "int"], "int", (1, 0), ZeroDivisionError),
    ("py::add", ["int", "int"], "int", (2**62, 2**62), OverflowError),
    ("py::getitem", ["List[int]", "int"], "int", ([], 0), IndexError),
    ("py::int", ["str"], "int", ("x",), ValueError),
    ("core::select", ["Tensor", "int", "int"], "Tensor", (ot.ones([2]), 0, 2), IndexError),
    ("core::mm", ["Tensor", "Tensor"], "Tensor", (ot.ones([2]), ot.ones([2])), RuntimeError),
]


@pytest.mark.parametrize(
    ("kind", "inputs", "output", "values", "error"), RAISES, ids=[case[0] for case in RAISES]
)
def test_an_error_is_pythons_with_its_place(
    kind: str, inputs: list[str], output: str, values: Any, error: type[Exception]
) -> None:
    with pytest.raises(error) as raised:
        program(of_node(kind, inputs, [output], "net.py:3:4"))(*values)
    assert type(raised.value) is error
    assert str(raised.value).endswith(" (net.py:3:4)")
    with pytest.raises(error) as raised:
        program(of_node(kind, inputs, [output]))(*values)
    assert str(raised.value).endswith(f" (%o0 = {kind})")


@pytest.mark.parametrize("error", [AssertionError, ValueError, IndexError, RuntimeError, TypeError])
def test_a_graph_raises_what_it_names(error: type[Exception]) -> None:
    run = program(of_node("prim::RaiseException", ["str", "str"], [], "net.py:3:4"))
    with pytest.raises(error) as raised:
        run("why", error.__name__)
    assert str(raised.value) == "why (net.py:3:4)"


def test_print_goes_where_python_prints(capsys: pytest.CaptureFixture[str]) -> None:
    program(of_node("prim::Print", ["int", "str", "List[str]", "Tensor"], []))(
        1, "a", ["b"], ot.ones([2])
    )
    assert capsys.readouterr().out == f"1 a ['b'] {ot.ones([2])}\n"


def test_ctrl_c_ends_an_endless_loop() -> None:
    run = program(
        "graph(%n : int):\n"
        "  %yes : bool = prim::Constant[value=True]()\n"
        "  prim::Loop(%n, %yes)\n"
        "    block0(%i : int):\n"
        "      prim::If(%yes)\n        block0():\n          -> ()\n"
        "        block1():\n          -> ()\n"
        "      -> (%yes)\n"
        "  return (%n)\n"
    )
    interrupts = threading.Thread(
        target=lambda: signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    )

    def interrupted() -> None:
        interrupts.start()
        run(2**63 - 1)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            interrupted()
    finally:
        interrupts.join()
        signal.signal(signal.SIGINT, before)


def test_threads_run_one_program_at_once() -> None:
    run = program(COLLATZ)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(run, range(1, 300))) == [collatz(number) for number in range(1, 300)]
