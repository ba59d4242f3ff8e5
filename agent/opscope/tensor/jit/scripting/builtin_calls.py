"""Script calls of Python's built-in functions and classes."""

from __future__ import annotations

import ast
import builtins
import math
import typing
from collections.abc import Callable
from functools import reduce
from typing import Any

from opscope.tensor.jit.scripting import prelude
from opscope.tensor.jit.scripting.frame import Frame
from opscope.tensor.jit.scripting.functions import call_function
from opscope.tensor.jit.scripting.iteration import (
    enumerated,
    loopable,
    range_of,
    reversed_of,
    zipped,
)
from opscope.tensor.jit.scripting.listing import to_list
from opscope.tensor.jit.scripting.number_calls import OF_NUMBERS, Builtin, exactly
from opscope.tensor.jit.scripting.numbers import binary, common_number, compute, is_number
from opscope.tensor.jit.scripting.types import BOOL, FLOAT, INT, STR, TENSOR, ListOf, plain
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


def _len(frame: Frame, arguments: list[Value], keywords: dict[str, Value], at: ast.AST) -> Value:
    [value] = exactly(frame, arguments, keywords, 1, "len", at)
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
        onto = prelude.sum_onto if type_of(start) == TENSOR else prelude.sum_tensors
        return call_function(frame, FunctionValue(onto), [listed, start], {}, at)
    function = prelude.sum_floats if FLOAT in (part, type_of(start)) else prelude.sum_ints
    return call_function(frame, FunctionValue(function), [listed, start], {}, at)


def _any_all(over_list: Callable[..., Any]) -> Builtin:
    def quantify(
        frame: Frame, arguments: list[Value], keywords: dict[str, Value], at: ast.AST
    ) -> Value:
        [value] = exactly(frame, arguments, keywords, 1, over_list.__name__, at)
        return _on_list(frame, over_list, value, at)

    return quantify


def _prod(frame: Frame, arguments: list[Value], keywords: dict[str, Value], at: ast.AST) -> Value:
    [value] = exactly(frame, arguments, keywords, 1, "math.prod", at)
    if isinstance(value, Items):
        one: Value = Constant(1)
        return reduce(
            lambda left, right: binary(frame, ast.Mult(), left, right, at), value.items, one
        )
    return _on_list(frame, prelude.prod, value, at)


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
    [value] = exactly(frame, arguments, keywords, 1, "list", at)
    found = type_of(value)
    if isinstance(found and plain(found), ListOf):
        assert found is not None
        return frame.emit_one("py::copy", [frame.graph_value(value, at)], found, at)
    return to_list(frame, value, at)


def _tuple(frame: Frame, arguments: list[Value], keywords: dict[str, Value], at: ast.AST) -> Value:
    """A tuple of unknown length is a list, which nothing else refers to."""
    [value] = exactly(frame, arguments, keywords, 1, "tuple", at)
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
    [value] = exactly(frame, arguments, keywords, 1, "type", at)
    if not isinstance(value, ModuleValue):
        frame.fail(at, f"the type of {describe(value)} is no value", "isinstance")
    return Object(type(value.module))


def _cast(frame: Frame, arguments: list[Value], keywords: dict[str, Value], at: ast.AST) -> Value:
    return arguments[1]


def _hasattr(
    frame: Frame, arguments: list[Value], keywords: dict[str, Value], at: ast.AST
) -> Value:
    owner, name = exactly(frame, arguments, keywords, 2, "hasattr", at)
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
    builtins.all: _any_all(prelude.all_true),
    builtins.any: _any_all(prelude.any_true),
    builtins.enumerate: _enumerate,
    builtins.hasattr: _hasattr,
    builtins.len: _len,
    builtins.list: _list,
    builtins.max: _extreme("max", max, prelude.greatest),
    builtins.min: _extreme("min", min, prelude.least),
    builtins.print: _print,
    builtins.range: _range,
    builtins.reversed: _reversed,
    builtins.slice: _slice,
    builtins.sum: _sum,
    builtins.super: _super,
    builtins.tuple: _tuple,
    builtins.type: _type,
    builtins.zip: _zip,
    math.prod: _prod,
    typing.cast: _cast,
    **OF_NUMBERS,
}
