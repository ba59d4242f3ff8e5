"""`interpolate` and shuffles of pixels: images in other sizes."""

from __future__ import annotations

import math
from typing import Any

from opscope import _tensor
from opscope._tensor import Tensor, functions


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Any:
    """Samples (N, C, ...) in another size, or by a factor for each dimension.

    `mode`: "nearest", "nearest-exact", "area"; "linear" (N, C, L), "bilinear" and "bicubic"
    (N, C, H, W), where `align_corners` lets the corners' centres keep their values. ValueError for
    what does not go together.
    """
    dims = input.ndim - 2
    if (size is None) == (scale_factor is None):
        raise ValueError("interpolate(): either size or scale_factor")
    if align_corners is not None and mode in ("nearest", "nearest-exact", "area"):
        raise ValueError(f"interpolate(): align_corners is not for mode {mode!r}")
    if antialias:
        raise NotImplementedError("interpolate(): antialias is not there")
    factors = [None] * dims if scale_factor is None else _each(scale_factor, dims)
    if size is not None:
        sizes = _each(size, dims)
    else:
        sizes = [
            math.floor(own * factor) for own, factor in zip(input.shape[2:], factors, strict=True)
        ]
        if recompute_scale_factor:
            factors = [None] * dims
    if mode == "area":
        from opscope.tensor.nn.functional.pooling import adaptive_avg_pool1d, adaptive_avg_pool2d

        pool = adaptive_avg_pool1d if dims == 1 else adaptive_avg_pool2d
        return pool(input, tuple(sizes))
    expected = {"linear": 1, "bilinear": 2, "bicubic": 2}.get(mode, dims)
    if expected != dims:
        raise NotImplementedError(f"interpolate(): mode {mode!r} is for {expected} dimensions")
    for place, (wanted, factor) in enumerate(zip(sizes, factors, strict=True)):
        input = _along(input, place + 2, wanted, factor, mode, bool(align_corners))
    return input


def upsample(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Any:
    """`interpolate`."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def _each(value: Any, dims: int) -> list[Any]:
    return [value] * dims if isinstance(value, (int, float)) else list(value)


def _along(
    input: Tensor, dim: int, size: int, factor: float | None, mode: str, align: bool
) -> Tensor:
    """One dimension in another size."""
    own = input.shape[dim]
    step = own / size if factor is None else 1 / factor
    steps = functions["arange"](size, dtype=_tensor.float64)
    if mode in ("nearest", "nearest-exact"):
        offset = 0.5 if mode == "nearest-exact" else 0.0
        places = ((steps + offset) * step).floor().clamp(0, own - 1)
        return input.index_select(dim, places.to(_tensor.int64))
    if align:
        exact = steps * ((own - 1) / (size - 1) if size > 1 else 0)
    else:
        exact = (steps + 0.5) * step - 0.5
    if mode == "bicubic":
        taps = _cubic(exact)
    else:
        exact = exact.clamp(min=0)
        part = exact - exact.floor()
        taps = [(0, 1 - part), (1, part)]
    first = exact.floor().to(_tensor.int64)
    made: Any = None
    for offset, weight in taps:
        places = (first + offset).clamp(0, own - 1)
        shape = [-1] + [1] * (input.ndim - 1 - dim)
        term = input.index_select(dim, places) * weight.to(input.dtype).reshape(shape)
        made = term if made is None else made + term
    return made  # type: ignore[no-any-return]


def _cubic(exact: Tensor) -> list[tuple[int, Tensor]]:
    """Keys' weights (1981) of four neighbours, with a = -0.75."""
    a = -0.75
    part = exact - exact.floor()

    def near(x: Tensor) -> Tensor:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Tensor) -> Tensor:
        return ((x - 5) * x + 8) * x * a - 4 * a

    return [(-1, far(part + 1)), (0, near(part)), (1, near(1 - part)), (2, far(2 - part))]


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Any:
    """(..., C r², H, W) as (..., C, H r, W r)."""
    r = upscale_factor
    *rest, channels, height, width = input.shape
    whole = input.reshape((*rest, channels // (r * r), r, r, height, width))
    n = len(rest)
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return whole.permute(order).reshape((*rest, channels // (r * r), height * r, width * r))


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Any:
    """(..., C, H r, W r) as (..., C r², H, W)."""
    r = downscale_factor
    *rest, channels, height, width = input.shape
    whole = input.reshape((*rest, channels, height // r, r, width // r, r))
    n = len(rest)
    order = (*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return whole.permute(order).reshape((*rest, channels * r * r, height // r, width // r))
