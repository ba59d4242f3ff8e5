"""Images sampled at given places: `grid_sample`, and `affine_grid`, which makes such places."""

from __future__ import annotations

from typing import Any

from opscope._tensor import Tensor, functions, int64


def affine_grid(theta: Tensor, size: Any, align_corners: bool = False) -> Any:
    """The places (N, H, W, 2), as (x, y) from -1 to 1, that matrices (N, 2, 3) give to the elements
    of images of size (N, C, H, W). RuntimeError for other sizes."""
    if len(size) != 4 or theta.shape != (size[0], 2, 3):
        raise RuntimeError(
            f"affine_grid(): theta of sizes {list(theta.shape)} and size {list(size)}: expected "
            "[N, 2, 3] and [N, C, H, W]"
        )
    height, width = size[2], size[3]
    y = _centres(height, align_corners, theta.dtype).reshape((height, 1)).expand((height, width))
    x = _centres(width, align_corners, theta.dtype).reshape((1, width)).expand((height, width))
    ones = functions["ones"]((height, width), dtype=theta.dtype)
    places = functions["stack"]([x, y, ones], -1).reshape((1, height * width, 3))
    turned = theta.transpose(1, 2)
    made = functions["matmul"](places.expand((size[0], height * width, 3)), turned)
    return made.reshape((size[0], height, width, 2))


def _centres(count: int, align_corners: bool, dtype: Any) -> Any:
    """The elements' centres from -1 to 1; `align_corners` puts the first and last at the ends."""
    if align_corners:
        whole = functions["linspace"](-1.0, 1.0, count, dtype=dtype)
        return whole if count > 1 else whole * 0
    steps = functions["arange"](0, count, 1, dtype=dtype)
    return (steps * 2 + 1) / count - 1


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Any:
    """Images (N, C, H, W) at places (N, h, w, 2), which are (x, y) from -1 to 1: (N, C, h, w).

    `mode`: "bilinear" or "nearest". Places outside: "zeros", the nearest element of the "border",
    or the image's "reflection". RuntimeError for other sizes, ValueError for other modes.
    """
    if mode not in ("bilinear", "nearest"):
        raise ValueError(f"grid_sample(): mode is {mode!r}: 'bilinear' or 'nearest'")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            f"grid_sample(): padding_mode is {padding_mode!r}: 'zeros', 'border' or 'reflection'"
        )
    if input.ndim != 4 or grid.ndim != 4 or grid.shape[0] != input.shape[0] or grid.shape[3] != 2:
        raise RuntimeError(
            f"grid_sample(): input of sizes {list(input.shape)} and grid of sizes "
            f"{list(grid.shape)}: expected [N, C, H, W] and [N, h, w, 2]"
        )
    aligned = bool(align_corners)
    height, width = input.shape[2:]
    x = _pixels(grid.select(-1, 0), width, padding_mode, aligned)
    y = _pixels(grid.select(-1, 1), height, padding_mode, aligned)
    if mode == "nearest":
        return _take(input, y.detach().round(), x.detach().round())
    top, left = y.detach().floor(), x.detach().floor()
    down, right = (y - top).unsqueeze(1), (x - left).unsqueeze(1)
    upper = _take(input, top, left) * (1 - right) + _take(input, top, left + 1) * right
    lower = _take(input, top + 1, left) * (1 - right) + _take(input, top + 1, left + 1) * right
    return upper * (1 - down) + lower * down


def _pixels(places: Any, count: int, padding_mode: str, aligned: bool) -> Any:
    """Places from -1 to 1 as numbers of `count` elements; those outside are moved inside, unless
    they are zeros."""
    at = (places + 1) * ((count - 1) / 2) if aligned else ((places + 1) * count - 1) / 2
    if padding_mode == "reflection":
        low, span = (0.0, float(count - 1)) if aligned else (-0.5, float(count))
        if span == 0:
            return at * 0
        distance = (at - low).abs()
        turns = (distance.detach() / span).floor()
        rest = distance - turns * span
        is_back = (turns % 2) == 1
        at = functions["where"](is_back, span - rest, rest) + low
    return at if padding_mode == "zeros" else at.clamp(0, count - 1)


def _take(input: Tensor, y: Any, x: Any) -> Any:
    """The elements in row y and column x, 0 outside: (N, C, h, w)."""
    samples, channels, height, width = input.shape
    inside = (y >= 0) & (y <= height - 1) & (x >= 0) & (x <= width - 1)
    at = y.clamp(0, height - 1) * width + x.clamp(0, width - 1)
    outside = functions["logical_not"](inside)  # so is NaN
    index = functions["to"](at.masked_fill(outside, 0.0), int64)
    shape = (samples, channels, y.shape[1] * y.shape[2])
    index = index.reshape((samples, 1, shape[2])).expand(shape)
    taken = input.flatten(2).gather(2, index).reshape((*shape[:2], *y.shape[1:]))
    return taken.masked_fill(outside.unsqueeze(1), 0.0)
