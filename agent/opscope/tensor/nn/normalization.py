"""LayerNorm and BatchNorm: mean 0 and variance 1, then a learned scale and shift."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opscope._tensor import Tensor, dtype, functions, int64, tensor
from opscope.tensor.nn.functional import normalization
from opscope.tensor.nn.module import Module, Parameter


def _ones(shape: tuple[int, ...], dtype: dtype | None) -> Tensor:
    made: Tensor = functions["ones"](shape, dtype=dtype)
    return made


def _zeros(shape: tuple[int, ...], dtype: dtype | None) -> Tensor:
    made: Tensor = functions["zeros"](shape, dtype=dtype)
    return made


def _text(shape: Sequence[int]) -> str:
    """A shape in an error, in Python that can be scripted."""
    text = ""
    for size in shape:
        text += (", " if text else "") + str(size)
    return f"({text})"


class LayerNorm(Module):
    """Normalizes over the last dimensions, whose sizes are `normalized_shape`."""

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        *,
        device: Any = None,
        dtype: dtype | None = None,
    ) -> None:
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else normalized_shape
        self.normalized_shape = tuple(shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        with_bias = elementwise_affine and bias
        self.weight = Parameter(_ones(self.normalized_shape, dtype)) if elementwise_affine else None
        self.bias = Parameter(_zeros(self.normalized_shape, dtype)) if with_bias else None

    def forward(self, input: Tensor) -> Any:
        return functions["layer_norm"](
            input, self.normalized_shape, self.weight, self.bias, self.eps
        )

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class _BatchNorm(Module):
    """Normalizes each channel (dimension 1) over all other dimensions. In training it uses the
    batch, and updates the running mean and variance by `momentum` (None: their mean over all
    batches); otherwise it uses the running values."""

    dims: tuple[int, ...]
    expected: str
    """`dims` for errors."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        *,
        device: Any = None,
        dtype: dtype | None = None,
    ) -> None:
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        shape = (num_features,)
        self.weight = Parameter(_ones(shape, dtype)) if affine else None
        self.bias = Parameter(_zeros(shape, dtype)) if affine else None
        tracks = track_running_stats
        self.register_buffer("running_mean", _zeros(shape, dtype) if tracks else None)
        self.register_buffer("running_var", _ones(shape, dtype) if tracks else None)
        count = tensor(0, dtype=int64) if tracks else None
        self.register_buffer("num_batches_tracked", count)

    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def forward(self, input: Tensor) -> Any:
        if input.ndim not in self.dims:
            raise ValueError(
                f"{type(self).__name__}: the input has {self.expected} dimensions, "
                f"not {input.ndim}: shape {_text(input.shape)}"
            )
        momentum = self.momentum or 0.0
        if self.training and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                momentum = 1 / self.num_batches_tracked.item()
        return functions["batch_norm"](
            input,
            self.weight,
            self.bias,
            self.running_mean,
            self.running_var,
            self.training or self.running_mean is None,
            momentum,
            self.eps,
        )

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(_BatchNorm):
    """_BatchNorm of (batch, channels) or (batch, channels, length)."""

    dims = (2, 3)
    expected = "2 or 3"


class BatchNorm2d(_BatchNorm):
    """_BatchNorm of (batch, channels, height, width)."""

    dims = (4,)
    expected = "4"


class BatchNorm3d(_BatchNorm):
    """_BatchNorm of (batch, channels, depth, height, width)."""

    dims = (5,)
    expected = "5"


class GroupNorm(Module):
    """Normalizes groups of channels (dimension 1) of each sample; then a learned scale and shift
    of each channel. ValueError if the groups do not divide the channels."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        *,
        bias: bool = True,
        device: Any = None,
        dtype: dtype | None = None,
    ) -> None:
        if num_channels % num_groups:
            raise ValueError(f"GroupNorm(): {num_groups} groups, {num_channels} channels")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self.weight = Parameter(_ones((num_channels,), dtype)) if affine else None
        self.bias = Parameter(_zeros((num_channels,), dtype)) if affine and bias else None

    def forward(self, input: Tensor) -> Any:
        return normalization.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class _InstanceNorm(_BatchNorm):
    """Normalizes each channel of each sample; with `track_running_stats`, by the running values
    in evaluation."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        *,
        device: Any = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device=device, dtype=dtype
        )

    def forward(self, input: Tensor) -> Any:
        if input.ndim not in self.dims:
            raise ValueError(
                f"{type(self).__name__}: the input has {self.expected} dimensions, "
                f"not {input.ndim}: shape {_text(input.shape)}"
            )
        whole = input.unsqueeze(0) if input.ndim == self.dims[0] else input
        made = normalization.instance_norm(
            whole,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or self.running_mean is None,
            self.momentum or 0.0,
            self.eps,
        )
        return made.squeeze(0) if input.ndim == self.dims[0] else made


class InstanceNorm1d(_InstanceNorm):
    """_InstanceNorm of (batch, channels, length) or (channels, length)."""

    dims = (2, 3)
    expected = "2 or 3"


class InstanceNorm2d(_InstanceNorm):
    """_InstanceNorm of (batch, channels, height, width) or (channels, height, width)."""

    dims = (3, 4)
    expected = "3 or 4"


class RMSNorm(Module):
    """Divides the last dimensions, whose sizes are `normalized_shape`, by their root mean
    square; then a learned scale."""

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        *,
        device: Any = None,
        dtype: dtype | None = None,
    ) -> None:
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else normalized_shape
        self.normalized_shape = tuple(shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self.weight = Parameter(_ones(self.normalized_shape, dtype)) if elementwise_affine else None

    def forward(self, input: Tensor) -> Any:
        return normalization.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class LocalResponseNorm(Module):
    """Divides by the mean square of `size` neighbouring channels (Krizhevsky et al., 2012)."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Any:
        return normalization.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
