"""Each kind py::NAME does what Python does, for many values, errors included."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope._tensor import Program
from tests.examples import examples
from tests.graphs.graphs import of_change, of_node, program

LARGEST = 2**63 - 1
INTS = st.one_of(
    st.integers(-8, 8),
    st.integers(-(2**63), LARGEST),
    st.sampled_from([-(2**63), LARGEST, 2**53 + 1, -(2**31)]),
)
FLOATS = st.one_of(
    st.floats(-8, 8), st.floats(), st.sampled_from([0.0, -0.0, 0.5, 2.5, -1.5, math.inf, math.nan])
)
BOOLS = st.booleans()
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
SMALL = st.integers(-7, 7)
OF = {"int": INTS, "float": FLOATS, "bool": BOOLS, "str": TEXTS, "index": SMALL}

Function = Callable[..., Any]


def sort_of(value: Any) -> Any:
    """A value with its type, so that -0.0, NaN, 1 and True differ."""
    if isinstance(value, list | tuple):
        return type(value).__name__, [sort_of(item) for item in value]
    return type(value).__name__, repr(value)


def outcome(function: Function, inputs: tuple[Any, ...]) -> Any:
    try:
        result = function(*inputs)
    except (ValueError, IndexError, ZeroDivisionError, OverflowError) as error:
        return type(error).__name__
    if isinstance(result, int) and not -(2**63) <= result <= LARGEST:
        return "OverflowError"
    return sort_of(result)


def int_pow(base: int, exponent: int) -> int:
    if exponent < 0:
        raise ValueError
    if exponent > 64 and abs(base) > 1:
        raise OverflowError
    return int(base**exponent)


def float_pow(base: float, exponent: float) -> float:
    # Complex in Python, also where that overflows.
    if base < 0 and math.isfinite(base) and math.isfinite(exponent) and exponent % 1:
        raise ValueError
    return float(base**exponent)


def lshift(number: int, count: int) -> int:
    if count > 64 and number != 0:
        raise OverflowError
    return number << min(count, 65)


ARITHMETIC: dict[str, Function] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "min": min,
    "max": max,
}
COMPARISONS: dict[str, Function] = {
    name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")
}
NUMBERS = ("int", "float")
BITS: dict[str, Function] = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}
# (kind, types of the inputs, type of the output, what Python does)
CASES: list[tuple[str, list[str], str, Function]] = [
    *((name, [type, type], type, do) for name, do in ARITHMETIC.items() for type in NUMBERS),
    *(
        (name, [type, type], "bool", do)
        for name, do in COMPARISONS.items()
        for type in ("int", "float", "bool", "str")
    ),
    *(("truediv", [type, type], "float", operator.truediv) for type in NUMBERS),
    ("pow", ["int", "int"], "int", int_pow),
    ("pow", ["int", "index"], "int", int_pow),
    ("pow", ["float", "float"], "float", float_pow),
    *(("neg", [type], type, operator.neg) for type in NUMBERS),
    *(("abs", [type], type, abs) for type in NUMBERS),
    *((name, [type, type], type, do) for name, do in BITS.items() for type in ("int", "bool")),
    ("lshift", ["int", "int"], "int", lshift),
    ("lshift", ["int", "index"], "int", lshift),
    ("rshift", ["int", "int"], "int", operator.rshift),
    ("rshift", ["int", "index"], "int", operator.rshift),
    ("not", ["bool"], "bool", operator.not_),
    ("invert", ["int"], "int", operator.invert),
    *(("int", [type], "int", int) for type in ("int", "float", "bool")),
    *(("float", [type], "float", float) for type in ("int", "float", "bool")),
    *(("bool", [type], "bool", bool) for type in ("int", "float", "bool")),
    *(("str", [type], "str", str) for type in ("int", "float", "bool", "str")),
    ("round", ["float"], "int", round),
    ("floor", ["float"], "int", math.floor),
    ("ceil", ["float"], "int", math.ceil),
    ("sqrt", ["float"], "float", math.sqrt),
    ("exp", ["float"], "float", math.exp),
    ("log", ["float"], "float", math.log),
    ("add", ["str", "str"], "str", operator.add),
    ("mul", ["str", "index"], "str", operator.mul),
    ("len", ["str"], "int", len),
    ("getitem", ["str", "index"], "str", operator.getitem),
    ("slice", ["str", "index", "index", "index"], "str", lambda text, *part: text[slice(*part)]),
    ("contains", ["str", "str"], "bool", operator.contains),
    ("range", ["index", "index", "index"], "List[int]", lambda *part: list(range(*part))),
]


def type_of(name: str) -> str:
    return "int" if name == "index" else name


@pytest.mark.parametrize(
    ("kind", "inputs", "output", "do"),
    CASES,
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_numbers_and_texts_as_in_python(
    kind: str, inputs: list[str], output: str, do: Function
) -> None:
    run = program(of_node(f"py::{kind}", [type_of(name) for name in inputs], [output]))

    @examples(10)
    @given(st.tuples(*(OF[name] for name in inputs)))
    def check(values: tuple[Any, ...]) -> None:
        assert outcome(run, values) == outcome(do, values)

    check()


NUMBER_TEXTS = st.one_of(
    st.integers().map(str),
    st.floats().map(repr),
    st.text("0123456789_+-.eE \tinfa", max_size=8),
    st.sampled_from([" 1_0 ", "1__0", "_1", "1_", "+ 1", "0x10", "1e400", "-inf", "INFINITY", ""]),
)


@given(NUMBER_TEXTS)
@examples(100)
def test_numbers_are_read_from_texts_as_in_python(text: str) -> None:
    assert outcome(READ_INT, (text,)) == outcome(int, (text,))
    assert outcome(READ_FLOAT, (text,)) == outcome(float, (text,))


def test_powers_of_two_are_shown_as_in_python() -> None:
    show = program(of_node("py::str", ["float"], ["str"]))
    for power in range(-1074, 1024):
        assert show(2.0**power) == str(2.0**power)


READ_INT = program(of_node("py::int", ["str"], ["int"]))
READ_FLOAT = program(of_node("py::float", ["str"], ["float"]))

# ---- lists ------------------------------------------------------------------------------------

ITEMS = {"int": st.integers(-2, 2), "float": FLOATS, "bool": BOOLS, "str": TEXTS}
STEPS = st.one_of(st.none(), SMALL, st.sampled_from([LARGEST, -(2**63)]))


def in_place(method: str) -> Function:
    """The list after the call of a method, and what it returned if that is something."""

    def do(items: list[Any], *args: Any) -> Any:
        items = list(items)
        result = getattr(items, method)(*args)
        return items if result is None else (items, result)

    return do


LIST_CASES: list[tuple[str, list[str], str, Function]] = [
    ("add", ["list", "list"], "List[{}]", operator.add),
    ("mul", ["list", "index"], "List[{}]", operator.mul),
    ("eq", ["list", "list"], "bool", lambda a, b: len(a) == len(b) and all(map(operator.eq, a, b))),
    ("ne", ["list", "list"], "bool", lambda a, b: len(a) != len(b) or any(map(operator.ne, a, b))),
    ("len", ["list"], "int", len),
    ("getitem", ["list", "index"], "{}", operator.getitem),
    ("slice", ["list", "step", "step", "index"], "List[{}]", lambda a, *part: a[slice(*part)]),
    ("contains", ["list", "item"], "bool", lambda a, b: any(b == item for item in a)),
    ("copy", ["list"], "List[{}]", list),
    ("setitem", ["list", "index", "item"], "", in_place("__setitem__")),
    ("append", ["list", "item"], "", in_place("append")),
    ("extend", ["list", "list"], "", in_place("extend")),
    ("insert", ["list", "index", "item"], "", in_place("insert")),
    ("pop", ["list", "index"], "{}", in_place("pop")),
    ("reverse", ["list"], "", in_place("reverse")),
    ("clear", ["list"], "", in_place("clear")),
]
CHANGING = {"setitem", "append", "extend", "insert", "pop", "reverse", "clear"}


@pytest.mark.parametrize("item", ITEMS)
@pytest.mark.parametrize(
    ("kind", "inputs", "output", "do"), LIST_CASES, ids=[case[0] for case in LIST_CASES]
)
def test_lists_as_in_python(
    kind: str, inputs: list[str], output: str, do: Function, item: str
) -> None:
    types = {"list": f"List[{item}]", "item": item, "index": "int", "step": "Optional[int]"}
    values = {
        "list": st.lists(ITEMS[item], max_size=5),
        "item": ITEMS[item],
        "index": SMALL,
        "step": STEPS,
    }
    make = of_change if kind in CHANGING else lambda *case: of_node(case[0], case[1], [case[2]])
    run = program(make(f"py::{kind}", [types[name] for name in inputs], output.format(item)))

    @examples(10)
    @given(st.tuples(*(values[name] for name in inputs)))
    def check(given_values: tuple[Any, ...]) -> None:
        assert outcome(run, given_values) == outcome(do, given_values)

    check()


def test_a_list_extends_itself() -> None:
    run = program("graph(%l : List[str]):\n  py::extend(%l, %l)\n  return (%l)\n")
    assert run(["a", "b", "c", "d", "e"]) == ["a", "b", "c", "d", "e"] * 2


def test_two_names_of_one_list_see_each_others_changes() -> None:
    run = program(
        "graph(%a : List[int], %n : int):\n"
        "  %t : Tuple[List[int], List[int]] = prim::TupleConstruct(%a, %a)\n"
        "  %b : List[int] = prim::TupleIndex[index=1](%t)\n"
        "  py::append(%b, %n)\n"
        "  return (%a)\n"
    )
    assert run([1], 2) == [1, 2]


def test_a_constant_list_is_a_new_one_each_time() -> None:
    run = program(
        "graph(%n : int):\n"
        "  %yes : bool = prim::Constant[value=True]()\n"
        "  prim::Loop(%n, %yes)\n"
        "    block0(%i : int):\n"
        "      %l : List[List[int]] = prim::Constant[value=[[1], []]]()\n"
        "      %zero : int = prim::Constant[value=0]()\n"
        "      %part : List[int] = py::getitem(%l, %zero)\n"
        "      py::append(%part, %i)\n"
        "      prim::Print(%l)\n"
        "      -> (%yes)\n"
        "  return (%n)\n"
    )
    assert run(3) == 3


def test_a_constant_list_is_printed_unchanged(capsys: pytest.CaptureFixture[str]) -> None:
    test_a_constant_list_is_a_new_one_each_time()
    assert capsys.readouterr().out == "[[1, 0], []]\n[[1, 1], []]\n[[1, 2], []]\n"


def test_is_none_and_unwrap() -> None:
    run = program(of_node("py::is_none", ["Optional[int]"], ["bool"]))
    assert run(None) is True
    assert run(1) is False
    unwrap: Program = program(of_node("prim::Unwrap", ["Optional[int]"], ["int"]))
    assert unwrap(3) == 3
    with pytest.raises(ValueError, match="None"):
        unwrap(None)
