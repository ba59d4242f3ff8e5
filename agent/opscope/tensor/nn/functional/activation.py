"""Functions of each element, and softmax, under the names of torch.nn.functional."""

from __future__ import annotations

import math
from typing import Any

from opscope._tensor import Tensor, functions

relu_ = functions["relu_"]


def _source(input: Tensor, inplace: bool) -> Any:
    """What a result that is written into `input` is computed from: nodes keep it as it is."""
    return input.clone() if inplace else input


def relu(input: Tensor, inplace: bool = False) -> Any:
    """The greater of 0 and each element."""
    return input.relu_() if inplace else input.relu()


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    """x above 0; below, x times the slope."""
    if inplace:
        return input.leaky_relu_(negative_slope)
    return input.leaky_relu(negative_slope)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Any:
    """x above 0; below, alpha (exp(x) - 1)."""
    made = _source(input, inplace).elu(alpha)
    return input.copy_(made) if inplace else made


def selu(input: Tensor, inplace: bool = False) -> Any:
    """elu with the scale that keeps mean 0 and variance 1 (Klambauer et al., 2017)."""
    made = (
        _source(input, inplace).elu(1.6732632423543772848170429916717)
        * 1.0507009873554804934193349852946
    )
    return input.copy_(made) if inplace else made


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Any:
    """x above 0; below, alpha (exp(x / alpha) - 1)."""
    made = (_source(input, inplace) / alpha).elu() * alpha
    return input.copy_(made) if inplace else made


def gelu(input: Tensor, approximate: str = "none") -> Any:
    """x times the normal distribution function of x, or its approximation by "tanh"."""
    if approximate == "none":
        return input.gelu()
    inner = (input + input.pow(3) * 0.044715) * math.sqrt(2 / math.pi)
    return input * 0.5 * (inner.tanh() + 1)


def silu(input: Tensor, inplace: bool = False) -> Any:
    """x times the sigmoid of x."""
    made = _source(input, inplace).silu()
    return input.copy_(made) if inplace else made


def mish(input: Tensor, inplace: bool = False) -> Any:
    """x times the tanh of the softplus of x."""
    x = _source(input, inplace)
    made = x * x.softplus().tanh()
    return input.copy_(made) if inplace else made


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """log(1 + exp(beta x)) / beta; x where beta x exceeds the threshold."""
    return input.softplus(beta, threshold)


def softsign(input: Tensor) -> Any:
    """x / (1 + |x|)."""
    return input / (input.abs() + 1)


def logsigmoid(input: Tensor) -> Any:
    """The logarithm of the sigmoid."""
    return input.clamp(max=0) - input.abs().neg().exp().log1p()


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Any:
    """x, limited to the range."""
    made = _source(input, inplace).clamp(min_val, max_val)
    return input.copy_(made) if inplace else made


def relu6(input: Tensor, inplace: bool = False) -> Any:
    """x, limited to 0 and 6."""
    return hardtanh(input, 0.0, 6.0, inplace)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Any:
    """x / 6 + 1/2, limited to 0 and 1."""
    made = (_source(input, inplace) + 3).clamp(0, 6) / 6
    return input.copy_(made) if inplace else made


def hardswish(input: Tensor, inplace: bool = False) -> Any:
    """x times its hardsigmoid."""
    x = _source(input, inplace)
    made = x * (x + 3).clamp(0, 6) / 6
    return input.copy_(made) if inplace else made


def hardshrink(input: Tensor, lambd: float = 0.5) -> Any:
    """x, or 0 within ±lambd."""
    return input.masked_fill(input.abs() <= lambd, 0.0)


def softshrink(input: Tensor, lambd: float = 0.5) -> Any:
    """x moved towards 0 by lambd, at most to 0."""
    return input - input.clamp(-lambd, lambd)


def tanhshrink(input: Tensor) -> Any:
    """x less its tanh."""
    return input - input.tanh()


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Any:
    """x above the threshold, else `value`."""
    x = _source(input, inplace)
    made = x.masked_fill(x <= threshold, value)
    return input.copy_(made) if inplace else made


def prelu(input: Tensor, weight: Tensor) -> Any:
    """x above 0; below, x times a learned slope: one, or one for each channel (dimension 1)."""
    if weight.numel() > 1 and input.ndim > 1:
        weight = weight.reshape([-1] + [1] * (input.ndim - 2))
    return input.clamp(min=0) + weight * input.clamp(max=0)


def glu(input: Tensor, dim: int = -1) -> Any:
    """The first half along dim times the sigmoid of the second."""
    first, second = input.chunk(2, dim)
    return first * second.sigmoid()


def softmax(input: Tensor, dim: int, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """exp(x) over the sum of exp(x) along dim, in another dtype if given."""
    return input.softmax(dim) if dtype is None else input.to(dtype).softmax(dim)


def softmin(input: Tensor, dim: int, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """softmax of -x."""
    return softmax(-input, dim, _stacklevel, dtype)


def log_softmax(input: Tensor, dim: int, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """The logarithm of softmax, in another dtype if given."""
    return input.log_softmax(dim) if dtype is None else input.to(dtype).log_softmax(dim)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, dim: int = -1) -> Any:
    """A random sample near one of the classes, differentiable; `hard`: exactly one."""
    noise = -(-functions["rand_like"](logits).log()).log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.argmax(dim, True)
    exact = functions["zeros"](logits.shape, dtype=logits.dtype).scatter(dim, index, 1.0)
    return exact - soft.detach() + soft


def sigmoid(input: Tensor) -> Any:
    """1 / (1 + exp(-x))."""
    return input.sigmoid()


def tanh(input: Tensor) -> Any:
    """The hyperbolic tangent."""
    return input.tanh()


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """In training, zeroes each element with probability p and divides the others by 1 - p."""
    made = functions["dropout"](input, p, training)
    return input.copy_(made) if inplace else made


def _drop_channels(input: Tensor, p: float, training: bool, inplace: bool, dims: int) -> Any:
    """dropout of whole channels, which have `dims` dimensions."""
    if not training or p == 0:
        return input
    kept = input.shape[: input.ndim - dims]
    shape = [*kept, *([1] * dims)]
    made = input * functions["dropout"](functions["ones"](shape, dtype=input.dtype), p, True)
    return input.copy_(made) if inplace else made


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """dropout of whole channels of (N, C, L) or (C, L)."""
    return _drop_channels(input, p, training, inplace, 1)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """dropout of whole channels of (N, C, H, W)."""
    return _drop_channels(input, p, training, inplace, 2)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """dropout of whole channels of (N, C, D, H, W)."""
    return _drop_channels(input, p, training, inplace, 3)
