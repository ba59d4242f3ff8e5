"""Reductions with other options than the core's: standard deviation, norms, products."""

from __future__ import annotations

from opscope.tensor.jit.torchscript.table import cast, need, register
from opscope.tensor.jit.torchscript.values import Value
from opscope.tensor.jit.torchscript.writer import Writer


def _dims(dim: Value) -> Value:
    return [dim] if isinstance(dim, int) else dim or None


def _spread(writer: Writer, name: str, x: Value, *given: Value, **named: Value) -> Value:
    """`(unbiased)`, `(dim, unbiased, keepdim)`, or `(dim, correction=, keepdim=)`."""
    dim, unbiased, keepdim = (None, given[0], False) if given[:1] in ((True,), (False,)) else (
        *given, *(None, True, False)[len(given) :]
    )  # fmt: skip
    unbiased, keepdim = named.get("unbiased", unbiased), named.get("keepdim", keepdim)
    dim, correction = named.get("dim", dim), named.get("correction", int(unbiased))
    correction = 1 if correction is None else correction
    need(isinstance(correction, int), "with a correction that is no whole number")
    return writer.core(name, x, _dims(dim), correction, keepdim)


@register("std")
def _std(writer: Writer, x: Value, *given: Value, **named: Value) -> Value:
    return _spread(writer, "std", x, *given, **named)


@register("var")
def _var(writer: Writer, x: Value, *given: Value, **named: Value) -> Value:
    return _spread(writer, "var", x, *given, **named)


@register("norm linalg_vector_norm frobenius_norm")
def _norm(
    writer: Writer,
    x: Value,
    order: Value = 2,
    dim: Value = None,
    keepdim: Value = False,
    dtype: Value = None,
) -> Value:
    need(order in (1, 2, None), f"of order {order}")
    x = cast(writer, x, dtype)
    if order == 1:
        return writer.core("sum", writer.core("abs", x), _dims(dim), keepdim)
    squares = writer.core("sum", writer.core("mul", x, x), _dims(dim), keepdim)
    return writer.core("sqrt", squares)


@register("prod")
def _prod(
    writer: Writer, x: Value, dim: Value = None, keepdim: Value = False, dtype: Value = None
) -> Value:
    return writer.core("prod", cast(writer, x, dtype), _dims(dim), keepdim)


@register("cumprod")
def _cumprod(writer: Writer, x: Value, dim: Value, dtype: Value = None) -> Value:
    return writer.core("cumprod", cast(writer, x, dtype), dim)


@register("count_nonzero")
def _count_nonzero(writer: Writer, x: Value, dim: Value = None) -> Value:
    return writer.core("count_nonzero", x, _dims(dim))
