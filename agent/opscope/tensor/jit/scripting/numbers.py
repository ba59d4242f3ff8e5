"""Script Python's operators on numbers, strings, lists and tensors; compute those of constants."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from opscope.tensor.jit.scripting.convert import convert
from opscope.tensor.jit.scripting.dispatch import expression, scripts
from opscope.tensor.jit.scripting.frame import Frame
from opscope.tensor.jit.scripting.graph import GraphValue
from opscope.tensor.jit.scripting.types import (
    BOOL,
    FLOAT,
    INT,
    NUMBERS,
    STR,
    TENSOR,
    ListOf,
    OptionalOf,
    Type,
    join,
    plain,
)
from opscope.tensor.jit.scripting.values import Constant, Items, Value, describe, type_of

# The suffix of py::, the operator on tensors, what Python computes.
BINARY: dict[type[ast.operator], tuple[str, str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("add", "add", operator.add),
    ast.Sub: ("sub", "sub", operator.sub),
    ast.Mult: ("mul", "mul", operator.mul),
    ast.Div: ("truediv", "div", operator.truediv),
    ast.FloorDiv: ("floordiv", "floor_divide", operator.floordiv),
    ast.Mod: ("mod", "remainder", operator.mod),
    ast.Pow: ("pow", "pow", operator.pow),
    ast.MatMult: ("", "matmul", operator.matmul),
    ast.BitAnd: ("and", "bitwise_and", operator.and_),
    ast.BitOr: ("or", "bitwise_or", operator.or_),
    ast.BitXor: ("xor", "bitwise_xor", operator.xor),
    ast.LShift: ("lshift", "bitwise_left_shift", operator.lshift),
    ast.RShift: ("rshift", "bitwise_right_shift", operator.rshift),
}
_BITS = ("and", "or", "xor", "lshift", "rshift")
_UNARY: dict[type[ast.unaryop], tuple[str, str, Callable[[Any], Any]]] = {
    ast.USub: ("neg", "neg", operator.neg),
    ast.Invert: ("invert", "bitwise_not", operator.invert),
    ast.UAdd: ("", "", operator.pos),
}
_LONGEST = 10_000
"""Of texts that are computed while scripting."""


def compute(function: Callable[..., Any], *values: Value) -> Constant | None:
    """The result for constants; None if it is only known at run time, as where it raises."""
    if not all(isinstance(value, Constant) for value in values):
        return None
    numbers = [value.value for value in values if isinstance(value, Constant)]
    if _may_be_huge(function, numbers):
        return None
    try:
        result = function(*numbers)
    except Exception:
        return None
    if isinstance(result, str) and len(result) > _LONGEST:
        return None
    if type(result) is int and not -(2**63) <= result < 2**63:
        return None
    return Constant(result) if isinstance(result, (bool, int, float, str)) else None


def _may_be_huge(function: Callable[..., Any], numbers: list[Any]) -> bool:
    """Whether computing might take for ever; such a result does not fit into a graph."""
    if any(isinstance(each, int) and abs(each) > 2**63 for each in numbers):
        return True
    if function in (operator.pow, operator.lshift):
        return isinstance(numbers[1], int) and numbers[1] > 64
    is_repeated = function is operator.mul and any(isinstance(each, str) for each in numbers)
    return is_repeated and any(isinstance(each, int) and each > _LONGEST for each in numbers)


def common_number(frame: Frame, values: list[Value], at: ast.AST) -> tuple[Type, list[GraphValue]]:
    """Numbers as numbers of one type, as Python's arithmetic makes them."""
    type_ = FLOAT if any(type_of(value) == FLOAT for value in values) else INT
    found = [convert(frame, value, type_, at) for value in values]
    return type_, [each for each in found if each is not None]


def is_number(value: Value) -> bool:
    """Whether it is an int, float or bool."""
    return type_of(value) in NUMBERS


def binary(frame: Frame, op: ast.operator, left: Value, right: Value, at: ast.AST) -> Value:
    """What a binary operator gives."""
    python, core, function = BINARY[type(op)]
    known = compute(function, left, right)
    if known is not None:
        return known
    kinds = type_of(left), type_of(right)
    if TENSOR in kinds and all(kind == TENSOR or kind in NUMBERS for kind in kinds):
        if python == "" and kinds != (TENSOR, TENSOR):
            frame.fail(at, "@ multiplies tensors", "* for a number")
        inputs = [frame.graph_value(left, at), frame.graph_value(right, at)]
        return frame.emit_one(f"core::{core}", inputs, TENSOR, at)
    if is_number(left) and is_number(right) and python:
        return _arithmetic(frame, python, left, right, at)
    if isinstance(op, (ast.Add, ast.Mult)):
        found = _sequences(frame, op, left, right, at)
        if found is not None:
            return found
    remedy = "values of types that have it, such as int(...), float(...) or str(...) of one of them"
    for value, kind in zip((left, right), kinds, strict=True):
        if isinstance(kind, OptionalOf):
            remedy = "a test before it that excludes None: assert x is not None"
        elif kind is None:
            frame.graph_value(value, at)
    frame.fail(at, f"there is no {_sign(op)} of {describe(left)} and {describe(right)}", remedy)


def _sign(op: ast.operator) -> str:
    node = ast.BinOp(ast.Name("a"), op, ast.Name("b"))
    return ast.unparse(node).split()[1]


def _arithmetic(frame: Frame, kind: str, left: Value, right: Value, at: ast.AST) -> GraphValue:
    if kind in _BITS:
        if FLOAT in (type_of(left), type_of(right)):
            frame.fail(at, f"there is no bitwise {kind} of floats", "int(...) of both")
        if type_of(left) == type_of(right) == BOOL and kind in ("and", "or", "xor"):
            both = [frame.graph_value(left, at), frame.graph_value(right, at)]
            return frame.emit_one(f"py::{kind}", both, BOOL, at)
    if (
        kind == "pow"
        and isinstance(right, Constant)
        and isinstance(right.value, int)
        and right.value < 0
    ):
        right = Constant(float(right.value))
    type_, both = common_number(frame, [left, right], at)
    return frame.emit_one(f"py::{kind}", both, FLOAT if kind == "truediv" else type_, at)


def _sequences(
    frame: Frame, op: ast.operator, left: Value, right: Value, at: ast.AST
) -> Value | None:
    """+ of texts, tuples and lists; * of a text or list and an int."""
    if isinstance(op, ast.Mult):
        if is_number(left):
            left, right = right, left
        if isinstance(left, Items) and isinstance(right, Constant) and not left.is_list:
            return Items(left.items * int(right.value)) if type(right.value) is int else None
        if type_of(right) != INT:
            return None
        kind = STR if type_of(left) == STR else _list_type(left)
        made = kind and convert(frame, left, kind, at)
        if not kind or not made:
            return None
        return frame.emit_one("py::mul", [made, frame.graph_value(right, at)], kind, at)
    if type_of(left) == type_of(right) == STR:
        both = [frame.graph_value(left, at), frame.graph_value(right, at)]
        return frame.emit_one("py::add", both, STR, at)
    if isinstance(left, Items) and isinstance(right, Items) and not left.is_list | right.is_list:
        return Items(left.items + right.items)
    lists = [_list_type(left), _list_type(right)]
    for wanted in lists:
        if wanted is not None:
            made_left, made_right = (convert(frame, each, wanted, at) for each in (left, right))
            if made_left and made_right:
                return frame.emit_one("py::add", [made_left, made_right], wanted, at)
    return None


def _list_type(value: Value) -> Type | None:
    """The type of a list; of items that are one, that of the first."""
    found = type_of(value)
    if isinstance(value, Items) and value.is_list and value.items:
        part = type_of(value.items[0])
        return part and ListOf(part)
    return plain(found) if isinstance(found, ListOf) else None


def same_lists(frame: Frame, left: Value, right: Value, at: ast.AST) -> list[GraphValue] | None:
    """Two lists of one type, or None."""
    types = [_list_type(left), _list_type(right)]
    for wanted in types:
        if wanted is not None and join(wanted, wanted):
            both = [convert(frame, each, wanted, at) for each in (left, right)]
            found = [each for each in both if each is not None]
            if len(found) == len(both):
                return found
    return None


@scripts(ast.BinOp)
def _binary(frame: Frame, node: ast.BinOp) -> Value:
    left = expression(frame, node.left)
    return binary(frame, node.op, left, expression(frame, node.right), node)


def unary(frame: Frame, op: ast.unaryop, value: Value, at: ast.AST) -> Value:
    """What -, + or ~ gives."""
    python, core, function = _UNARY[type(op)]
    known = compute(function, value)
    if known is not None:
        return known
    if type_of(value) == TENSOR:
        if not core:
            return value
        return frame.emit_one(f"core::{core}", [frame.graph_value(value, at)], TENSOR, at)
    if is_number(value) and (python != "invert" or type_of(value) != FLOAT):
        type_, [number] = common_number(frame, [value], at)
        return frame.emit_one(f"py::{python}", [number], type_, at) if python else number
    frame.fail(
        at,
        f"there is no {ast.unparse(at)[0]} of {describe(value)}",
        "an int or a Tensor" if python == "invert" else "a number or a Tensor",
    )
