"""Operators that query a tensor or the environment: dtype, device, modes.

A graph runs where the core runs: on the CPU, without autocast. A branch on whether a gradient is
recorded only chooses between ways to compute the same.
"""

from __future__ import annotations

from functools import reduce

from opscope.tensor.jit.torchscript.table import TABLE, Translation, dtype_of, register
from opscope.tensor.jit.torchscript.values import Symbol, Value, is_constant, type_of
from opscope.tensor.jit.torchscript.writer import Writer

_FLOATS = (5, 6, 7, 15)


def _always(value: Value) -> Translation:
    return lambda writer, *arguments: value


for _name in ("is_cuda", "requires_grad", "is_nested", "is_sparse", "is_quantized", "is_mkldnn"):
    TABLE[f"ops.prim.{_name}"] = _always(False)
for _name in ("is_grad_enabled", "is_autocast_enabled", "is_autocast_cpu_enabled", "is_complex"):
    TABLE[_name] = _always(False)
for _name in ("_is_tracing", "is_scripting"):
    TABLE[_name] = _always(_name == "is_scripting")
TABLE["ops.prim.device"] = TABLE["device"] = _always("cpu")
TABLE["ops.prim.type"] = _always("cpu")


@register("ops.prim.dtype")
def _dtype(writer: Writer, x: Value) -> Value:
    return writer.one("py::dtype", [x], "Dtype")


@register("is_floating_point")
def _is_floating_point(writer: Writer, x: Value) -> Value:
    own = _dtype(writer, x)
    tests = [writer.one("py::eq", [own, dtype_of(writer, each)], "bool") for each in _FLOATS]
    return reduce(lambda a, b: writer.one("py::or", [a, b], "bool"), tests)


@register("__contains__")
def _contains(writer: Writer, x: Value, item: Value) -> Value:
    if is_constant(x) and is_constant(item):
        return item in x
    return writer.one("py::contains", [x, item], "bool")


def _of_dtypes(name: str, of_others: Translation) -> None:
    """Comparisons of dtypes, one of which may be PyTorch's number."""

    def translate(writer: Writer, a: Value, b: Value) -> Value:
        types = [type_of(each) for each in (a, b) if isinstance(each, Symbol)]
        if "Dtype" not in types:
            return of_others(writer, a, b)
        return writer.one(f"py::{name}", [dtype_of(writer, a), dtype_of(writer, b)], "bool")

    TABLE[name] = translate


for _name in ("eq", "ne"):
    _of_dtypes(_name, TABLE[_name])
