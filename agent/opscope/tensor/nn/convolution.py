"""Convolutions of images (batch, channels, height, width) and of sequences (batch, channels,
length), also without the batch dimension.
"""

from __future__ import annotations

import math
from typing import Any

from opscope._tensor import Tensor, dtype, functions
from opscope.tensor.nn.functional import convolution
from opscope.tensor.nn.functional.padding import pad
from opscope.tensor.nn.module import Module, Parameter
from opscope.tensor.nn.weights import kaiming_uniform, uniform
from opscope.tensor.places import check

Sizes = int | tuple[int, ...]


class _Conv(Module):
    """`out_channels` kernels slid over `in_channels`. `padding` is a number for each dimension,
    "same" or "valid"; `padding_mode` as for `functional.pad`, "zeros" for constant.

    Raises ValueError if `groups` does not divide the channels.
    """

    dims: int
    is_transposed = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: dtype | None = None,
    ) -> None:
        name = type(self).__name__
        check(device, name)
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ValueError(
                f"{name}(): groups of {groups} must divide in_channels, {in_channels}, "
                f"and out_channels, {out_channels}"
            )
        if isinstance(padding, str) and padding not in ("same", "valid"):
            raise ValueError(f"{name}(): padding is numbers, 'same' or 'valid', not {padding!r}")
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ValueError(f"{name}(): no padding_mode {padding_mode!r}")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = self._sizes(kernel_size)
        self.stride = self._sizes(stride)
        self.padding = padding if isinstance(padding, str) else self._sizes(padding)
        self.dilation = self._sizes(dilation)
        self.groups = groups
        self.padding_mode = padding_mode
        first, second = out_channels, in_channels // groups
        if self.is_transposed:
            first, second = in_channels, out_channels // groups
        shape = (first, second, *self.kernel_size)
        self.weight = Parameter(kaiming_uniform(shape, dtype))
        inputs = math.prod(shape[1:])
        bound = inputs**-0.5 if inputs else 0.0
        self.bias = Parameter(uniform((out_channels,), bound, dtype)) if bias else None

    def _sizes(self, value: Any) -> tuple[int, ...]:
        sizes = (value,) * self.dims if isinstance(value, int) else tuple(value)
        if len(sizes) != self.dims:
            name = type(self).__name__
            raise ValueError(f"{name}(): {self.dims} sizes expected, not {len(sizes)}")
        return sizes

    def _edges(self) -> list[int]:
        """The padding as `pad` takes it: last dimension first."""
        edges = []
        for place in range(self.dims - 1, -1, -1):
            if self.padding == "same":
                whole = self.dilation[place] * (self.kernel_size[place] - 1)
                edges += [whole // 2, whole - whole // 2]
            else:
                size = 0 if isinstance(self.padding, str) else self.padding[place]
                edges += [size, size]
        return edges

    def extra_repr(self) -> str:
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
        )
        text += f", padding={self.padding}" if self.padding != (0,) * self.dims else ""
        text += f", dilation={self.dilation}" if self.dilation != (1,) * self.dims else ""
        text += self._more_repr()
        text += f", groups={self.groups}" if self.groups != 1 else ""
        text += ", bias=False" if self.bias is None else ""
        text += f", padding_mode={self.padding_mode}" if self.padding_mode != "zeros" else ""
        return text

    def _more_repr(self) -> str:
        return ""


class Conv2d(_Conv):
    """Kernels slid over images; the weight is (out_channels, in_channels / groups, kernel height,
    kernel width). Pairs are (height, width)."""

    dims = 2

    def forward(self, input: Tensor) -> Any:
        if self.padding_mode == "zeros" and not isinstance(self.padding, str):
            return functions["conv2d"](
                input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups
            )
        mode = "constant" if self.padding_mode == "zeros" else self.padding_mode
        padded = pad(input, self._edges(), mode)
        return functions["conv2d"](
            padded, self.weight, self.bias, self.stride, (0, 0), self.dilation, self.groups
        )


class Conv1d(_Conv):
    """Kernels slid over sequences; the weight is (out_channels, in_channels / groups, kernel)."""

    dims = 1

    def forward(self, input: Tensor) -> Any:
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input, padding = pad(input, self._edges(), self.padding_mode), 0
        return convolution.conv1d(
            input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups
        )


class _Transposed(_Conv):
    """A layer that computes what the gradient of a convolution's input is: sizes grow by `stride`.
    The weight is (in_channels, out_channels / groups, kernel ...). `output_padding` adds to the
    sizes of the output."""

    is_transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Sizes = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: dtype | None = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f"{type(self).__name__}(): padding_mode is 'zeros'")
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )
        self.output_padding = self._sizes(output_padding)

    def _more_repr(self) -> str:
        if self.output_padding == (0,) * self.dims:
            return ""
        return f", output_padding={self.output_padding}"


class ConvTranspose2d(_Transposed):
    """Of images (batch, channels, height, width)."""

    dims = 2

    def forward(self, input: Tensor) -> Any:
        return convolution.conv_transpose2d(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self.output_padding,
            self.groups,
            self.dilation,
        )


class ConvTranspose1d(_Transposed):
    """Of sequences (batch, channels, length)."""

    dims = 1

    def forward(self, input: Tensor) -> Any:
        return convolution.conv_transpose1d(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self.output_padding,
            self.groups,
            self.dilation,
        )


class Unfold(Module):
    """The windows of images as columns: (N, C, H, W) gives (N, C kH kW, windows)."""

    def __init__(
        self, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
    ) -> None:
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Any:
        return convolution.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, "
            f"stride={self.stride}"
        )
