"""Convolutions and pools of volumes (batch, channels, depth, height, width), also without the batch
dimension."""

from __future__ import annotations

from typing import Any

from opscope._tensor import Tensor
from opscope.tensor.nn.convolution import _Conv, _Transposed
from opscope.tensor.nn.functional import volumes
from opscope.tensor.nn.functional.padding import pad
from opscope.tensor.nn.pooling import AdaptiveAvgPool2d, AvgPool2d, MaxPool2d


class Conv3d(_Conv):
    """Kernels slid over volumes; the weight is (out_channels, in_channels / groups, kernel depth,
    height, width)."""

    dims = 3

    def forward(self, input: Tensor) -> Any:
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input, padding = pad(input, self._edges(), self.padding_mode), 0
        return volumes.conv3d(
            input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups
        )


class ConvTranspose3d(_Transposed):
    """Of volumes (batch, channels, depth, height, width)."""

    dims = 3

    def forward(self, input: Tensor) -> Any:
        return volumes.conv_transpose3d(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self.output_padding,
            self.groups,
            self.dilation,
        )


class MaxPool3d(MaxPool2d):
    """The largest element of each window of volumes."""

    def forward(self, input: Tensor) -> Any:
        return volumes.max_pool3d(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode
        )


class AvgPool3d(AvgPool2d):
    """The mean of each window of volumes."""

    def forward(self, input: Tensor) -> Any:
        return volumes.avg_pool3d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AdaptiveAvgPool3d(AdaptiveAvgPool2d):
    """Means of `output_size` windows that cover the volume."""

    def forward(self, input: Tensor) -> Any:
        return volumes.adaptive_avg_pool3d(input, self.output_size)
