"""Initial weights: the distributions of PyTorch's modules, seeded by `manual_seed`."""

from __future__ import annotations

import math
from collections.abc import Sequence

from opscope._tensor import Tensor, dtype, functions


def uniform(shape: Sequence[int], bound: float, dtype: dtype | None) -> Tensor:
    """Uniform within ±bound."""
    values: Tensor = functions["rand"](tuple(shape), dtype=dtype)
    return values.mul_(2 * bound).sub_(bound)


def kaiming_uniform(shape: Sequence[int], dtype: dtype | None) -> Tensor:
    """Uniform within ±1/sqrt(inputs of one output), for weights (outputs, inputs, ...); PyTorch's
    linear and convolution layers call it kaiming_uniform with a=sqrt(5)."""
    inputs = math.prod(shape[1:])
    return uniform(shape, 1 / math.sqrt(inputs) if inputs else 0.0, dtype)


def xavier_uniform(shape: tuple[int, int], dtype: dtype | None) -> Tensor:
    """Uniform within ±sqrt(6 / (outputs + inputs)) (Glorot and Bengio, 2010)."""
    return uniform(shape, math.sqrt(6 / (shape[0] + shape[1])), dtype)


def normal(shape: Sequence[int], dtype: dtype | None) -> Tensor:
    """Normal, mean 0 and standard deviation 1."""
    values: Tensor = functions["randn"](tuple(shape), dtype=dtype)
    return values
