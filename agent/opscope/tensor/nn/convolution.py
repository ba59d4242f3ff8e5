"""Conv2d and the pools: windows that slide over images (batch, channels, height, width), or over
one image without the batch dimension.
"""

from __future__ import annotations

from typing import Any

from opscope._tensor import Tensor, dtype, float32, functions
from opscope.tensor.nn.init import kaiming_uniform, uniform
from opscope.tensor.nn.module import Module, Parameter

Pair = int | tuple[int, int]


def _pair(value: Pair) -> tuple[int, int]:
    if isinstance(value, int):
        return value, value
    height, width = value
    return height, width


class Conv2d(Module):
    """`out_channels` kernels slid over images of `in_channels`; the weight is (out_channels,
    in_channels / groups, kernel height, kernel width). Pairs are (height, width).

    Raises ValueError if `groups` does not divide the channels.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Pair,
        stride: Pair = 1,
        padding: Pair = 0,
        dilation: Pair = 1,
        groups: int = 1,
        bias: bool = True,
        *,
        dtype: dtype = float32,
    ) -> None:
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ValueError(
                f"Conv2d(): groups of {groups} must divide in_channels, {in_channels}, "
                f"and out_channels, {out_channels}"
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = _pair(kernel_size)
        self.stride = _pair(stride)
        self.padding = _pair(padding)
        self.dilation = _pair(dilation)
        self.groups = groups
        shape = (out_channels, in_channels // groups, *self.kernel_size)
        self.weight = Parameter(kaiming_uniform(shape, dtype))
        inputs = shape[1] * shape[2] * shape[3]
        bound = inputs**-0.5 if inputs else 0.0
        self.bias = Parameter(uniform((out_channels,), bound, dtype)) if bias else None

    def forward(self, input: Tensor) -> Any:
        return functions["conv2d"](
            input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups
        )

    def extra_repr(self) -> str:
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
        )
        text += f", padding={self.padding}" if self.padding != (0, 0) else ""
        text += f", dilation={self.dilation}" if self.dilation != (1, 1) else ""
        text += f", groups={self.groups}" if self.groups != 1 else ""
        return text + (", bias=False" if self.bias is None else "")


class MaxPool2d(Module):
    """The largest element of each window; `stride` defaults to `kernel_size`."""

    def __init__(
        self,
        kernel_size: Pair,
        stride: Pair | None = None,
        padding: Pair = 0,
        dilation: Pair = 1,
        ceil_mode: bool = False,
    ) -> None:
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        return functions["max_pool2d"](
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class AvgPool2d(Module):
    """The mean of each window; `stride` defaults to `kernel_size`."""

    def __init__(
        self,
        kernel_size: Pair,
        stride: Pair | None = None,
        padding: Pair = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Any:
        return functions["avg_pool2d"](
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AdaptiveAvgPool2d(Module):
    """Means of `output_size` windows that cover the image."""

    def __init__(self, output_size: Pair) -> None:
        self.output_size = output_size

    def forward(self, input: Tensor) -> Any:
        return functions["adaptive_avg_pool2d"](input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"
