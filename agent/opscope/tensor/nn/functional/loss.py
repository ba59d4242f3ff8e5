"""Losses, under the names of torch.nn.functional. `reduction` is "mean", "sum" or "none"."""

from __future__ import annotations

import math
from typing import Any

from opscope._tensor import Tensor, functions


def reduced(loss: Any, reduction: str) -> Any:
    """The mean or the sum of a loss, or the loss itself. ValueError for another word."""
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    if reduction != "none":
        raise ValueError("reduction is 'mean', 'sum' or 'none'")
    return loss


def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Any:
    """The squared difference."""
    return functions["mse_loss"](input, target, reduction=reduction)


def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Any:
    """The absolute difference."""
    return functions["l1_loss"](input, target, reduction=reduction)


def smooth_l1_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0
) -> Any:
    """The absolute difference less beta / 2; below beta, its square over 2 beta."""
    if beta == 0:
        return l1_loss(input, target, reduction)
    return huber_loss(input, target, reduction, beta) / beta


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0) -> Any:
    """Half the squared difference; above delta, delta times the difference less delta / 2."""
    size = (input - target).abs()
    small = size.clamp(max=delta)
    return reduced(small * (size - small * 0.5), reduction)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    """nll_loss of log_softmax: input (N, C, ...) or (C,) of scores; target (N, ...) of classes, or
    of probabilities in the shape of input."""
    return functions["cross_entropy"](
        input,
        target,
        weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """Minus the log probability of each target class: input (N, C, ...), target (N, ...)."""
    return functions["nll_loss"](
        input, target, weight, ignore_index=ignore_index, reduction=reduction
    )


def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Any:
    """Minus the log probability of targets from 0 to 1; logarithms are at least -100."""
    yes = input.log().clamp(min=-100)
    no = (1 - input).log().clamp(min=-100)
    loss = -(target * yes + (1 - target) * no)
    return reduced(loss if weight is None else loss * weight, reduction)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Any:
    """binary_cross_entropy of the sigmoid of input; `pos_weight` scales the positive targets."""
    if weight is None and pos_weight is None:
        return functions["binary_cross_entropy_with_logits"](input, target, reduction=reduction)
    # -log(sigmoid(-x)) = max(x, 0) + log(1 + exp(-|x|)), and -log(sigmoid(x)) is x less.
    tail = input.abs().neg().exp().log1p()
    scale: Any = 1 if pos_weight is None else (pos_weight - 1) * target + 1
    loss = (1 - target) * input + scale * (tail + (-input).clamp(min=0))
    return reduced(loss if weight is None else loss * weight, reduction)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Any:
    """The divergence of log probabilities from target probabilities, or from their logarithms;
    "batchmean" divides the sum by the first size."""
    if log_target:
        loss = target.exp() * (target - input)
    else:
        positive = target > 0
        logs = target.masked_fill(target <= 0, 1.0).log()
        loss = (target * logs).masked_fill(~positive, 0.0) - target * input
    if reduction == "batchmean":
        return loss.sum() / input.shape[0]
    return reduced(loss, reduction)


def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: str = "mean"
) -> Any:
    """x for target 1; max(0, margin - x) for target -1."""
    away = (margin - input).clamp(min=0).masked_fill(target == 1, 0.0)
    near = input.masked_fill(target == -1, 0.0)
    return reduced(away + near, reduction)


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Any:
    """max(0, margin - target (x1 - x2))."""
    return reduced((-target * (input1 - input2) + margin).clamp(min=0), reduction)


def soft_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Any:
    """log(1 + exp(-target x))."""
    return reduced((-target * input).exp().log1p(), reduction)


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Any:
    """1 - cos for target 1, max(0, cos - margin) for target -1."""
    dim = -1 if input1.ndim == 1 else 1
    eps = 1e-12
    both = (input1 * input2).sum(dim)
    first, second = input1.square().sum(dim) + eps, input2.square().sum(dim) + eps
    cosine = both / (first * second).sqrt()
    near = (1 - cosine).masked_fill(target == -1, 0.0)
    away = (cosine - margin).clamp(min=0).masked_fill(target == 1, 0.0)
    return reduced(near + away, reduction)


def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Any:
    """The p-norm of x1 - x2 + eps along the last dimension."""
    return (x1 - x2 + eps).norm(p, -1, keepdim)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Any:
    """max(0, margin + the distance to the positive - that to the negative)."""
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = functions["minimum"](far, pairwise_distance(positive, negative, p, eps))
    return reduced((near - far + margin).clamp(min=0), reduction)


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Any:
    """Minus the log probability of counts under a Poisson distribution of rate exp(x), or x."""
    logs = input if log_input else (input + eps).log()
    loss = (input.exp() if log_input else input) - target * logs
    if full:
        more = target * target.log() - target + (target * (2 * math.pi)).log() * 0.5
        loss = loss + more.masked_fill(target <= 1, 0.0)
    return reduced(loss, reduction)


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Any:
    """Minus the log probability under normal distributions of mean x and variance `var`."""
    held = var + (var.detach().clamp(min=eps) - var.detach())
    loss = (held.log() + (input - target).square() / held) * 0.5
    loss = loss + 0.5 * math.log(2 * math.pi) if full else loss
    return reduced(loss, reduction)
