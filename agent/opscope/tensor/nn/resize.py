"""Modules that resize and pad images and sequences."""

from __future__ import annotations

from typing import Any

from opscope._tensor import Tensor
from opscope.tensor.nn.functional import resize
from opscope.tensor.nn.functional.padding import pad
from opscope.tensor.nn.module import Module


class Upsample(Module):
    """`functional.interpolate` to a size, or by a factor."""

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        self.size = size
        if isinstance(scale_factor, (tuple, list)):
            scale_factor = tuple(float(each) for each in scale_factor)
        self.scale_factor = float(scale_factor) if isinstance(scale_factor, int) else scale_factor
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Any:
        return resize.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            self.recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        given = self.size if self.scale_factor is None else self.scale_factor
        name = "size" if self.scale_factor is None else "scale_factor"
        return f"{name}={given!r}, mode={self.mode!r}"


class PixelShuffle(Module):
    """(..., C r², H, W) as (..., C, H r, W r)."""

    def __init__(self, upscale_factor: int) -> None:
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Any:
        return resize.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """(..., C, H r, W r) as (..., C r², H, W)."""

    def __init__(self, downscale_factor: int) -> None:
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Any:
        return resize.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class _Pad(Module):
    """`padding`: one number, or (left, right) and for images (left, right, top, bottom)."""

    dims: int
    mode: str
    value = 0.0

    def __init__(self, padding: Any) -> None:
        whole = (padding,) * (2 * self.dims) if isinstance(padding, int) else tuple(padding)
        self.padding = whole

    def forward(self, input: Tensor) -> Any:
        return pad(input, self.padding, self.mode, self.value or None)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ConstantPad1d(_Pad):
    """Sequences with a number at the edges."""

    dims = 1
    mode = "constant"

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad2d(ConstantPad1d):
    """Images with a number at the edges."""

    dims = 2


class ZeroPad1d(_Pad):
    """Sequences with zeros at the edges."""

    dims = 1
    mode = "constant"


class ZeroPad2d(_Pad):
    """Images with zeros at the edges."""

    dims = 2
    mode = "constant"


class ReflectionPad1d(_Pad):
    """Sequences mirrored at the edges."""

    dims = 1
    mode = "reflect"


class ReflectionPad2d(_Pad):
    """Images mirrored at the edges."""

    dims = 2
    mode = "reflect"


class ReplicationPad1d(_Pad):
    """Sequences whose edges are repeated."""

    dims = 1
    mode = "replicate"


class ReplicationPad2d(_Pad):
    """Images whose edges are repeated."""

    dims = 2
    mode = "replicate"
