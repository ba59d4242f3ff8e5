"""Linear and Embedding: weights that a matrix product or a list of indices reads."""

from __future__ import annotations

from typing import Any

from opscope._tensor import Tensor, dtype, functions
from opscope.tensor.nn.functional import normalization
from opscope.tensor.nn.functional.bags import embedding_bag
from opscope.tensor.nn.module import Module, Parameter
from opscope.tensor.nn.weights import kaiming_uniform, normal, uniform
from opscope.tensor.places import check


class Linear(Module):
    """`input @ weight.T + bias`; input (..., in_features), output (..., out_features)."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        device: Any = None,
        dtype: dtype | None = None,
    ) -> None:
        check(device, "Linear")
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(kaiming_uniform((out_features, in_features), dtype))
        bound = in_features**-0.5 if in_features else 0.0
        self.bias = Parameter(uniform((out_features,), bound, dtype)) if bias else None

    def forward(self, input: Tensor) -> Any:
        return functions["linear"](input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class Embedding(Module):
    """Rows of a table: indices of any shape (...), output (..., embedding_dim). The row
    `padding_idx` begins as zeros, and is not trained; `max_norm` limits the rows that are used."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        *,
        device: Any = None,
        dtype: dtype | None = None,
    ) -> None:
        check(device, "Embedding")
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise ValueError(f"Embedding(): padding_idx {padding_idx} is no row")
            padding_idx %= num_embeddings
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = padding_idx
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.weight = Parameter(normal((num_embeddings, embedding_dim), dtype))
        if padding_idx is not None:
            self.weight.data[padding_idx] = 0

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None
    ) -> Embedding:
        """An Embedding with that table, which is not trained if `freeze`."""
        rows, width = embeddings.shape
        made = cls(rows, width, padding_idx)
        made.weight = Parameter(embeddings, requires_grad=not freeze)
        return made

    def forward(self, input: Tensor) -> Any:
        if self.padding_idx is None and self.max_norm is None:
            return functions["embedding"](self.weight, input)
        return normalization.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        text += "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return text + ("" if self.max_norm is None else f", max_norm={self.max_norm}")


class EmbeddingBag(Module):
    """The "sum", "mean" or "max" of rows of a table that belong together: `embedding_bag`."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: dtype | None = None,
    ) -> None:
        check(device, "EmbeddingBag")
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset
        self.padding_idx = padding_idx
        if _weight is None:
            _weight = normal((num_embeddings, embedding_dim), dtype)
            if padding_idx is not None:
                _weight[padding_idx] = 0
        self.weight = Parameter(_weight)

    def forward(
        self,
        input: Tensor,
        offsets: Tensor | None = None,
        per_sample_weights: Tensor | None = None,
    ) -> Any:
        return embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        text += "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{text}, mode={self.mode!r}"


class Bilinear(Module):
    """`x1 @ weight[k] @ x2 + bias[k]` for each of out_features k."""

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True
    ) -> None:
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        bound = in1_features**-0.5
        self.weight = Parameter(uniform((out_features, in1_features, in2_features), bound, None))
        self.bias = Parameter(uniform((out_features,), bound, None)) if bias else None

    def forward(self, input1: Tensor, input2: Tensor) -> Any:
        return normalization.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )
