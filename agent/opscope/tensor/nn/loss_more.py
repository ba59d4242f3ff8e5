"""Losses that few networks use, and distances. nn/functional/loss.py has what they compute."""

from __future__ import annotations

from typing import Any

from opscope._tensor import Tensor
from opscope.tensor.composed.reductions import cosine_similarity
from opscope.tensor.nn.functional import loss
from opscope.tensor.nn.loss import Loss
from opscope.tensor.nn.module import Module


class SmoothL1Loss(Loss):
    """The absolute difference less beta / 2; below beta, its square over 2 beta."""

    def __init__(
        self,
        size_average: None = None,
        reduce: None = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Any:
        return loss.smooth_l1_loss(input, target, self.reduction, self.beta)


class HuberLoss(Loss):
    """Half the squared difference; above delta, delta times the difference less delta / 2."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Any:
        return loss.huber_loss(input, target, self.reduction, self.delta)


class KLDivLoss(Loss):
    """The divergence of log probabilities from target probabilities; "batchmean" divides the sum by
    the batch size."""

    words = ("mean", "sum", "none", "batchmean")

    def __init__(
        self,
        size_average: None = None,
        reduce: None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Any:
        return loss.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class HingeEmbeddingLoss(Loss):
    """x for target 1; max(0, margin - x) for target -1."""

    def __init__(
        self,
        margin: float = 1.0,
        size_average: None = None,
        reduce: None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Any:
        return loss.hinge_embedding_loss(input, target, self.margin, self.reduction)


class MarginRankingLoss(Loss):
    """max(0, margin - target (x1 - x2))."""

    def __init__(
        self,
        margin: float = 0.0,
        size_average: None = None,
        reduce: None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Any:
        return loss.margin_ranking_loss(input1, input2, target, self.margin, self.reduction)


class SoftMarginLoss(Loss):
    """log(1 + exp(-target x))."""

    def __init__(
        self, size_average: None = None, reduce: None = None, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction)

    def forward(self, input: Tensor, target: Tensor) -> Any:
        return loss.soft_margin_loss(input, target, self.reduction)


class CosineEmbeddingLoss(Loss):
    """1 - cos for target 1, max(0, cos - margin) for target -1."""

    def __init__(
        self,
        margin: float = 0.0,
        size_average: None = None,
        reduce: None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Any:
        return loss.cosine_embedding_loss(input1, input2, target, self.margin, self.reduction)


class PoissonNLLLoss(Loss):
    """Minus the log probability of counts under a Poisson distribution."""

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: None = None,
        eps: float = 1e-8,
        reduce: None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor) -> Any:
        return loss.poisson_nll_loss(
            input, target, self.log_input, self.full, self.eps, self.reduction
        )


class GaussianNLLLoss(Loss):
    """Minus the log probability under normal distributions of variance `var`."""

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor) -> Any:
        return loss.gaussian_nll_loss(input, target, var, self.full, self.eps, self.reduction)


class TripletMarginLoss(Loss):
    """max(0, margin + the distance to the positive - that to the negative)."""

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: None = None,
        reduce: None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction)
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Any:
        return loss.triplet_margin_loss(
            anchor,
            positive,
            negative,
            self.margin,
            self.p,
            self.eps,
            self.swap,
            self.reduction,
        )


class PairwiseDistance(Module):
    """The p-norm of x1 - x2 + eps along the last dimension."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Any:
        return loss.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """The cosine of the angle of vectors along dim."""

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Any:
        return cosine_similarity(x1, x2, self.dim, self.eps)
