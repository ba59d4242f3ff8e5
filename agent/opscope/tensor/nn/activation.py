"""Modules without parameters: common activations, Softmax, Dropout, Flatten, Identity.

activation_more.py has the others."""

from __future__ import annotations

import math
from typing import Any

from opscope._tensor import Tensor, functions
from opscope.tensor.nn.module import Module


class Identity(Module):
    """Returns its input; takes any arguments."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def forward(self, input: Any) -> Any:
        return input


class ReLU(Module):
    """The greater of 0 and each element; `inplace` writes the input."""

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace

    def forward(self, input: Tensor) -> Any:
        return input.relu_() if self.inplace else input.relu()

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class GELU(Module):
    """x times the normal distribution function of x; `approximate` "tanh" uses the formula with
    tanh (Hendrycks and Gimpel, 2016)."""

    def __init__(self, approximate: str = "none") -> None:
        if approximate not in ("none", "tanh"):
            raise ValueError(f"GELU(): approximate is 'none' or 'tanh', not {approximate!r}")
        self.approximate = approximate

    def forward(self, input: Tensor) -> Any:
        if self.approximate == "none":
            return input.gelu()
        inner = (input + input.pow(3) * 0.044715) * math.sqrt(2 / math.pi)
        return input * 0.5 * (inner.tanh() + 1)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Tanh(Module):
    """The hyperbolic tangent of each element."""

    def forward(self, input: Tensor) -> Any:
        return input.tanh()


class Sigmoid(Module):
    """1 / (1 + exp(-x)) of each element."""

    def forward(self, input: Tensor) -> Any:
        return input.sigmoid()


class Softmax(Module):
    """exp(x) over the sum of exp(x) along `dim`."""

    def __init__(self, dim: int) -> None:
        self.dim = dim

    def forward(self, input: Tensor) -> Any:
        return input.softmax(self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class LogSoftmax(Softmax):
    """The logarithm of Softmax, computed without loss of precision."""

    def forward(self, input: Tensor) -> Any:
        return input.log_softmax(self.dim)


class Dropout(Module):
    """In training, zeroes each element with probability `p` and divides the others by 1 - p;
    `inplace` writes the input."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        if not 0 <= p <= 1:
            raise ValueError(f"{type(self).__name__}(): p is a probability, not {p}")
        self.p = p
        self.inplace = inplace

    def forward(self, input: Tensor) -> Any:
        dropped = functions["dropout"](input, self.p, self.training)
        return input.copy_(dropped) if self.inplace else dropped

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Flatten(Module):
    """Merges dimensions `start_dim` to `end_dim` into one."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Any:
        dims = max(input.ndim, 1)
        first = self.start_dim + dims if self.start_dim < 0 else self.start_dim
        last = self.end_dim + dims if self.end_dim < 0 else self.end_dim
        if not 0 <= first < dims or not 0 <= last < dims:
            raise IndexError(f"Flatten({self.extra_repr()}): the input has {input.ndim} dimensions")
        if first > last:
            raise ValueError(f"Flatten({self.extra_repr()}): start_dim is behind end_dim")
        return functions["flatten"](input, self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"
