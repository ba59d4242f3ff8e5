"""Layers of transformers (Vaswani et al., 2017) and stacks of them, with PyTorch's names.

Sizes: N samples, L queries, S keys, T steps of the target, E the width of the model.
"""

from __future__ import annotations

import copy
from typing import Any

from opscope._tensor import Tensor, dtype, functions
from opscope.tensor.nn.activation import Dropout
from opscope.tensor.nn.attention import MultiheadAttention
from opscope.tensor.nn.container import ModuleList
from opscope.tensor.nn.linear import Linear
from opscope.tensor.nn.module import Module
from opscope.tensor.nn.normalization import LayerNorm


def _check_activation(activation: Any, name: str) -> None:
    if not callable(activation) and activation not in ("relu", "gelu"):
        raise ValueError(f"{name}(): activation is 'relu' or 'gelu', not {activation!r}")


def _activated(inner: Any, activation: Any) -> Any:
    if activation == "relu":
        return inner.relu()
    return inner.gelu() if activation == "gelu" else activation(inner)


class TransformerEncoderLayer(Module):
    """Self attention and two linear layers, each added to its input and normalized: after the
    addition, or with `norm_first` before the layer. Input and output (L, N, E); with `batch_first`
    (N, L, E). `activation` is "relu", "gelu" or a function.
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        *,
        device: Any = None,
        dtype: dtype | None = None,
    ) -> None:
        _check_activation(activation, "TransformerEncoderLayer")
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first, dtype=dtype)
        self.linear1 = Linear(d_model, dim_feedforward, bias, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, dtype=dtype)
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.norm_first = norm_first
        self.activation = activation

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Any:
        masks = (src_mask, src_key_padding_mask, is_causal)
        if self.norm_first:
            src = src + self._attend(self.norm1(src), *masks)
            return src + self._feed_forward(self.norm2(src))
        src = self.norm1(src + self._attend(src, *masks))
        return self.norm2(src + self._feed_forward(src))

    def _attend(
        self, input: Tensor, mask: Tensor | None, padding: Tensor | None, is_causal: bool
    ) -> Any:
        attended, _ = self.self_attn(
            input,
            input,
            input,
            attn_mask=mask,
            key_padding_mask=padding,
            need_weights=False,
            is_causal=is_causal,
        )
        return self.dropout1(attended)

    def _feed_forward(self, input: Tensor) -> Any:
        inner = self.linear1(input)
        return self.dropout2(self.linear2(self.dropout(_activated(inner, self.activation))))


class TransformerDecoderLayer(Module):
    """Self attention, attention to the encoder's output, and two linear layers, each added to its
    input and normalized: after the addition, or with `norm_first` before the layer. `tgt` (T, N, E)
    and `memory` (S, N, E); with `batch_first` (N, T, E) and (N, S, E).
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        *,
        device: Any = None,
        dtype: dtype | None = None,
    ) -> None:
        _check_activation(activation, "TransformerDecoderLayer")
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first, dtype=dtype)
        self.multihead_attn = MultiheadAttention(
            d_model, nhead, dropout, bias, batch_first, dtype=dtype
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, dtype=dtype)
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.norm3 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.norm_first = norm_first
        self.activation = activation

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Any:
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = (memory_mask, memory_key_padding_mask, memory_is_causal)
        if self.norm_first:
            normed = self.norm1(tgt)
            tgt = tgt + self.dropout1(_attended(self.self_attn, normed, normed, *own))
            normed = self.norm2(tgt)
            tgt = tgt + self.dropout2(_attended(self.multihead_attn, normed, memory, *other))
            return tgt + self._feed_forward(self.norm3(tgt))
        tgt = self.norm1(tgt + self.dropout1(_attended(self.self_attn, tgt, tgt, *own)))
        tgt = self.norm2(tgt + self.dropout2(_attended(self.multihead_attn, tgt, memory, *other)))
        return self.norm3(tgt + self._feed_forward(tgt))

    def _feed_forward(self, input: Tensor) -> Any:
        inner = self.linear1(input)
        return self.dropout3(self.linear2(self.dropout(_activated(inner, self.activation))))


def _attended(
    attention: MultiheadAttention,
    query: Tensor,
    keys: Tensor,
    mask: Tensor | None,
    padding: Tensor | None,
    is_causal: bool,
) -> Any:
    attended, _ = attention(
        query,
        keys,
        keys,
        attn_mask=mask,
        key_padding_mask=padding,
        need_weights=False,
        is_causal=is_causal,
    )
    return attended


class TransformerEncoder(Module):
    """`num_layers` copies of a layer, one after another, and then `norm`."""

    def __init__(
        self,
        encoder_layer: TransformerEncoderLayer,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        self.layers = ModuleList([copy.deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Any:
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, bool(is_causal))
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """`num_layers` copies of a layer, one after another, and then `norm`."""

    def __init__(
        self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: Module | None = None
    ) -> None:
        self.layers = ModuleList([copy.deepcopy(decoder_layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Any:
        for layer in self.layers:
            tgt = layer(
                tgt,
                memory,
                tgt_mask,
                memory_mask,
                tgt_key_padding_mask,
                memory_key_padding_mask,
                bool(tgt_is_causal),
                memory_is_causal,
            )
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder of `src` (S, N, E), and a decoder of `tgt` (T, N, E) that attends to it."""

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = "relu",
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
    ) -> None:
        given: Any = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps)
        given += (batch_first, norm_first, bias)
        norms = [LayerNorm(d_model, layer_norm_eps, bias=bias) for _ in range(2)]
        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*given), num_encoder_layers, norms[0]
        )
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*given), num_decoder_layers, norms[1]
        )
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first
        for parameter in self.parameters():
            if parameter.ndim > 1:
                from opscope.tensor.nn.init import xavier_uniform_

                xavier_uniform_(parameter)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Any:
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask,
            memory_mask,
            tgt_key_padding_mask,
            memory_key_padding_mask,
            tgt_is_causal,
            memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(
        sz: int, device: Any = None, dtype: dtype | None = None
    ) -> Tensor:
        """(sz, sz): minus infinity above the diagonal, else 0."""
        whole: Tensor = functions["full"]((sz, sz), float("-inf"), dtype=dtype)
        return whole.triu(1)
