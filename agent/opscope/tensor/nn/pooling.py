"""Pools: windows that slide over images (batch, channels, height, width) or sequences (batch,
channels, length), also without the batch dimension.
"""

from __future__ import annotations

from typing import Any

from opscope._tensor import Tensor, functions
from opscope.tensor.nn.functional import pooling
from opscope.tensor.nn.module import Module

Pair = int | tuple[int, int]


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

    def __init__(self, output_size: Any) -> None:
        self.output_size = output_size

    def forward(self, input: Tensor) -> Any:
        return pooling.adaptive_avg_pool2d(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(AdaptiveAvgPool2d):
    """Means of `output_size` windows that cover the sequence."""

    def forward(self, input: Tensor) -> Any:
        return pooling.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveMaxPool2d(AdaptiveAvgPool2d):
    """The largest elements of `output_size` windows that cover the image."""

    def forward(self, input: Tensor) -> Any:
        return pooling.adaptive_max_pool2d(input, self.output_size)


class AdaptiveMaxPool1d(AdaptiveAvgPool2d):
    """The largest elements of `output_size` windows that cover the sequence."""

    def forward(self, input: Tensor) -> Any:
        return pooling.adaptive_max_pool1d(input, self.output_size)


class MaxPool1d(MaxPool2d):
    """The largest element of each window of sequences."""

    def forward(self, input: Tensor) -> Any:
        return pooling.max_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode
        )


class AvgPool1d(Module):
    """The mean of each window of sequences; `stride` defaults to `kernel_size`."""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        sizes = [
            (each,) if isinstance(each, int) else tuple(each)
            for each in (kernel_size, kernel_size if stride is None else stride, padding)
        ]
        self.kernel_size, self.stride, self.padding = sizes
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Any:
        return pooling.avg_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"
