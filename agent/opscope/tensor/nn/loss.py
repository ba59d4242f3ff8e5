"""Losses: the distance of an output from its target, as one number or one per sample."""

from __future__ import annotations

from typing import Any

from opscope._tensor import Tensor, functions
from opscope.tensor.nn.functional import loss
from opscope.tensor.nn.module import Module


class Loss(Module):
    """`reduction`: "mean", "sum", or "none" for one number per sample or element."""

    words: tuple[str, ...] = ("mean", "sum", "none")

    def __init__(self, reduction: str = "mean") -> None:
        if reduction not in self.words:
            raise ValueError(f"{type(self).__name__}(): reduction is 'mean', 'sum' or 'none'")
        self.reduction = reduction


class MSELoss(Loss):
    """The squared difference of input and target."""

    def forward(self, input: Tensor, target: Tensor) -> Any:
        return functions["mse_loss"](input, target, reduction=self.reduction)


class L1Loss(Loss):
    """The absolute difference of input and target."""

    def forward(self, input: Tensor, target: Tensor) -> Any:
        return functions["l1_loss"](input, target, reduction=self.reduction)


class NLLLoss(Loss):
    """Minus the log probability of each target class: input (batch, classes, ...) of log
    probabilities, target (batch, ...) of classes. `weight` has one number per class; targets equal
    to `ignore_index` do not count."""

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: None = None,
        ignore_index: int = -100,
        reduce: None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)
        self.ignore_index = ignore_index

    weight: Tensor | None

    def forward(self, input: Tensor, target: Tensor) -> Any:
        return functions["nll_loss"](
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
        )


class CrossEntropyLoss(Loss):
    """NLLLoss of LogSoftmax: input (batch, classes, ...) of scores. `label_smoothing` spreads
    that share of each target over all classes."""

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: None = None,
        ignore_index: int = -100,
        reduce: None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    weight: Tensor | None

    def forward(self, input: Tensor, target: Tensor) -> Any:
        return functions["cross_entropy"](
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class BCELoss(Loss):
    """Minus the log probability of targets from 0 to 1, of probabilities."""

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: None = None,
        reduce: None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)

    weight: Tensor | None

    def forward(self, input: Tensor, target: Tensor) -> Any:
        return loss.binary_cross_entropy(input, target, self.weight, self.reduction)


class BCEWithLogitsLoss(Loss):
    """BCELoss of the sigmoid of the input, computed without loss of precision; `pos_weight` scales
    the positive targets."""

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: None = None,
        reduce: None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    weight: Tensor | None
    pos_weight: Tensor | None

    def forward(self, input: Tensor, target: Tensor) -> Any:
        return loss.binary_cross_entropy_with_logits(
            input,
            target,
            self.weight,
            reduction=self.reduction,
            pos_weight=self.pos_weight,
        )
