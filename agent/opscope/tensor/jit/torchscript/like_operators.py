"""Aliases of operators, and operators that take the shape or dtype of another tensor."""

from __future__ import annotations

from opscope.tensor.jit.torchscript import scalars
from opscope.tensor.jit.torchscript.table import TABLE, register, same
from opscope.tensor.jit.torchscript.values import Value, is_tensor
from opscope.tensor.jit.torchscript.writer import Writer

TABLE["unsafe_chunk"] = TABLE["chunk"]
TABLE["unsafe_split"] = TABLE["split"]
TABLE["unsafe_split_with_sizes"] = TABLE["split_with_sizes"]
for _name, _count in {
    "argsort": 3, "bitwise_and": 2, "bitwise_or": 2, "bitwise_xor": 2, "bitwise_not": 1,
    "isfinite": 1, "isinf": 1, "isclose": 5, "lerp": 3, "logaddexp": 2, "logical_xor": 2,
    "masked_select": 2, "nonzero": 1, "one_hot": 2, "scatter": 4, "scatter_add": 4, "unfold": 4,
    "sort": 3, "leaky_relu_": 2, "elu_": 2,
}.items():  # fmt: skip
    same(_name, _count)


@register("expand_as")
def _expand_as(writer: Writer, x: Value, other: Value) -> Value:
    return writer.core("expand", x, scalars.size(writer, other))


@register("view_as reshape_as")
def _reshape_as(writer: Writer, x: Value, other: Value) -> Value:
    return writer.core("reshape", x, scalars.size(writer, other))


@register("type_as")
def _type_as(writer: Writer, x: Value, other: Value) -> Value:
    return writer.core("to", x, writer.one("py::dtype", [other], "Dtype"))


@register("clamp_min")
def _clamp_min(writer: Writer, x: Value, least: Value) -> Value:
    return writer.core("maximum", x, least) if is_tensor(least) else writer.core("clamp", x, least)


@register("clamp_max")
def _clamp_max(writer: Writer, x: Value, most: Value) -> Value:
    if is_tensor(most):
        return writer.core("minimum", x, most)
    return writer.core("clamp", x, None, most)


@register("item")
def _item(writer: Writer, x: Value) -> Value:
    """A float, also of an integer tensor: the dtype is not known before the run."""
    return scalars.convert(writer, "float", x)


@register("mish")
def _mish(writer: Writer, x: Value) -> Value:
    return writer.core("mul", x, writer.core("tanh", writer.core("softplus", x)))


@register("log_sigmoid")
def _log_sigmoid(writer: Writer, x: Value) -> Value:
    return writer.core("neg", writer.core("softplus", writer.core("neg", x)))


@register("glu")
def _glu(writer: Writer, x: Value, dim: Value = -1) -> Value:
    halves = writer.core("chunk", x, 2, dim)
    one, gate = writer.add("prim::ListUnpack", [halves], ["Tensor", "Tensor"])
    return writer.core("mul", one, writer.core("sigmoid", gate))
