"""Pools under the names of torch.nn.functional: the operators of images, in one dimension too."""

from __future__ import annotations

from typing import Any

from opscope._tensor import Tensor, functions
from opscope.tensor.nn.functional.convolution import pair, single


def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of each window; `stride` defaults to the kernel's size."""
    if return_indices:
        raise RuntimeError("max_pool2d(): return_indices is not there; the values alone are")
    step = kernel_size if stride is None else stride
    return functions["max_pool2d"](
        input, pair(kernel_size), pair(step), pair(padding), pair(dilation), ceil_mode
    )


def max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Any:
    """The largest element of each window of sequences (N, C, L) or (C, L)."""
    size = single(kernel_size)
    step = size if stride is None else single(stride)
    made = functions["max_pool2d"](
        input.unsqueeze(-2),
        (1, size),
        (1, step),
        (0, single(padding)),
        (1, single(dilation)),
        ceil_mode,
    )
    return made.squeeze(-2)


def avg_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Any:
    """The mean of each window; `stride` defaults to the kernel's size."""
    step = kernel_size if stride is None else stride
    return functions["avg_pool2d"](
        input,
        pair(kernel_size),
        pair(step),
        pair(padding),
        ceil_mode,
        count_include_pad,
        divisor_override,
    )


def avg_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Any:
    """The mean of each window of sequences (N, C, L) or (C, L)."""
    size = single(kernel_size)
    step = size if stride is None else single(stride)
    made = functions["avg_pool2d"](
        input.unsqueeze(-2),
        (1, size),
        (1, step),
        (0, single(padding)),
        ceil_mode,
        count_include_pad,
    )
    return made.squeeze(-2)


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Any:
    """Means of as many windows as output_size asks for; None keeps a size."""
    return functions["adaptive_avg_pool2d"](input, _sizes(input, output_size))


def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Any:
    """Means of that many windows of sequences (N, C, L) or (C, L)."""
    made = functions["adaptive_avg_pool2d"](input.unsqueeze(-2), (1, single(output_size)))
    return made.squeeze(-2)


def adaptive_max_pool2d(input: Tensor, output_size: Any) -> Any:
    """The largest elements of as many windows as output_size asks for; None keeps a size."""
    rows, columns = _sizes(input, output_size)
    height, width = input.shape[-2:]
    lines = [
        functions["stack"](
            [
                input[..., _part(height, rows, row), _part(width, columns, column)].amax((-2, -1))
                for column in range(columns)
            ],
            -1,
        )
        for row in range(rows)
    ]
    return functions["stack"](lines, -2)


def adaptive_max_pool1d(input: Tensor, output_size: Any) -> Any:
    """The largest elements of that many windows of sequences (N, C, L) or (C, L)."""
    return adaptive_max_pool2d(input.unsqueeze(-2), (1, single(output_size))).squeeze(-2)


def _part(size: int, parts: int, place: int) -> slice:
    return slice(place * size // parts, -((place + 1) * size // -parts))


def _sizes(input: Tensor, output_size: Any) -> tuple[int, int]:
    if isinstance(output_size, int):
        return output_size, output_size
    height, width = output_size
    return (
        input.shape[-2] if height is None else height,
        input.shape[-1] if width is None else width,
    )
