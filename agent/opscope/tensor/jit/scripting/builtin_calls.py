"""Calls of Python's own functions and classes, and of math and typing."""

from __future__ import annotations

import ast
import builtins
import math
import typing
from collections.abc import Callable
from functools import reduce
from typing import Any, TypeAlias

from opscope.tensor.jit.scripting import prelude
from opscope.tensor.jit.scripting.conditions import truth
from opscope.tensor.jit.scripting.convert import need
from opscope.tensor.jit.scripting.frame import Frame
from opscope.tensor.jit.scripting.functions import call_function
from opscope.tensor.jit.scripting.graph import GraphValue
from opscope.tensor.jit.scripting.iteration import (
    enumerated,
    loopable,
    range_of,
    reversed_of,
    zipped,
)
from opscope.tensor.jit.scripting.listing import to_list
from opscope.tensor.jit.scripting.numbers import binary, common_number, compute, is_number
from opscope.tensor.jit.scripting.types import BOOL, FLOAT, INT, NUMBERS, STR, TENSOR, ListOf, plain
from opscope.tensor.jit.scripting.values import (
    Constant,
    FunctionValue,
    Items,
    Loopable,
    ModuleValue,
    Object,
    SliceValue,
    SuperValue,
    Value,
    describe,
    type_of,
)

Builtin: TypeAlias = Callable[[Frame, list[Value], dict[str, Value], ast.AST], Value]


def _number_to(kind: type) -> Builtin:
    """int, float and bool."""
    type_ = {int: INT, float: FLOAT, bool: BOOL}[kind]

    def convert_number(
        frame: Frame, arguments: list[Value], keywords: dict[str, Value], at: ast.AST
    ) -> Value:
        if not arguments:
            return Constant(kind())
        [value] = _exactly(frame, arguments, keywords, 1, kind.__name__, at)
        known = compute(kind, value)
        if known is not None:
            return known
        if kind is bool:
            outcome = truth(frame, value, at)
            return outcome if isinstance(outcome, GraphValue) else Constant(outcome)
        found = type_of(value)
        if found == type_:
            return value
        if found not in (*NUMBERS, TENSOR, STR):
            frame.fail(at, f"there is no {kind.__name__} of {describe(value)}", "a number")
        return frame.emit_one(f"py::{type_}", [frame.graph_value(value, at)], type_, at)

    return convert_number


def _exactly(
    frame: Frame,
    arguments: list[Value],
    keywords: dict[str, Value],
    count: int,
    name: str,
    at: ast.AST,
) -> list[Value]:
    """The arguments, if there are so many."""
    if keywords or len(arguments) != count:
        frame.fail(
            at, f"{name} takes {count} arguments in graphs", f"{name} without other arguments"
        )
    return arguments


def to_str(frame: Frame, value: Value, at: ast.AST) -> Value:
    """str(value)"""
    if isinstance(value, Constant) and not hasattr(value.value, "itemsize"):
        return Constant(str(value.value))
    if type_of(value) == STR:
        return value
    if not is_number(value):
        frame.fail(at, f"there is no str of {describe(value)} in graphs", "a number or a str")
    return frame.emit_one("py::str", [frame.graph_value(value, at)], STR, at)


def _str(frame: Frame, arguments: list[Value], keywords: dict[str, Value], at: ast.AST) -> Value:
    return to_str(frame, _exactly(frame, arguments, keywords, 1, "str", at)[0], at)


def _len(frame: Frame, arguments: list[Value], keywords: dict[str, Value], at: ast.AST) -> Value:
    [value] = _exactly(frame, arguments, keywords, 1, "len", at)
    if isinstance(value, (Items, ModuleValue)):
        rounds = loopable(frame, value, at)
        assert isinstance(rounds, Items)
        return Constant(len(rounds.items))
    known = compute(len, value)
    if known is not None:
        return known
    found = type_of(value)
    if found not in (TENSOR, STR) and not isinstance(found and plain(found), ListOf):
        frame.fail(at, f"{describe(value)} has no len", "a list, str, tuple or Tensor")
    return frame.emit_one("py::len", [frame.graph_value(value, at)], INT, at)


def _abs(frame: Frame, arguments: list[Value], keywords: dict[str, Value], at: ast.AST) -> Value:
    [value] = _exactly(frame, arguments, keywords, 1, "abs", at)
    known = compute(abs, value)
    if known is not None:
        return known
    if type_of(value) == TENSOR:
        return frame.emit_one("core::abs", [frame.graph_value(value, at)], TENSOR, at)
    if not is_number(value):
        frame.fail(at, f"there is no abs of {describe(value)}", "a number or a Tensor")
    type_, [number] = common_number(frame, [value], at)
    return frame.emit_one("py::abs", [number], type_, at)


def _extreme(kind: str, function: Callable[..., Any], over_list: Callable[..., Any]) -> Builtin:
    """max and min."""

    def extreme(
        frame: Frame, arguments: list[Value], keywords: dict[str, Value], at: ast.AST
    ) -> Value:
        if keywords:
            frame.fail(at, f"{kind} takes no keywords in graphs", f"{kind} of the values alone")
        values = arguments
        if len(arguments) == 1:
            if not isinstance(arguments[0], Items):
                return _on_list(frame, over_list, arguments[0], at)
            values = [*arguments[0].items]
        if not values or not all(map(is_number, values)):
            frame.fail(
                at,
                f"{kind} compares numbers, not {', '.join(map(describe, values)) or 'nothing'}",
                f"opscope.tensor.{kind} for tensors",
            )
        return reduce(lambda one, other: two(frame, one, other, at), values)

    def two(frame: Frame, one: Value, other: Value, at: ast.AST) -> Value:
        known = compute(function, one, other)
        if known is not None:
            return known
        if type_of(one) == type_of(other) or {type_of(one), type_of(other)} == {INT, BOOL}:
            type_, both = common_number(frame, [one, other], at)
            return frame.emit_one(f"py::{kind}", both, type_, at)
        frame.fail(
            at, f"{kind} of an int and a float is of either type", f"{kind}(float(...), ...)"
        )

    return extreme


def _on_list(frame: Frame, function: Callable[..., Any], value: Value, at: ast.AST) -> Value:
    """The call of a function of the prelude for a list."""
    listed = to_list(frame, value, at)
    return call_function(frame, FunctionValue(function), [listed], {}, at)


def _sum(frame: Frame, arguments: list[Value], keywords: dict[str, Value], at: ast.AST) -> Value:
    start = arguments[1] if len(arguments) > 1 else keywords.get("start", Constant(0))
    if isinstance(arguments[0], Items):
        items = arguments[0].items
        return reduce(lambda one, other: binary(frame, ast.Add(), one, other, at), items, start)
    listed = to_list(frame, arguments[0], at)
    found = plain(listed.type)
    part = found.part if isinstance(found, ListOf) else found
    if part == TENSOR:
        # Python begins with 0 + the first tensor.
        return call_function(frame, FunctionValue(prelude.sum_tensors), [listed, start], {}, at)
    function = prelude.sum_floats if FLOAT in (part, type_of(start)) else prelude.sum_ints
    return call_function(frame, FunctionValue(function), [listed, start], {}, at)


def _any_all(over_list: Callable[..., Any]) -> Builtin:
    def quantify(
        frame: Frame, arguments: list[Value], keywords: dict[str, Value], at: ast.AST
    ) -> Value:
        [value] = _exactly(frame, arguments, keywords, 1, over_list.__name__, at)
        return _on_list(frame, over_list, value, at)

    return quantify


def _rounding(kind: str, function: Callable[..., Any]) -> Builtin:
    """round, math.floor and math.ceil, which give ints."""

    def rounding(
        frame: Frame, arguments: list[Value], keywords: dict[str, Value], at: ast.AST
    ) -> Value:
        [value] = _exactly(frame, arguments, keywords, 1, kind, at)
        known = compute(function, value)
        if known is not None:
            return known
        if type_of(value) == TENSOR and kind == "round":
            return frame.emit_one("core::round", [frame.graph_value(value, at)], TENSOR, at)
        if type_of(value) in (INT, BOOL):
            return need(frame, value, INT, at, "the number")
        number = need(frame, value, FLOAT, at, f"the argument of {kind}")
        return frame.emit_one(f"py::{kind}", [number], INT, at)

    return rounding


def _of_math(name: str, function: Callable[..., Any]) -> Builtin:
    """A function of math: of constants any, else those that graphs have."""

    def compute_float(
        frame: Frame, arguments: list[Value], keywords: dict[str, Value], at: ast.AST
    ) -> Value:
        known = compute(function, *arguments)
        if known is not None and not keywords:
            return known
        if name not in ("sqrt", "exp", "log") or len(arguments) != 1:
            frame.fail(
                at,
                f"math.{name} of a number that is known only at run time is not in graphs",
                "the operator on a Tensor",
            )
        number = need(frame, arguments[0], FLOAT, at, f"the argument of math.{name}")
        return frame.emit_one(f"py::{name}", [number], FLOAT, at)

    return compute_float


def _prod(frame: Frame, arguments: list[Value], keywords: dict[str, Value], at: ast.AST) -> Value:
    [value] = _exactly(frame, arguments, keywords, 1, "math.prod", at)
    if isinstance(value, Items):
        one: Value = Constant(1)
        return reduce(
            lambda left, right: binary(frame, ast.Mult(), left, right, at), value.items, one
        )
    return _on_list(frame, prelude.prod, value, at)


def _pow(frame: Frame, arguments: list[Value], keywords: dict[str, Value], at: ast.AST) -> Value:
    left, right = _exactly(frame, arguments, keywords, 2, "pow", at)
    return binary(frame, ast.Pow(), left, right, at)


def _divmod(frame: Frame, arguments: list[Value], keywords: dict[str, Value], at: ast.AST) -> Value:
    left, right = _exactly(frame, arguments, keywords, 2, "divmod", at)
    return Items(
        (
            binary(frame, ast.FloorDiv(), left, right, at),
            binary(frame, ast.Mod(), left, right, at),
        )
    )


def _range(frame: Frame, arguments: list[Value], keywords: dict[str, Value], at: ast.AST) -> Value:
    return range_of(frame, arguments, at)


def _enumerate(
    frame: Frame, arguments: list[Value], keywords: dict[str, Value], at: ast.AST
) -> Value:
    start = arguments[1] if len(arguments) > 1 else keywords.get("start", Constant(0))
    return enumerated(frame, arguments[0], start, at)


def _zip(frame: Frame, arguments: list[Value], keywords: dict[str, Value], at: ast.AST) -> Value:
    if keywords:
        frame.fail(at, "zip takes no keywords in graphs", "zip(...) without strict")
    return zipped(frame, arguments, at)


def _reversed(
    frame: Frame, arguments: list[Value], keywords: dict[str, Value], at: ast.AST
) -> Value:
    return reversed_of(frame, arguments[0], at)


def _list(frame: Frame, arguments: list[Value], keywords: dict[str, Value], at: ast.AST) -> Value:
    [value] = _exactly(frame, arguments, keywords, 1, "list", at)
    found = type_of(value)
    if isinstance(found and plain(found), ListOf):
        assert found is not None
        return frame.emit_one("py::copy", [frame.graph_value(value, at)], found, at)
    return to_list(frame, value, at)


def _tuple(frame: Frame, arguments: list[Value], keywords: dict[str, Value], at: ast.AST) -> Value:
    """A tuple of unknown length is a list, which nothing else refers to."""
    [value] = _exactly(frame, arguments, keywords, 1, "tuple", at)
    rounds = loopable(frame, value, at)
    if isinstance(rounds, Loopable):
        return _list(frame, arguments, keywords, at)
    return Items(rounds.items)


def _slice(frame: Frame, arguments: list[Value], keywords: dict[str, Value], at: ast.AST) -> Value:
    none = Constant(None)
    if len(arguments) == 1:
        return SliceValue(none, arguments[0], none)
    return SliceValue(*arguments, *[none] * (3 - len(arguments)))


def _super(frame: Frame, arguments: list[Value], keywords: dict[str, Value], at: ast.AST) -> Value:
    if arguments or frame.owner is None:
        frame.fail(at, "super takes no arguments, and is used in methods", "super()")
    return SuperValue(frame.owner, frame.read(frame.source.tree.args.args[0].arg, at))


def _type(frame: Frame, arguments: list[Value], keywords: dict[str, Value], at: ast.AST) -> Value:
    [value] = _exactly(frame, arguments, keywords, 1, "type", at)
    if not isinstance(value, ModuleValue):
        frame.fail(at, f"the type of {describe(value)} is no value", "isinstance")
    return Object(type(value.module))


def _cast(frame: Frame, arguments: list[Value], keywords: dict[str, Value], at: ast.AST) -> Value:
    return arguments[1]


def _hasattr(
    frame: Frame, arguments: list[Value], keywords: dict[str, Value], at: ast.AST
) -> Value:
    owner, name = _exactly(frame, arguments, keywords, 2, "hasattr", at)
    if not isinstance(owner, (ModuleValue, Object)) or not isinstance(name, Constant):
        frame.fail(at, "hasattr asks about modules", "isinstance")
    python = owner.module if isinstance(owner, ModuleValue) else owner.object
    return Constant(hasattr(python, str(name.value)))


def _print(frame: Frame, arguments: list[Value], keywords: dict[str, Value], at: ast.AST) -> Value:
    if keywords:
        frame.fail(at, "print takes no keywords in graphs", "print(...) of the values alone")
    frame.emit("prim::Print", [frame.graph_value(each, at) for each in arguments], [], at)
    return Constant(None)


BUILTINS: dict[Any, Builtin] = {
    builtins.abs: _abs,
    builtins.all: _any_all(prelude.all_true),
    builtins.any: _any_all(prelude.any_true),
    builtins.bool: _number_to(bool),
    builtins.divmod: _divmod,
    builtins.enumerate: _enumerate,
    builtins.float: _number_to(float),
    builtins.hasattr: _hasattr,
    builtins.int: _number_to(int),
    builtins.len: _len,
    builtins.list: _list,
    builtins.max: _extreme("max", max, prelude.greatest),
    builtins.min: _extreme("min", min, prelude.least),
    builtins.pow: _pow,
    builtins.print: _print,
    builtins.range: _range,
    builtins.reversed: _reversed,
    builtins.round: _rounding("round", round),
    builtins.slice: _slice,
    builtins.str: _str,
    builtins.sum: _sum,
    builtins.super: _super,
    builtins.tuple: _tuple,
    builtins.type: _type,
    builtins.zip: _zip,
    math.ceil: _rounding("ceil", math.ceil),
    math.floor: _rounding("floor", math.floor),
    math.prod: _prod,
    typing.cast: _cast,
    **{
        function: _of_math(name, function)
        for name, function in vars(math).items()
        if callable(function) and name not in ("ceil", "floor", "prod")
    },
}
