"""Operators of numbers, lists and sizes."""

from __future__ import annotations

from opscope.tensor.jit.torchscript import scalars
from opscope.tensor.jit.torchscript.ranges import Range
from opscope.tensor.jit.torchscript.table import (
    TABLE,
    MissingError,
    Translation,
    need,
    register,
)
from opscope.tensor.jit.torchscript.values import OwnList, Symbol, Value, is_tensor
from opscope.tensor.jit.torchscript.writer import Writer


@register("size")
def _size(writer: Writer, x: Value, dim: Value = None) -> Value:
    return scalars.size(writer, x, dim)


@register("dim")
def _dim(writer: Writer, x: Value) -> Value:
    return writer.one("py::dim", [x], "int")


@register("numel")
def _numel(writer: Writer, x: Value) -> Value:
    return writer.one("py::numel", [x], "int")


@register("Int IntImplicit")
def _int(writer: Writer, x: Value) -> Value:
    return scalars.convert(writer, "int", x)


@register("Float FloatImplicit")
def _float(writer: Writer, x: Value) -> Value:
    return scalars.convert(writer, "float", x)


@register("ScalarImplicit")
def _scalar(writer: Writer, x: Value) -> Value:
    return x


def _is_value(writer: Writer, a: Symbol, b: Value) -> Value:
    """Whether an optional bool is True, or False."""
    need(isinstance(b, bool) and a.type == "Optional[bool]", "of an optional that is no bool")
    with writer.block() as without:
        without.results.append(writer.symbol(False).name)
    with writer.block() as with_one:
        found = writer.one("prim::Unwrap", [a], "bool")
        with_one.results.append(writer.one("py::eq", [found, b], "bool").name)
    is_none = writer.one("py::is_none", [a], "bool")
    return writer.conditional(is_none, (without, with_one), ["bool"])[0]


@register("__is__")
def _is(writer: Writer, a: Value, b: Value) -> Value:
    if isinstance(a, Symbol) and a.type.startswith("Optional["):
        return writer.one("py::is_none", [a], "bool") if b is None else _is_value(writer, a, b)
    return a is None and b is None if b is None or a is None else a is b


@register("__isnot__")
def _isnot(writer: Writer, a: Value, b: Value) -> Value:
    found = _is(writer, a, b)
    return writer.one("py::not", [found], "bool") if isinstance(found, Symbol) else not found


@register("__getitem__")
def _getitem(writer: Writer, x: Value, index: Value) -> Value:
    return scalars.item(writer, x, index)


@register("append")
def _append(writer: Writer, x: Value, item: Value) -> Value:
    if isinstance(x, Symbol):
        writer.add("py::append", [x, item], [])
        return x
    need(isinstance(x, OwnList) and x.block is writer.here, "to a list of another block")
    x.append(item)
    return x


@register("__range_length")
def _range_length(writer: Writer, start: Value, stop: Value, step: Value) -> Value:
    return Range(start, stop, step).rounds(writer)


@register("__derive_index")
def _derive_index(writer: Writer, round: Value, start: Value, step: Value) -> Value:
    return Range(start, 0, step).item_at(writer, round)


@register("list")
def _list(writer: Writer, x: Value) -> Value:
    return list(x) if isinstance(x, list | tuple) else x


@register("format")
def _format(writer: Writer, *values: Value) -> Value:
    return scalars.text(*values)


def _of_number(name: str, of_tensor: Translation | None) -> None:
    """Of a number, or what `of_tensor` does with a tensor."""

    def translate(writer: Writer, x: Value) -> Value:
        if not is_tensor(x):
            return scalars.one(writer, name, x)
        if of_tensor is None:
            raise MissingError("of a tensor")
        return of_tensor(writer, x)

    TABLE[name] = translate


for _name in ("__not__", "neg", "floor", "ceil", "sqrt"):
    _of_number(_name, TABLE.get(_name))
_of_number("len", lambda writer, x: scalars.size(writer, x, 0))


def _of_numbers(name: str, of_tensors: str) -> None:
    def translate(writer: Writer, a: Value, b: Value) -> Value:
        if not scalars.are_numbers(a, b):
            return writer.core(of_tensors, a, b)
        return scalars.two(writer, name, a, b)

    TABLE[name] = translate


for _name, _of_tensors in {
    "floordiv": "floor_divide", "__and__": "bitwise_and", "__or__": "bitwise_or",
    "__xor__": "bitwise_xor",
}.items():  # fmt: skip
    _of_numbers(_name, _of_tensors)
