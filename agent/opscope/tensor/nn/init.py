"""Initial weights in place, under the names of torch.nn.init; repeatable by `manual_seed`.

Each fills its tensor off the tape, and returns it.
"""

from __future__ import annotations

import math
from typing import Any

from opscope._tensor import Tensor, functions
from opscope.tensor.autograd import no_grad
from opscope.tensor.composed.sampling import normal_ as _normal
from opscope.tensor.composed.sampling import uniform_ as _uniform


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which the layer before a function scales its weights."""
    if nonlinearity == "tanh":
        return 5 / 3
    if nonlinearity == "relu":
        return math.sqrt(2)
    if nonlinearity == "leaky_relu":
        return math.sqrt(2 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity == "selu":
        return 3 / 4
    if nonlinearity in ("linear", "sigmoid", "conv1d", "conv2d", "conv3d"):
        return 1.0
    if nonlinearity in ("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"):
        return 1.0
    raise ValueError(f"calculate_gain(): unknown function {nonlinearity!r}")


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Uniform between a and b."""
    with no_grad():
        return _uniform(tensor, a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Normal, with that mean and standard deviation."""
    with no_grad():
        return _normal(tensor, mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Tensor:
    """Normal, drawn again outside of a to b."""
    with no_grad():
        _normal(tensor, mean, std, generator=generator)
        while bool(((tensor < a) | (tensor > b)).any()):
            again = _normal(functions["empty_like"](tensor), mean, std, generator=generator)
            tensor.copy_(functions["where"]((tensor < a) | (tensor > b), again, tensor))
    return tensor


def constant_(tensor: Tensor, val: float) -> Tensor:
    """One number everywhere."""
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """1 everywhere."""
    return constant_(tensor, 1)


def zeros_(tensor: Tensor) -> Tensor:
    """0 everywhere."""
    return constant_(tensor, 0)


def eye_(tensor: Tensor) -> Tensor:
    """The identity matrix. ValueError unless there are two dimensions."""
    if tensor.ndim != 2:
        raise ValueError("eye_(): the tensor has two dimensions")
    with no_grad():
        return tensor.copy_(functions["eye"](*tensor.shape))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Convolution weights that keep the channels as they are."""
    if tensor.ndim not in (3, 4, 5) or tensor.shape[0] % groups:
        raise ValueError("dirac_(): a convolution's weight, with channels that groups divide")
    with no_grad():
        tensor.fill_(0)
        each = tensor.shape[0] // groups
        centre = tuple(size // 2 for size in tensor.shape[2:])
        for group in range(groups):
            for channel in range(min(each, tensor.shape[1])):
                tensor[(group * each + channel, channel, *centre)] = 1
    return tensor


def _fans(tensor: Tensor) -> tuple[int, int]:
    """Inputs and outputs of one element. ValueError for fewer than two dimensions."""
    if tensor.ndim < 2:
        raise ValueError("fans need a tensor of at least two dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Uniform within ±gain sqrt(6 / (inputs + outputs)) (Glorot and Bengio, 2010)."""
    bound = gain * math.sqrt(6 / sum(_fans(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Normal, of deviation gain sqrt(2 / (inputs + outputs)) (Glorot and Bengio, 2010)."""
    return normal_(tensor, 0.0, gain * math.sqrt(2 / sum(_fans(tensor))), generator)


def _deviation(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"mode is 'fan_in' or 'fan_out', not {mode!r}")
    fan = _fans(tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Uniform, with the deviation that keeps the variance of activations (He et al., 2015)."""
    bound = math.sqrt(3) * _deviation(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Normal, with the deviation that keeps the variance of activations (He et al., 2015)."""
    return normal_(tensor, 0.0, _deviation(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Rows, or columns, that are orthogonal and of length gain (Saxe et al., 2013)."""
    from opscope.tensor.linalg import qr

    if tensor.ndim < 2:
        raise ValueError("orthogonal_(): at least two dimensions")
    rows = tensor.shape[0]
    columns = tensor.numel() // max(rows, 1)
    with no_grad():
        drawn = normal_(functions["empty"]((rows, columns), dtype=tensor.dtype), 0, 1, generator)
        q, r = qr(drawn.T if rows < columns else drawn)
        q = q * r.diagonal().sign()
        return tensor.copy_((q.T if rows < columns else q).reshape(tensor.shape) * gain)


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Normal, with that share of each column set to zero."""
    if tensor.ndim != 2:
        raise ValueError("sparse_(): the tensor has two dimensions")
    from opscope.tensor.composed.sampling import randperm

    rows, columns = tensor.shape
    normal_(tensor, 0, std, generator)
    with no_grad():
        for column in range(columns):
            zeroed = randperm(rows, generator=generator)[: math.ceil(sparsity * rows)]
            tensor[zeroed, column] = 0
    return tensor
