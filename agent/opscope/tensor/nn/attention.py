"""MultiheadAttention (Vaswani et al., 2017), with PyTorch's names.

Sizes: N samples, L queries, S keys, E the width of the model, H heads.
"""

from __future__ import annotations

from typing import Any

from opscope._tensor import Tensor, dtype, functions
from opscope._tensor import bool as bool_dtype
from opscope.tensor.nn.linear import Linear
from opscope.tensor.nn.module import Module, Parameter
from opscope.tensor.nn.weights import xavier_uniform


class MultiheadAttention(Module):
    """Attention of several heads: query (L, N, E), key and value (S, N, E); with `batch_first`,
    (N, L, E) and (N, S, E); a single sample has no dimension N.

    Returns the output, shaped like the query, and the weights, (N, L, S), averaged over the heads;
    None without `need_weights`.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        batch_first: bool = False,
        *,
        device: Any = None,
        dtype: dtype | None = None,
    ) -> None:
        if num_heads < 1 or embed_dim % num_heads:
            raise ValueError(
                f"MultiheadAttention(): embed_dim {embed_dim} is no multiple of {num_heads} heads"
            )
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.in_proj_weight = Parameter(xavier_uniform((3 * embed_dim, embed_dim), dtype))
        zeros = functions["zeros"]
        self.in_proj_bias = Parameter(zeros((3 * embed_dim,), dtype=dtype)) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias, dtype=dtype)
        if self.out_proj.bias is not None:
            self.out_proj.bias.data.fill_(0)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Any, Any]:
        """Masks are added to the scores; masks of bools exclude the keys where they are true:
        `key_padding_mask` (N, S), `attn_mask` (L, S) or (N * H, L, S). `is_causal` without
        `attn_mask` lets each query see only keys up to its own position."""
        projected = self._project(query, key, value)
        is_batched = query.ndim == 3
        if not is_batched:
            projected = [part.unsqueeze(0) for part in projected]
        elif not self.batch_first:
            projected = [part.transpose(0, 1) for part in projected]
        q, k, v = (self._split(part) for part in projected)
        mask = self._mask(q, k, attn_mask, key_padding_mask, is_causal)
        rate = self.dropout if self.training else 0.0
        weights = None
        if need_weights:
            scores = (q * self.head_dim**-0.5) @ k.transpose(-2, -1)
            weights = (scores if mask is None else scores + mask).softmax(-1)
            mixed = functions["dropout"](weights, rate, rate > 0) @ v
            weights = weights.mean(1) if average_attn_weights else weights
            weights = weights if is_batched else weights.squeeze(0)
        else:
            mixed = functions["scaled_dot_product_attention"](q, k, v, mask, rate)
        samples, _, queries, _ = mixed.shape
        output = self.out_proj(mixed.transpose(1, 2).reshape((samples, queries, self.embed_dim)))
        if not is_batched:
            output = output.squeeze(0)
        elif not self.batch_first:
            output = output.transpose(0, 1)
        return output, weights

    def _project(self, query: Tensor, key: Tensor, value: Tensor) -> list[Any]:
        linear = functions["linear"]
        width = self.embed_dim
        if query is key and key is value:
            whole = linear(query, self.in_proj_weight, self.in_proj_bias)
            return [whole[..., place * width : (place + 1) * width] for place in range(3)]
        parts = []
        for place, input in enumerate((query, key, value)):
            rows = slice(place * width, (place + 1) * width)
            bias = None if self.in_proj_bias is None else self.in_proj_bias[rows]
            parts.append(linear(input, self.in_proj_weight[rows], bias))
        return parts

    def _split(self, part: Any) -> Any:
        """(N, L, E) as (N, H, L, E / H)."""
        samples, length, _ = part.shape
        return part.reshape((samples, length, self.num_heads, self.head_dim)).transpose(1, 2)

    def _mask(
        self,
        query: Any,
        key: Any,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool,
    ) -> Any:
        """The sum of all masks for the scores (N, H, L, S), or None."""
        samples, _, queries, _ = query.shape
        keys = key.shape[2]
        if attn_mask is None and is_causal:
            ones = functions["ones"]((queries, keys), dtype=bool_dtype)
            attn_mask = functions["triu"](ones, 1)
        mask: Any = None
        if attn_mask is not None:
            mask = _added(attn_mask, query.dtype)
            if mask.ndim == 3:
                mask = mask.reshape((samples, self.num_heads, queries, keys))
        if key_padding_mask is not None:
            padding = _added(key_padding_mask, query.dtype).reshape((samples, 1, 1, keys))
            mask = padding if mask is None else mask + padding
        return mask


def _added(mask: Tensor, dtype: dtype) -> Any:
    """Minus infinity where a mask of bools is true; any other mask unchanged."""
    if mask.dtype is not bool_dtype:
        return mask
    return functions["zeros"](mask.shape, dtype=dtype).masked_fill_(mask, float("-inf"))
