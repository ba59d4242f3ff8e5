"""Operators that make tensors. They ignore layout, device and pinned memory."""

from __future__ import annotations

from opscope.tensor.jit.torchscript.table import TABLE, dtype_of, register
from opscope.tensor.jit.torchscript.values import Value
from opscope.tensor.jit.torchscript.writer import Writer


def _dtype(writer: Writer, dtype: Value) -> Value:
    return None if dtype is None else dtype_of(writer, dtype)


def _made(name: str) -> None:
    def of_size(writer: Writer, size: Value, dtype: Value = None, **options: Value) -> Value:
        return writer.core(name, size, _dtype(writer, dtype))

    def like(
        writer: Writer, x: Value, dtype: Value = None, *rest: Value, **options: Value
    ) -> Value:
        return writer.core(f"{name}_like", x, _dtype(writer, dtype))

    def new(
        writer: Writer, x: Value, size: Value, dtype: Value = None, *rest: Value, **options: Value
    ) -> Value:
        own = writer.one("py::dtype", [x], "Dtype") if dtype is None else dtype_of(writer, dtype)
        return writer.core(name, size, own)

    TABLE[name], TABLE[f"{name}_like"], TABLE[f"new_{name}"] = of_size, like, new


_made("zeros")
_made("ones")


@register("eye")
def _eye(
    writer: Writer, rows: Value, columns: Value = None, dtype: Value = None, **options: Value
) -> Value:
    return writer.core("eye", rows, columns, _dtype(writer, dtype))


@register("full")
def _full(
    writer: Writer, size: Value, value: Value, dtype: Value = None, **options: Value
) -> Value:
    return writer.core("full", size, value, _dtype(writer, dtype))


@register("full_like")
def _full_like(
    writer: Writer, x: Value, value: Value, dtype: Value = None, *rest: Value, **options: Value
) -> Value:
    return writer.core("full_like", x, value, _dtype(writer, dtype))


@register("new_full")
def _new_full(
    writer: Writer,
    x: Value,
    size: Value,
    value: Value,
    dtype: Value = None,
    *rest: Value,
    **options: Value,
) -> Value:
    own = writer.one("py::dtype", [x], "Dtype") if dtype is None else dtype_of(writer, dtype)
    return writer.core("full", size, value, own)


@register("tensor")
def _tensor(writer: Writer, value: Value, dtype: Value = None, **options: Value) -> Value:
    return writer.one("py::tensor", [value, _dtype(writer, dtype)], "Tensor")


@register("arange")
def _arange(writer: Writer, *bounds: Value, dtype: Value = None, **options: Value) -> Value:
    """Of an end; a start and an end; or a start, an end and a step."""
    start, end, step = {1: (0, *bounds, 1), 2: (*bounds, 1)}.get(len(bounds), bounds[:3])
    return writer.core("arange", start, end, step, _dtype(writer, dtype))
