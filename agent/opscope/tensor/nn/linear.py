"""Linear and Embedding: weights that a matrix product or a list of indices reads."""

from __future__ import annotations

from typing import Any

from opscope._tensor import Tensor, dtype, float32, functions
from opscope.tensor.nn.init import kaiming_uniform, normal, uniform
from opscope.tensor.nn.module import Module, Parameter


class Linear(Module):
    """`input @ weight.T + bias`; input (..., in_features), output (..., out_features)."""

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, *, dtype: dtype = float32
    ) -> None:
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
    """Rows of a table: indices of any shape (...), output (..., embedding_dim)."""

    def __init__(self, num_embeddings: int, embedding_dim: int, *, dtype: dtype = float32) -> None:
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.weight = Parameter(normal((num_embeddings, embedding_dim), dtype))

    def forward(self, input: Tensor) -> Any:
        return functions["embedding"](self.weight, input)

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}"
