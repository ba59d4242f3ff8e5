"""Convolutions and pools of volumes (N, channels, depth, height, width) or without N, under the
names of torch.nn.functional: those of images, with the depth among the channels or the rows."""

from __future__ import annotations

from typing import Any

from opscope._tensor import Tensor, functions
from opscope.tensor.nn.functional.convolution import transposed_images
from opscope.tensor.nn.functional.padding import pad

Triple = tuple[int, int, int]


def triple(value: Any) -> Triple:
    """(depth, height, width) of one number or of three."""
    if isinstance(value, int):
        return value, value, value
    return (value[0],) * 3 if len(value) == 1 else (value[0], value[1], value[2])


def _batch(name: str, input: Tensor) -> Tensor:
    """The volumes with a dimension N."""
    if input.ndim not in (4, 5):
        raise RuntimeError(f"{name}(): volumes have 4 or 5 dimensions, not {input.ndim}")
    return input if input.ndim == 5 else input.unsqueeze(0)


def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """Kernels (out, in / groups, kD, kH, kW) slid over volumes. `padding` "same" keeps the sizes,
    for stride 1; "valid" is 0.

    The planes that a kernel reads at one depth become channels of one image."""
    if weight.ndim != 5:
        raise RuntimeError(f"conv3d(): the weight has 5 dimensions, not {weight.ndim}")
    whole = _batch("conv3d", input)
    steps, rates, size = triple(stride), triple(dilation), weight.shape[2:]
    if isinstance(padding, str):
        if padding == "same" and steps != (1, 1, 1):
            raise RuntimeError("conv3d(): padding 'same' needs stride 1")
        edges: list[int] = []
        for place in (2, 1, 0):
            total = rates[place] * (size[place] - 1) if padding == "same" else 0
            edges += [total // 2, total - total // 2]
        whole, padding = pad(whole, edges), 0
    depth_edge, *edges = triple(padding)
    if depth_edge:
        whole = pad(whole, (0, 0, 0, 0, depth_edge, depth_edge))
    span = rates[0] * (size[0] - 1) + 1
    if whole.shape[2] < span:
        raise RuntimeError(
            f"conv3d(): a kernel of depth {span} does not fit into depth {whole.shape[2]}"
        )
    planes = functions["unfold"](whole, 2, span, steps[0])[..., :: rates[0]]
    planes = planes.permute((0, 2, 1, 5, 3, 4))  # (N, depths, in, kD, H, W)
    count, depths = planes.shape[:2]
    made = functions["conv2d"](
        planes.reshape((count * depths, planes.shape[2] * size[0], *whole.shape[3:])),
        weight.reshape((weight.shape[0], weight.shape[1] * size[0], *size[1:])),
        bias,
        steps[1:],
        tuple(edges),
        rates[1:],
        groups,
    )
    made = made.reshape((count, depths, *made.shape[1:])).transpose(1, 2).contiguous()
    return made if input.ndim == 5 else made.squeeze(0)


def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Any:
    """The gradient of conv3d with respect to its input, as a layer: weight (in, out / groups, kD,
    kH, kW)."""
    whole = _batch("conv_transpose3d", input)
    steps, edges, rates = triple(stride), triple(padding), triple(dilation)
    count, channels, depth = whole.shape[:3]
    outs, size = weight.shape[1] * groups, weight.shape[2:]
    more = triple(output_padding)
    planes = transposed_images(
        whole.transpose(1, 2).reshape((count * depth, channels, *whole.shape[3:])),
        weight.reshape((channels, weight.shape[1] * size[0], *size[1:])),
        steps[1:],
        edges[1:],
        more[1:],
        groups,
        rates[1:],
    )
    sizes = planes.shape[2:]
    planes = planes.reshape((count, depth, outs, size[0], *sizes)).permute((3, 0, 2, 1, 4, 5))
    depths = (depth - 1) * steps[0] - 2 * edges[0] + rates[0] * (size[0] - 1) + more[0] + 1
    made = None
    for place in range(size[0]):
        # The planes of this depth of the kernel, `steps[0]` apart, at their place of the volume.
        apart = pad(planes[place].unsqueeze(3), (0, 0, 0, 0, 0, steps[0] - 1))
        apart = apart.reshape((count, outs, depth * steps[0], *sizes))
        first = place * rates[0] - edges[0]
        apart = pad(apart, (0, 0, 0, 0, first, depths - first - depth * steps[0]))
        made = apart if made is None else made + apart
    assert made is not None
    if bias is not None:
        made = made + bias.reshape((-1, 1, 1, 1))
    return made if input.ndim == 5 else made.squeeze(0)


def _by_planes(name: str, input: Tensor, images: Any, depths: Any) -> Any:
    """`images` of every plane, then `depths` of the columns, as images (depth, height * width)."""
    whole = _batch(name, input)
    count, channels, depth, height, width = whole.shape
    made = images(whole.reshape((count, channels * depth, height, width)))
    height, width = made.shape[2:]
    made = depths(made.reshape((count, channels, depth, height * width)))
    made = made.reshape((count, channels, made.shape[2], height, width))
    return made if input.ndim == 5 else made.squeeze(0)


def max_pool3d(
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
        raise RuntimeError("max_pool3d(): return_indices is not there; the values alone are")
    size, edges, rates = triple(kernel_size), triple(padding), triple(dilation)
    steps = size if stride is None else triple(stride)
    pool = functions["max_pool2d"]
    return _by_planes(
        "max_pool3d",
        input,
        lambda x: pool(x, size[1:], steps[1:], edges[1:], rates[1:], ceil_mode),
        lambda x: pool(x, (size[0], 1), (steps[0], 1), (edges[0], 0), (rates[0], 1), ceil_mode),
    )


def avg_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Any:
    """The mean of each window; `stride` defaults to the kernel's size."""
    size, edges = triple(kernel_size), triple(padding)
    steps = size if stride is None else triple(stride)
    divisor = None if divisor_override is None else 1
    pool, include = functions["avg_pool2d"], count_include_pad
    return _by_planes(
        "avg_pool3d",
        input,
        lambda x: pool(x, size[1:], steps[1:], edges[1:], ceil_mode, include, divisor),
        lambda x: pool(
            x, (size[0], 1), (steps[0], 1), (edges[0], 0), ceil_mode, include, divisor_override
        ),
    )


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Any:
    """Means of `output_size` windows that cover the volume; None keeps a size."""
    if not isinstance(output_size, int):
        given = zip(output_size, input.shape[-3:], strict=True)
        output_size = tuple(size if wanted is None else wanted for wanted, size in given)
    wanted = triple(output_size)
    pool = functions["adaptive_avg_pool2d"]
    return _by_planes(
        "adaptive_avg_pool3d",
        input,
        lambda x: pool(x, wanted[1:]),
        lambda x: pool(x, (wanted[0], x.shape[3])),
    )
