"""The expected result of an operator: PyTorch, called by the operator's own name.

The core's operators have PyTorch's names and parameters, so that the oracle needs no table; the few
that PyTorch keeps elsewhere, or not at all, are in `ELSEWHERE`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.nn import functional
from torch.nn import grad as conv_grad

from opscope import tensor as ot


def _product(self: Any, dim: Any = None, keepdim: bool = False, **kwargs: Any) -> Any:
    # In PyTorch this reduces over one dimension or all.
    if dim is None or self.ndim == 0:
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
    "index": lambda self, indices, dim=0: self[_indexed(self, indices, dim)],
    "index_put": lambda self, values, indices, dim=0, accumulate=False: self.index_put(
        _indexed(self, indices, dim),
        torch.as_tensor(values, dtype=self.dtype),
        accumulate,
    ),
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
    "max_pool2d_backward": lambda grad, places, size: (
        torch.zeros(size, dtype=grad.dtype)
        .flatten(-2)
        .scatter_add(-1, places.flatten(-2).long(), grad.flatten(-2))
        .reshape(size)
    ),
    "avg_pool2d_backward": lambda grad, size, *settings, **named: _pool_gradient(
        functional.avg_pool2d, grad, size, *settings, **named
    ),
    "adaptive_avg_pool2d_backward": lambda grad, size: _pool_gradient(
        functional.adaptive_avg_pool2d, grad, size, grad.shape[-2:]
    ),
    "conv2d_input_backward": lambda grad, weight, size, *settings, **named: conv_grad.conv2d_input(
        size, weight, grad, *settings, **named
    ),
    "conv2d_weight_backward": lambda grad, input, size, *settings, **named: conv_grad.conv2d_weight(
        input, size, grad, *settings, **named
    ),
    "fill": lambda self, value: torch.full_like(self, value),
    "layer_norm": lambda input, shape, *args, **kwargs: functional.layer_norm(
        input, shape, *args, **kwargs
    ),
    "layer_norm_backward": lambda grad, input, mean, rstd, weight, shape: _layer_norm_gradients(
        grad, input, mean, rstd, weight, shape
    ),
    "batch_norm": lambda *args: _batch_norm(*args),
    "batch_norm_backward": lambda *args: _batch_norm_gradients(*args),
    "native_dropout": lambda input, p: torch.native_dropout(input, p, True),
    "nll_loss": functional.nll_loss,
    "strided_view": lambda self, base_stride, size, stride, offset: _restrided(
        self, base_stride
    ).as_strided(size, stride, offset),
    "strided_scatter": lambda self, src, base_stride, stride, offset: torch.as_strided_scatter(
        _restrided(self, base_stride), src, src.shape, stride, offset
    ),
    "strided_view_backward": lambda grad, size, base_stride, stride, offset: _gradient(
        lambda leaf: _restrided(leaf, base_stride).as_strided(grad.shape, stride, offset),
        torch.zeros(size, dtype=grad.dtype),
        grad,
    ),
    "one_hot": functional.one_hot,
    "binary_cross_entropy_with_logits": functional.binary_cross_entropy_with_logits,
    "sort": lambda self, dim=-1, descending=False, stable=True: torch.sort(
        self, dim=dim, descending=descending, stable=True
    ),
    "std": lambda self, dim=None, correction=1, keepdim=False: torch.std(
        self, dim, correction=correction, keepdim=keepdim
    ),
    "prod_backward": lambda grad, self, dim=None: _gradient(
        lambda leaf: _product(leaf, dim), self, grad
    ),
    "cumprod_backward": lambda grad, self, dim: _gradient(
        lambda leaf: torch.cumprod(leaf, dim), self, grad
    ),
    "native_dropout_backward": lambda grad, mask, scale: grad * mask * scale,
    "count_nonzero": lambda self, dim=None: torch.count_nonzero(self, dim),
    "any": lambda self, dim=None, keepdim=False: torch.any(self, dim, keepdim),
    "all": lambda self, dim=None, keepdim=False: torch.all(self, dim, keepdim),
    "bernoulli": lambda self, p=None: self.clone() if p is None else torch.full_like(self, p),
    "uniform": lambda self, low, high: torch.full_like(self, low),
    "normal": lambda mean, std, size=None, dtype=None: (
        mean + std * (torch.zeros(size, dtype=dtype) if size else torch.zeros_like(mean))
    ),
    "randint": lambda *args, **kwargs: torch.randint(*args, **kwargs),
    "repeat": lambda self, repeats: self.repeat(repeats),
    "unfold_backward": lambda grad, sizes, dim, size, step: torch.ops.aten.unfold_backward(
        grad, sizes, dim, size, step
    ),
    "argsort": lambda self, dim=-1, descending=False: torch.argsort(
        self, dim=dim, descending=descending, stable=True
    ),
    "scatter": lambda self, dim, index, src: torch.scatter(self, dim, index, src),
    "nll_loss_backward": lambda *args: _nll_loss_gradient(*args),
}


def _layer_norm_gradients(
    grad: Any, input: Any, mean: Any, rstd: Any, weight: Any, shape: Any
) -> tuple[Any, ...]:
    groups = [*input.shape[: input.ndim - len(shape)], *[1] * len(shape)]
    found = torch.ops.aten.native_layer_norm_backward(
        grad,
        input,
        shape,
        mean.reshape(groups),
        rstd.reshape(groups),
        weight if weight is not None else torch.ones(shape, dtype=input.dtype),
        torch.zeros(shape, dtype=input.dtype),
        [True] * 3,
    )
    return tuple(found)


def _batch_norm(
    input: Any,
    weight: Any = None,
    bias: Any = None,
    mean: Any = None,
    var: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    return functional.batch_norm(input, mean, var, weight, bias, training, momentum, eps)


def _batch_norm_gradients(
    grad: Any, input: Any, mean: Any, rstd: Any, weight: Any, training: bool
) -> tuple[Any, ...]:
    channels = [1, -1, *[1] * (input.ndim - 2)]
    others = [0, *range(2, input.ndim)]
    mean, rstd = mean.reshape(channels), rstd.reshape(channels)
    normal = (input - mean) * rstd
    scaled = grad if weight is None else grad * weight.reshape(channels)
    if training:
        scaled = (
            scaled
            - scaled.mean(others, keepdim=True)
            - normal * (scaled * normal).mean(others, keepdim=True)
        )
    return scaled * rstd, (grad * normal).sum(others), grad.sum(others)


def _nll_loss_gradient(
    grad: Any, sizes: Any, target: Any, weight: Any = None, ignore_index: int = -100
) -> Any:
    input = torch.zeros(sizes, dtype=grad.dtype, requires_grad=True)
    losses = functional.nll_loss(input, target, weight, ignore_index=ignore_index, reduction="none")
    losses.backward(grad.expand(losses.shape))
    return input.grad


def _pool_gradient(
    pool: Callable[..., Any], grad: Any, size: Any, *settings: Any, **named: Any
) -> Any:
    # The gradient of a mean does not depend on the input.
    input = torch.zeros(size, dtype=grad.dtype, requires_grad=True)
    pool(input, *settings, **named).backward(grad)
    return input.grad


def _gradient(function: Callable[[Any], Any], input: Any, grad: Any) -> Any:
    leaf = input.clone().requires_grad_()
    function(leaf).backward(grad)
    return leaf.grad


def _indexed(self: Any, indices: Any, dim: int) -> tuple[Any, ...]:
    # All tensors of indices, for the dimensions before as well: index_put takes no slices.
    first = dim % self.ndim
    sizes = [torch.arange(size) for size in self.shape[:first]]
    lead = torch.meshgrid(*sizes, indexing="ij") if sizes else ()
    own = torch.broadcast_tensors(*indices)
    spread = [each.reshape(each.shape + (1,) * own[0].ndim) for each in lead]
    return (*spread, *own)


def _restrided(self: Any, stride: Any) -> Any:
    return torch.empty_strided(self.shape, stride, dtype=self.dtype).copy_(self)


def _sliced(self: Any, dim: int, start: int | None, end: int | None, step: int) -> Any:
    # PyTorch does not support negative steps; NumPy does.
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
    """An argument for PyTorch: arrays copied, dtypes by name."""
    if isinstance(value, ot.dtype):
        return getattr(torch, value.name)
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy())
    return value
