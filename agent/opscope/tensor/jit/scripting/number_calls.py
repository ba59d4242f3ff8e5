"""Script calls of Python's functions of numbers and strings, and of `math`."""

from __future__ import annotations

import ast
import builtins
import math
from collections.abc import Callable
from typing import Any, TypeAlias

from opscope.tensor.jit.scripting.convert import need
from opscope.tensor.jit.scripting.frame import Frame
from opscope.tensor.jit.scripting.graph import GraphValue
from opscope.tensor.jit.scripting.numbers import binary, common_number, compute, is_number
from opscope.tensor.jit.scripting.truth import truth
from opscope.tensor.jit.scripting.types import BOOL, FLOAT, INT, NUMBERS, STR, TENSOR
from opscope.tensor.jit.scripting.values import (
    Constant,
    Items,
    Value,
    describe,
    type_of,
)

Builtin: TypeAlias = Callable[[Frame, list[Value], dict[str, Value], ast.AST], Value]
"""Scripts a call: the frame, the arguments, the keywords, the place."""


def exactly(
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


def _number_to(kind: type) -> Builtin:
    """int, float and bool."""
    type_ = {int: INT, float: FLOAT, bool: BOOL}[kind]

    def convert_number(
        frame: Frame, arguments: list[Value], keywords: dict[str, Value], at: ast.AST
    ) -> Value:
        if not arguments:
            return Constant(kind())
        [value] = exactly(frame, arguments, keywords, 1, kind.__name__, at)
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
    return to_str(frame, exactly(frame, arguments, keywords, 1, "str", at)[0], at)


def _abs(frame: Frame, arguments: list[Value], keywords: dict[str, Value], at: ast.AST) -> Value:
    [value] = exactly(frame, arguments, keywords, 1, "abs", at)
    known = compute(abs, value)
    if known is not None:
        return known
    if type_of(value) == TENSOR:
        return frame.emit_one("core::abs", [frame.graph_value(value, at)], TENSOR, at)
    if not is_number(value):
        frame.fail(at, f"there is no abs of {describe(value)}", "a number or a Tensor")
    type_, [number] = common_number(frame, [value], at)
    return frame.emit_one("py::abs", [number], type_, at)


def _rounding(kind: str, function: Callable[..., Any]) -> Builtin:
    """round, math.floor and math.ceil, which give ints."""

    def rounding(
        frame: Frame, arguments: list[Value], keywords: dict[str, Value], at: ast.AST
    ) -> Value:
        [value] = exactly(frame, arguments, keywords, 1, kind, at)
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


def _pow(frame: Frame, arguments: list[Value], keywords: dict[str, Value], at: ast.AST) -> Value:
    left, right = exactly(frame, arguments, keywords, 2, "pow", at)
    return binary(frame, ast.Pow(), left, right, at)


def _divmod(frame: Frame, arguments: list[Value], keywords: dict[str, Value], at: ast.AST) -> Value:
    left, right = exactly(frame, arguments, keywords, 2, "divmod", at)
    return Items(
        (
            binary(frame, ast.FloorDiv(), left, right, at),
            binary(frame, ast.Mod(), left, right, at),
        )
    )


OF_NUMBERS: dict[Any, Builtin] = {
    builtins.abs: _abs,
    builtins.bool: _number_to(bool),
    builtins.divmod: _divmod,
    builtins.float: _number_to(float),
    builtins.int: _number_to(int),
    builtins.pow: _pow,
    builtins.round: _rounding("round", round),
    builtins.str: _str,
    math.ceil: _rounding("ceil", math.ceil),
    math.floor: _rounding("floor", math.floor),
    **{
        function: _of_math(name, function)
        for name, function in vars(math).items()
        if callable(function) and name not in ("ceil", "floor", "prod")
    },
}
