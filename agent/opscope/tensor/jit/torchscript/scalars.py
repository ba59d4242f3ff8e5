"""Operations on numbers, texts and lists: computed where they are constants, else nodes `py::`."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from opscope.tensor.jit.torchscript.values import Symbol, Value, is_constant, is_tensor, type_of
from opscope.tensor.jit.torchscript.writer import Writer

_TWO: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "add": ("add", operator.add),
    "sub": ("sub", operator.sub),
    "mul": ("mul", operator.mul),
    "div": ("truediv", operator.truediv),
    "floordiv": ("floordiv", operator.floordiv),
    "floor_divide": ("floordiv", operator.floordiv),
    "remainder": ("mod", operator.mod),
    "pow": ("pow", operator.pow),
    "max": ("max", max),
    "min": ("min", min),
    "eq": ("eq", operator.eq),
    "ne": ("ne", operator.ne),
    "lt": ("lt", operator.lt),
    "le": ("le", operator.le),
    "gt": ("gt", operator.gt),
    "ge": ("ge", operator.ge),
    "__and__": ("and", operator.and_),
    "__or__": ("or", operator.or_),
    "__xor__": ("xor", operator.xor),
}
_COMPARISONS = {"eq", "ne", "lt", "le", "gt", "ge"}
_ONE: dict[str, tuple[str, Callable[[Any], Any], str]] = {
    "neg": ("neg", operator.neg, ""),
    "__not__": ("not", operator.not_, "bool"),
    "floor": ("floor", math.floor, "int"),
    "ceil": ("ceil", math.ceil, "int"),
    "sqrt": ("sqrt", math.sqrt, "float"),
    "len": ("len", len, "int"),
}
_CONVERSIONS: dict[str, Callable[[Any], Any]] = {"int": int, "float": float, "bool": bool}
_TEXT_LIMIT = 1 << 16
_POWER_LIMIT = 1024


def two(writer: Writer, name: str, a: Value, b: Value) -> Value:
    """An operation on two values, none of them a tensor. KeyError for an unknown one."""
    kind, compute = _TWO[name]
    if is_constant(a) and is_constant(b):
        return _computed(kind, compute, a, b)
    types = {type_of(a), type_of(b)}
    if types == {"int", "float"}:
        a, b = convert(writer, "float", a), convert(writer, "float", b)
    result = "bool" if kind in _COMPARISONS else "float" if kind == "truediv" else type_of(a)
    return writer.one(f"py::{kind}", [a, b], result)


def _computed(kind: str, compute: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """Of constants, which a hostile file could let grow without end."""
    if kind == "pow" and isinstance(b, int) and abs(b) > _POWER_LIMIT:
        raise ValueError(f"a power of {b}")
    if kind == "mul" and not (_is_number(a) and _is_number(b)):
        raise ValueError("a product of a list or text")
    found = compute(a, b)
    if isinstance(found, int) and not -(1 << 63) <= found < 1 << 63:
        raise ValueError("an int of more than 64 bits")
    if isinstance(found, list | tuple | str) and len(found) > _TEXT_LIMIT:
        raise ValueError(f"a list or text of more than {_TEXT_LIMIT} items")
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def truncated(writer: Writer, a: Value, b: Value) -> Value:
    """The quotient of two ints, rounded to zero."""
    if is_constant(a) and is_constant(b):
        found = abs(a) // abs(b)
        return found if (a < 0) == (b < 0) else -found
    found = two(writer, "floordiv", *(writer.one("py::abs", [each], "int") for each in (a, b)))
    for each in (a, b):
        least = writer.one("py::max", [each, -1], "int")
        found = two(writer, "mul", found, writer.one("py::min", [least, 1], "int"))
    return found


def one(writer: Writer, name: str, value: Value) -> Value:
    """The same of one value."""
    kind, compute, result = _ONE[name]
    if is_constant(value) or (name == "len" and isinstance(value, list | tuple)):
        return compute(value)
    return writer.one(f"py::{kind}", [value], result or type_of(value))


def convert(writer: Writer, name: str, value: Value) -> Value:
    """int(value), float(value) or bool(value)."""
    if is_constant(value):
        return _CONVERSIONS[name](value)
    if isinstance(value, Symbol) and value.type == name:
        return value
    return writer.one(f"py::{name}", [value], name)


def item(writer: Writer, value: Value, index: Value) -> Value:
    """value[index]."""
    if isinstance(value, list | tuple) and isinstance(index, int):
        return value[index]
    kind = type_of(value)
    if kind.startswith("List["):
        return writer.one("py::getitem", [value, index], kind.removeprefix("List[")[:-1])
    raise ValueError(f"a subscript of {kind}")


def size(writer: Writer, tensor: Value, dim: Value = None) -> Symbol:
    if dim is None:
        return writer.one("py::size", [tensor], "List[int]")
    return writer.one("py::size", [tensor, dim], "int")


def text(form: Value, *values: Value) -> Value:
    """str.format of constants; what is not known yet is shown by its type."""
    shown = [each if is_constant(each) else f"<{type_of(each)}>" for each in values]
    if not isinstance(form, str) or len(form) > _TEXT_LIMIT:
        return "an error"
    for each in shown:
        form = form.replace("{}", str(each), 1)
    return form[:_TEXT_LIMIT]


def are_numbers(*values: Value) -> bool:
    """Whether none of them is a tensor."""
    return not any(map(is_tensor, values))


NAMES = frozenset((*_TWO, *_ONE))
TWO = frozenset(_TWO)
