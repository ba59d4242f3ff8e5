"""Convolutions under the names of torch.nn.functional: the operator conv2d, in one dimension, and
transposed."""

from __future__ import annotations

from typing import Any

from opscope._tensor import Tensor, functions
from opscope.tensor.nn.functional.padding import pad

Size = int | tuple[int, ...]
Pair = tuple[int, int]


def pair(value: Any) -> tuple[int, int]:
    """(height, width) of one number or of two."""
    if isinstance(value, int):
        return value, value
    return (value[0], value[0]) if len(value) == 1 else (value[0], value[1])


def single(value: Any) -> int:
    """The number of one number, or of a tuple of one."""
    return value if isinstance(value, int) else value[0]


def _same(kernel: int, dilation: int) -> tuple[int, int]:
    """The padding before and after that keeps a size."""
    whole = dilation * (kernel - 1)
    return whole // 2, whole - whole // 2


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """Kernels (out, in / groups, kH, kW) slid over images (N, in, H, W) or (in, H, W). `padding`
    "same" keeps the sizes, for stride 1; "valid" is 0."""
    if isinstance(padding, str):
        if padding == "same" and pair(stride) != (1, 1):
            raise RuntimeError("conv2d(): padding 'same' needs stride 1")
        if padding == "same":
            rates = pair(dilation)
            top, bottom = _same(weight.shape[2], rates[0])
            left, right = _same(weight.shape[3], rates[1])
            input = pad(input, (left, right, top, bottom))
        padding = 0
    return functions["conv2d"](
        input, weight, bias, pair(stride), pair(padding), pair(dilation), groups
    )


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """Kernels (out, in / groups, k) slid over sequences (N, in, L) or (in, L)."""
    if isinstance(padding, str):
        if padding == "same" and single(stride) != 1:
            raise RuntimeError("conv1d(): padding 'same' needs stride 1")
        if padding == "same":
            input = pad(input, _same(weight.shape[2], single(dilation)))
        padding = 0
    made = functions["conv2d"](
        input.unsqueeze(-2),
        weight.unsqueeze(-2),
        bias,
        (1, single(stride)),
        (0, single(padding)),
        (1, single(dilation)),
        groups,
    )
    return made.squeeze(-2)


def transposed_images(
    input: Tensor, weight: Tensor, steps: Pair, edges: Pair, more: Pair, groups: int, rates: Pair
) -> Any:
    """conv_transpose2d of images (N, in, H, W), without a bias."""
    if more[0] >= steps[0] or more[1] >= steps[1]:
        # No convolution has this gradient: its images would give a larger result.
        made = transposed_images(input, weight, steps, (0, 0), (0, 0), groups, rates)
        return pad(made, (-edges[1], more[1] - edges[1], -edges[0], more[0] - edges[0]))
    sizes = (
        (input.shape[2 + place] - 1) * steps[place]
        - 2 * edges[place]
        + rates[place] * (weight.shape[2 + place] - 1)
        + more[place]
        + 1
        for place in range(2)
    )
    size = (input.shape[0], weight.shape[1] * groups, *sizes)
    return functions["conv2d_input_backward"](input, weight, size, steps, edges, rates, groups)


def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Any:
    """The gradient of conv2d with respect to its input, as a layer: weight (in, out / groups, kH,
    kW), input (N, in, H, W) or (in, H, W)."""
    whole = input if input.ndim == 4 else input.unsqueeze(0)
    made = transposed_images(
        whole, weight, pair(stride), pair(padding), pair(output_padding), groups, pair(dilation)
    )
    if bias is not None:
        made = made + bias.reshape((-1, 1, 1))
    return made if input.ndim == 4 else made.squeeze(0)


def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Any:
    """conv_transpose2d of sequences (N, in, L) or (in, L)."""
    made = conv_transpose2d(
        input.unsqueeze(-2),
        weight.unsqueeze(-2),
        bias,
        (1, single(stride)),
        (0, single(padding)),
        (0, single(output_padding)),
        groups,
        (1, single(dilation)),
    )
    return made.squeeze(-2)


def unfold(
    input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Any:
    """The windows of images (N, C, H, W) as columns: (N, C kH kW, windows)."""
    (height, width), rates, edges = pair(kernel_size), pair(dilation), pair(padding)
    steps = pair(stride)
    whole = pad(input, (edges[1], edges[1], edges[0], edges[0]))
    spans = (rates[0] * (height - 1) + 1, rates[1] * (width - 1) + 1)
    windows = functions["unfold"](whole, -2, spans[0], steps[0])
    windows = functions["unfold"](windows, -2, spans[1], steps[1])
    windows = windows[..., :: rates[0], :: rates[1]]  # (N, C, rows, columns, kH, kW)
    samples, channels, rows, columns = windows.shape[:4]
    turned = windows.permute((0, 1, 4, 5, 2, 3))
    return turned.reshape((samples, channels * height * width, rows * columns))
