"""What an operator ought to compute: PyTorch, called by the operator's own name.

The core's operators have PyTorch's names and parameters, so that the oracle needs no table; the few
that PyTorch keeps elsewhere, or not at all, are in ``ELSEWHERE``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from opscope import tensor as ot


def _product(self: Any, dim: Any = None, keepdim: bool = False, **kwargs: Any) -> Any:
    # PyTorch multiplies over one dimension or all.
    if dim is None:
        whole = torch.prod(self, **kwargs)
        return whole.reshape([1] * self.ndim) if keepdim else whole
    for each in sorted((one % self.ndim for one in dim), reverse=True):
        self = torch.prod(self, each, keepdim, **kwargs)
    return self


ELSEWHERE: dict[str, Callable[..., Any]] = {
    "slice": lambda self, dim=0, start=None, end=None, step=1: _sliced(self, dim, start, end, step),
    "expand": lambda self, size: self.expand(size),
    "permute": lambda self, dims: self.permute(dims),
    "view": lambda self, size: self.reshape(size),
    "unfold": lambda self, dim, size, step: self.unfold(dim, size, step),
    "contiguous": lambda self: self.contiguous(),
    "to": lambda self, dtype: self.to(dtype),
    "prod": _product,
    "embedding": lambda weight, indices: functional.embedding(indices, weight),
    "index_add_backward": lambda grad, sizes, dim, index: torch.zeros(
        sizes, dtype=grad.dtype
    ).index_add(dim, index, grad),
    "softmax_backward": lambda grad, result, dim: (
        result * (grad - (grad * result).sum(dim, keepdim=True))
    ),
    "log_softmax_backward": lambda grad, result, dim: (
        grad - result.exp() * grad.sum(dim, keepdim=True)
    ),
    "var": lambda self, dim=None, correction=1, keepdim=False: torch.var(
        self, dim, correction=correction, keepdim=keepdim
    ),
    "relu_backward": lambda grad, result: grad * (result > 0),
    "fill": lambda self, value: torch.full_like(self, value),
}


def _sliced(self: Any, dim: int, start: int | None, end: int | None, step: int) -> Any:
    # PyTorch knows no negative step; NumPy does.
    key = [slice(None)] * self.ndim
    key[dim] = slice(start, end, step)
    return torch.from_numpy(self.detach().numpy()[tuple(key)].copy())


def function(name: str) -> Callable[..., Any]:
    """PyTorch's function for the operator of that full name."""
    short = name.partition("::")[2]
    if short in ELSEWHERE:
        return ELSEWHERE[short]
    for home in (torch, functional, torch.Tensor):
        found = getattr(home, short, None)
        if found is not None:
            return found  # type: ignore[no-any-return]
    return getattr(torch.ops.aten, short)  # type: ignore[no-any-return]


def convert(value: Any) -> Any:
    """An argument in PyTorch's terms: arrays copied, dtypes by name."""
    if isinstance(value, ot.dtype):
        return getattr(torch, value.name)
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy())
    return value
