"""Operators of networks: convolutions, norms, pools, activations."""

from __future__ import annotations

from opscope.tensor.jit.torchscript import scalars
from opscope.tensor.jit.torchscript.table import (
    TABLE,
    Translation,
    cast,
    need,
    register,
)
from opscope.tensor.jit.torchscript.values import Value
from opscope.tensor.jit.torchscript.writer import Writer


@register("conv2d")
def _conv2d(
    writer: Writer,
    x: Value,
    weight: Value,
    bias: Value = None,
    stride: Value = 1,
    padding: Value = 0,
    dilation: Value = 1,
    groups: Value = 1,
) -> Value:
    need(not isinstance(padding, str), f"with padding={padding!r}")
    return writer.core("conv2d", x, weight, bias, stride, padding, dilation, groups)


@register("conv1d")
def _conv1d(
    writer: Writer,
    x: Value,
    weight: Value,
    bias: Value = None,
    stride: Value = 1,
    padding: Value = 0,
    dilation: Value = 1,
    groups: Value = 1,
) -> Value:
    """An image of one row."""
    need(not isinstance(padding, str), f"with padding={padding!r}")

    def wide(value: Value, high: int) -> list[Value]:
        return [high, value[0] if isinstance(value, list) else value]

    image, kernel = writer.core("unsqueeze", x, -2), writer.core("unsqueeze", weight, -2)
    sizes = [wide(stride, 1), wide(padding, 0), wide(dilation, 1)]
    found = writer.core("conv2d", image, kernel, bias, *sizes, groups)
    return writer.core("squeeze", found, [-2])


@register("_convolution")
def _convolution(
    writer: Writer,
    x: Value,
    weight: Value,
    bias: Value,
    stride: Value,
    padding: Value,
    dilation: Value,
    transposed: Value,
    output_padding: Value,
    groups: Value,
    *flags: Value,
) -> Value:
    need(transposed is False, "transposed")
    need(isinstance(stride, list) and len(stride) in (1, 2), "of three dimensions")
    if len(stride) == 1:
        return _conv1d(writer, x, weight, bias, stride, padding, dilation, groups)
    return writer.core("conv2d", x, weight, bias, stride, padding, dilation, groups)


@register("batch_norm")
def _batch_norm(
    writer: Writer,
    x: Value,
    weight: Value,
    bias: Value,
    mean: Value,
    var: Value,
    training: Value,
    momentum: Value,
    eps: Value,
    cudnn: Value = False,
) -> Value:
    return writer.core("batch_norm", x, weight, bias, mean, var, training, momentum, eps)


@register("layer_norm")
def _layer_norm(
    writer: Writer,
    x: Value,
    shape: Value,
    weight: Value = None,
    bias: Value = None,
    eps: Value = 1e-5,
    cudnn: Value = True,
) -> Value:
    return writer.core("layer_norm", x, shape, weight, bias, eps)


@register("group_norm")
def _group_norm(
    writer: Writer,
    x: Value,
    groups: Value,
    weight: Value = None,
    bias: Value = None,
    eps: Value = 1e-5,
    cudnn: Value = True,
) -> Value:
    """Each group is a row that layer_norm takes."""
    sizes, batch = scalars.size(writer, x), scalars.size(writer, x, 0)
    rows = writer.core("reshape", x, [batch, groups, -1])
    rows = writer.core("layer_norm", rows, [scalars.size(writer, rows, 2)], None, None, eps)
    planes = writer.core("reshape", rows, [batch, scalars.size(writer, x, 1), -1])
    if weight is not None:
        planes = writer.core("mul", planes, writer.core("unsqueeze", weight, -1))
    if bias is not None:
        planes = writer.core("add", planes, writer.core("unsqueeze", bias, -1))
    return writer.core("reshape", planes, sizes)


@register("max_pool2d")
def _max_pool2d(
    writer: Writer,
    x: Value,
    size: Value,
    stride: Value = None,
    padding: Value = 0,
    dilation: Value = 1,
    ceil_mode: Value = False,
) -> Value:
    found = writer.core("max_pool2d", x, size, stride or None, padding, dilation, ceil_mode)
    return found[0] if isinstance(found, tuple) else found


@register("avg_pool2d")
def _avg_pool2d(
    writer: Writer, x: Value, size: Value, stride: Value = None, *options: Value
) -> Value:
    return writer.core("avg_pool2d", x, size, stride or None, *options)


@register("dropout dropout_ feature_dropout")
def _dropout(writer: Writer, x: Value, p: Value, training: Value) -> Value:
    return writer.core("dropout", x, p, training) if training else x


@register("softmax")
def _softmax(writer: Writer, x: Value, dim: Value, dtype: Value = None) -> Value:
    return writer.core("softmax", cast(writer, x, dtype), dim)


@register("log_softmax")
def _log_softmax(writer: Writer, x: Value, dim: Value, dtype: Value = None) -> Value:
    return writer.core("log_softmax", cast(writer, x, dtype), dim)


@register("gelu")
def _gelu(writer: Writer, x: Value, approximate: Value = "none") -> Value:
    if approximate == "none":
        return writer.core("gelu", x)
    cubed = writer.core("mul", writer.core("mul", writer.core("mul", x, x), x), 0.044715)
    inner = writer.core("mul", writer.core("add", x, cubed), 0.7978845608028654)
    return writer.core(
        "mul", writer.core("mul", x, 0.5), writer.core("add", writer.core("tanh", inner), 1.0)
    )


@register("clamp hardtanh")
def _clamp(writer: Writer, x: Value, least: Value = None, most: Value = None) -> Value:
    return writer.core("clamp", x, least, most)


@register("relu6")
def _relu6(writer: Writer, x: Value) -> Value:
    return writer.core("clamp", x, 0.0, 6.0)


@register("hardsigmoid")
def _hardsigmoid(writer: Writer, x: Value) -> Value:
    return writer.core("div", writer.core("clamp", writer.core("add", x, 3.0), 0.0, 6.0), 6.0)


@register("hardswish")
def _hardswish(writer: Writer, x: Value) -> Value:
    return writer.core("mul", x, _hardsigmoid(writer, x))


def _written(name: str, translate: Translation) -> None:
    """The in-place form: the result is copied over the operand."""

    def write(writer: Writer, x: Value, *arguments: Value) -> Value:
        return writer.core("copy_", x, translate(writer, x, *arguments))

    TABLE[name] = write


_written("hardswish_", _hardswish)
_written("hardsigmoid_", _hardsigmoid)
_written("clamp_", _clamp)
_written("hardtanh_", _clamp)
_written("relu6_", _relu6)


@register("elu")
def _elu(
    writer: Writer, x: Value, alpha: Value = 1, scale: Value = 1, input_scale: Value = 1
) -> Value:
    need(scale == 1 and input_scale == 1, "with scale")
    return writer.core("elu", x, alpha)


@register("softplus")
def _softplus(writer: Writer, x: Value, beta: Value = 1, threshold: Value = 20) -> Value:
    return writer.core("softplus", x, float(beta), float(threshold))


@register("embedding")
def _embedding(writer: Writer, weight: Value, indices: Value, *options: Value) -> Value:
    return writer.core("embedding", weight, indices)
