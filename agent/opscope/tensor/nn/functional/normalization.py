"""Normalizations, embeddings and attention under the names of torch.nn.functional."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opscope._tensor import Tensor, functions

scaled_dot_product_attention = functions["scaled_dot_product_attention"]
linear = functions["linear"]
one_hot = functions["one_hot"]


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """Each channel (dimension 1) with mean 0 and variance 1: those of the batch in training, which
    update the running ones; else the running ones."""
    return functions["batch_norm"](
        input, weight, bias, running_mean, running_var, training, momentum, eps
    )


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Any:
    """The last dimensions, of that shape, with mean 0 and variance 1."""
    return functions["layer_norm"](input, normalized_shape, weight, bias, eps)


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Any:
    """Groups of channels (dimension 1) of each sample with mean 0 and variance 1; then a scale and
    a shift for each channel."""
    channels = input.shape[1]
    if channels % num_groups:
        raise RuntimeError(f"group_norm(): {num_groups} groups must divide {channels} channels")
    size = input.numel() // (input.shape[0] * num_groups) if input.numel() else 0
    grouped = input.reshape((input.shape[0], num_groups, size))
    made = functions["layer_norm"](grouped, (size,), None, None, eps).reshape(input.shape)
    return _scaled(made, weight, bias)


def _scaled(made: Any, weight: Tensor | None, bias: Tensor | None) -> Any:
    """Times a weight and plus a bias for each channel (dimension 1)."""
    shape = [-1] + [1] * (made.ndim - 2)
    if weight is not None:
        made = made * weight.reshape(shape)
    return made if bias is None else made + bias.reshape(shape)


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """Each channel of each sample with mean 0 and variance 1; or, without `use_input_stats`, by
    the running ones."""
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    if running_mean is not None and running_var is not None:
        dims = tuple(range(2, input.ndim))
        held = input.detach()
        mean, variance = held.mean(dims).mean(0), functions["var"](held, dims).mean(0)
        running_mean.mul_(1 - momentum).add_(mean, alpha=momentum)
        running_var.mul_(1 - momentum).add_(variance, alpha=momentum)
    return group_norm(input, input.shape[1], weight, bias, eps)


def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Any:
    """The last dimensions, of that shape, divided by their root mean square."""
    dims = tuple(range(-len(normalized_shape), 0))
    if eps is None:
        from opscope.tensor.limits import finfo

        eps = finfo(input.dtype).eps
    made = input * (input.square().mean(dims, keepdim=True) + eps).rsqrt()
    return made if weight is None else made * weight


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Any:
    """Each element divided by (k + alpha times the mean square of `size` channels)^beta."""
    square = input.square().transpose(1, -1)
    edges = functions["zeros"]((*square.shape[:-1], size // 2), dtype=input.dtype)
    behind = functions["zeros"]((*square.shape[:-1], (size - 1) // 2), dtype=input.dtype)
    whole = functions["cat"]([edges, square, behind], -1)
    mean = functions["unfold"](whole, -1, size, 1).mean(-1).transpose(1, -1)
    return input / (mean * alpha + k).pow(beta)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Any:
    """Divided by the p-norm along dim, which counts as at least eps."""
    return input / input.norm(p, dim, True).clamp(min=eps)


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    """Rows of weight by index. The row `padding_idx` gets no gradient; rows longer than `max_norm`
    are first scaled down to it, in place."""
    if scale_grad_by_freq or sparse:
        raise NotImplementedError("embedding(): gradients are dense, and not scaled by frequency")
    if max_norm is not None:
        table = weight.data
        used = input.reshape((-1,))
        sizes = table.index_select(0, used).norm(norm_type, 1, True)
        scale = (max_norm / (sizes + 1e-7)).masked_fill(sizes <= max_norm, 1.0)
        table[used] = table.index_select(0, used) * scale
    rows = functions["embedding"](weight, input)
    if padding_idx is None:
        return rows
    at = padding_idx + weight.shape[0] if padding_idx < 0 else padding_idx
    return functions["where"]((input == at).unsqueeze(-1), rows.detach(), rows)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Any:
    """x1 @ weight[k] @ x2 for each k, plus bias."""
    made = functions["matmul"](input1.unsqueeze(-2).unsqueeze(-2), weight)
    made = (made.squeeze(-2) * input2.unsqueeze(-2)).sum(-1)
    return made if bias is None else made + bias
