"""Attention, also the fused operators that the fast paths of torch.nn call in a trace.

Source: the Python code of torch.nn.functional.multi_head_attention_forward and of
torch.nn.TransformerEncoderLayer, which compute the same without these operators.
"""

from __future__ import annotations

import math

from opscope.tensor.jit.torchscript import scalars
from opscope.tensor.jit.torchscript.table import need, register
from opscope.tensor.jit.torchscript.values import Value
from opscope.tensor.jit.torchscript.writer import Writer

# The types of masks: of steps by steps, of padding, of both for each head.
_STEPS, _PADDING, _HEADS = range(3)


@register("scaled_dot_product_attention")
def _attention(
    writer: Writer,
    query: Value,
    key: Value,
    value: Value,
    mask: Value = None,
    dropout: Value = 0.0,
    is_causal: Value = False,
    scale: Value = None,
    gqa: Value = False,
) -> Value:
    need(gqa is False, "with enable_gqa")
    return writer.core(
        "scaled_dot_product_attention", query, key, value, mask, dropout, is_causal, scale
    )


def _additive(writer: Writer, mask: Value, kind: Value, x: Value) -> Value:
    """What is added to the scores [batch, heads, steps, steps]: nothing, or -inf where the mask is
    not zero."""
    if mask is None:
        return None
    need(kind in (_STEPS, _PADDING, _HEADS), f"with a mask of type {kind}")
    if kind == _PADDING:
        rows, steps = scalars.size(writer, mask, 0), scalars.size(writer, mask, 1)
        mask = writer.core("reshape", mask, [rows, 1, 1, steps])
    is_masked = writer.core("ne", mask, 0)
    dtype = writer.one("py::dtype", [x], "Dtype")
    return writer.core("masked_fill", writer.core("zeros_like", mask, dtype), is_masked, -math.inf)


def _heads(
    writer: Writer, x: Value, heads: Value, weight: Value, bias: Value, width: Value
) -> list[Value]:
    """Query, key and value of self-attention: [batch, heads, steps, width / heads]."""
    rows, steps = scalars.size(writer, x, 0), scalars.size(writer, x, 1)
    parts = writer.core("linear", x, weight, bias)
    parts = writer.core("reshape", parts, [rows, steps, 3, heads, width // heads])
    parts = writer.core("permute", parts, [2, 0, 3, 1, 4])
    return [writer.core("select", parts, 0, number) for number in range(3)]


def _joined(writer: Writer, x: Value, found: Value, width: Value) -> Value:
    """The heads' results side by side: [batch, steps, width]."""
    rows, steps = scalars.size(writer, x, 0), scalars.size(writer, x, 1)
    return writer.core("reshape", writer.core("transpose", found, 1, 2), [rows, steps, width])


@register("_native_multi_head_attention")
def _multi_head(
    writer: Writer,
    query: Value,
    key: Value,
    value: Value,
    width: Value,
    heads: Value,
    weight: Value,
    bias: Value,
    out: Value,
    out_bias: Value,
    mask: Value = None,
    need_weights: Value = True,
    average: Value = True,
    mask_type: Value = None,
) -> Value:
    need(query == key == value, "of other keys than queries")
    query, key, value = _heads(writer, x := query, heads, weight, bias, width)
    scores = writer.core("matmul", query, writer.core("transpose", key, -2, -1))
    scores = writer.core("mul", scores, 1 / math.sqrt(width // heads))
    added = _additive(writer, mask, mask_type, x)
    weights = writer.core(
        "softmax", scores if added is None else writer.core("add", scores, added), -1
    )
    found = _joined(writer, x, writer.core("matmul", weights, value), width)
    result = writer.core("linear", found, out, out_bias)
    if not need_weights:
        return result, None
    return result, writer.core("mean", weights, [1], False) if average else weights


@register("_transformer_encoder_layer_fwd")
def _encoder_layer(
    writer: Writer,
    x: Value,
    width: Value,
    heads: Value,
    *weights_and_options: Value,
) -> Value:
    """The fused layer of nn.TransformerEncoder, of its parts."""
    qkv, qkv_bias, out, out_bias, is_gelu, is_norm_first, eps = weights_and_options[:7]
    norms = weights_and_options[7:9], weights_and_options[9:11]
    first, first_bias, second, second_bias = weights_and_options[11:15]
    mask, mask_type = (*weights_and_options[15:17], None, None)[:2]

    def normed(value: Value, number: int) -> Value:
        return writer.core("layer_norm", value, [width], *norms[number], eps)

    def attended(value: Value) -> Value:
        each = _heads(writer, value, heads, qkv, qkv_bias, width)
        added = _additive(writer, mask, mask_type, value)
        found = writer.core("scaled_dot_product_attention", *each, added)
        return writer.core("linear", _joined(writer, value, found, width), out, out_bias)

    def fed(value: Value) -> Value:
        hidden = writer.core("linear", value, first, first_bias)
        hidden = writer.core("gelu" if is_gelu else "relu", hidden)
        return writer.core("linear", hidden, second, second_bias)

    if is_norm_first:
        x = writer.core("add", x, attended(normed(x, 0)))
        return writer.core("add", x, fed(normed(x, 1)))
    x = normed(writer.core("add", x, attended(x)), 0)
    return normed(writer.core("add", x, fed(x)), 1)
