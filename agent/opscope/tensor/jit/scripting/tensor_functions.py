"""Script functions of opscope.tensor that call several operators."""

from __future__ import annotations

import ast
import functools
from typing import Any

from opscope import _tensor
from opscope.tensor import forms
from opscope.tensor.jit.scripting.convert import convert
from opscope.tensor.jit.scripting.frame import Frame
from opscope.tensor.jit.scripting.graph import GraphValue
from opscope.tensor.jit.scripting.operator_calls import call_operator
from opscope.tensor.jit.scripting.types import (
    BOOL,
    DTYPE,
    FLOAT,
    INT,
    TENSOR,
    ListOf,
    TupleOf,
    Type,
    optional,
)
from opscope.tensor.jit.scripting.values import Constant, Items, Value, describe, type_of

_EXTREMES = {
    forms.max: ("max", "amax", "maximum"),
    forms.min: ("min", "amin", "minimum"),
}


@functools.cache
def _names() -> dict[int, str]:
    """The operators by what calls them."""
    found = {id(each): name for name, each in _tensor.operators.items()}
    found.update({id(each): f"core::{name}" for name, each in _tensor.functions.items()})
    return found


def operator_name(python: Any) -> str | None:
    """The operator that a callable of Python is."""
    if isinstance(python, _tensor.Operator):
        return python.name
    return _names().get(id(python))


def call_tensor_function(
    frame: Frame, python: Any, arguments: list[Value], keywords: dict[str, Value], at: ast.AST
) -> Value | None:
    """The call of a function that is treated here; None for others."""
    if python in (forms.max, forms.min):
        return _extreme(frame, _EXTREMES[python], arguments, keywords, at)
    if python is _tensor.tensor:
        return _tensor_of(frame, arguments, keywords, at)
    return None


def _extreme(
    frame: Frame,
    names: tuple[str, str, str],
    arguments: list[Value],
    keywords: dict[str, Value],
    at: ast.AST,
) -> Value:
    """max and min in their three forms, which the arguments' types tell apart."""
    along, of_all, of_two = names
    second = arguments[1] if len(arguments) > 1 else keywords.get("dim", Constant(None))
    if type_of(second) == TENSOR or "other" in keywords:
        return call_operator(frame, f"core::{of_two}", arguments, keywords, at)
    if isinstance(second, Constant) and second.value is None:
        return call_operator(frame, f"core::{of_all}", arguments[:1], {}, at)
    return call_operator(frame, f"core::{along}", arguments, keywords, at)


def _tensor_of(
    frame: Frame, arguments: list[Value], keywords: dict[str, Value], at: ast.AST
) -> Value:
    """tensor(data, dtype=...)"""
    if len(arguments) != 1 or not {*keywords} <= {"dtype"}:
        frame.fail(at, "tensor() takes the data and dtype= in graphs", "tensor(data, dtype=...)")
    data = _listed(frame, arguments[0], at)
    if data is None:
        frame.fail(
            at,
            f"tensor() takes numbers and lists of numbers, not {describe(arguments[0])}",
            "a list of numbers of one type",
        )
    dtype = keywords.get("dtype", Constant(None))
    made = convert(frame, dtype, optional(DTYPE), at)
    if made is None:
        frame.fail(at, f"dtype= is to be a dtype, not {describe(dtype)}", "dtype=float32")
    return frame.emit_one("py::tensor", [data, made], TENSOR, at)


def _listed(frame: Frame, value: Value, at: ast.AST) -> GraphValue | None:
    """Data as numbers or lists of them; tuples as lists."""
    if not isinstance(value, Items):
        found = type_of(value)
        return None if found in (None, TENSOR) else frame.graph_value(value, at)
    type_ = _list_type(TupleOf(tuple(type_of(each) or TENSOR for each in value.items)))
    return None if type_ is None else convert(frame, value, type_, at)


def _list_type(type_: Type) -> Type | None:
    """The type of a list with those items; an int among floats is a float."""
    if isinstance(type_, ListOf):
        part = _list_type(type_.part)
        return part and ListOf(part)
    if not isinstance(type_, TupleOf):
        return type_ if type_ in (INT, FLOAT, BOOL) else None
    if not type_.parts:
        return ListOf(FLOAT)
    part = functools.reduce(_wider, map(_list_type, type_.parts))
    return part and ListOf(part)


def _wider(one: Type | None, other: Type | None) -> Type | None:
    """The type of both: of an int and a float, float."""
    if isinstance(one, ListOf) and isinstance(other, ListOf):
        part = _wider(one.part, other.part)
        return part and ListOf(part)
    if one == other:
        return one
    return FLOAT if {one, other} == {INT, FLOAT} else None
