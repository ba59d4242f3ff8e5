"""Schedules of learning rates, under the names of torch.optim.lr_scheduler.

A schedule sets the "lr" of each group of its optimizer when it is made, and at each `step`.
`last_epoch` counts the steps.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from opscope.tensor.optim.optimizer import Group, Optimizer


class LRScheduler:
    """The base class: subclasses define `get_lr`, the rates of this step."""

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError("a group has no 'initial_lr', which going on at last_epoch needs")
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._last_lr: list[float] = []
        self.step()

    def get_lr(self) -> list[float]:
        """The rate of each group for `last_epoch`."""
        raise NotImplementedError

    def get_last_lr(self) -> list[float]:
        """The rates that the last step set."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Goes on to the next step, or to that one, and sets the rates."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self._set(self.get_lr())

    def _set(self, rates: Iterable[float]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def _rates(self) -> list[float]:
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """All that the schedule needs to go on, without functions."""
        return {
            name: value
            for name, value in vars(self).items()
            if name != "optimizer" and not callable(value)
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on where state_dict() was called."""
        vars(self).update(state_dict)


class LambdaLR(LRScheduler):
    """The first rate times a function of the step; a list has one function for each group."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        many = isinstance(lr_lambda, (list, tuple))
        given = list(lr_lambda) if many else [lr_lambda] * len(optimizer.param_groups)
        if len(given) != len(optimizer.param_groups):
            raise ValueError(f"{type(self).__name__}(): one function for each group")
        self.lr_lambdas: list[Callable[[int], float]] = given
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        state.pop("lr_lambdas")
        return state

    def get_lr(self) -> list[float]:
        pairs = zip(self.base_lrs, self.lr_lambdas, strict=True)
        return [base * function(self.last_epoch) for base, function in pairs]


class MultiplicativeLR(LambdaLR):
    """The rate before times a function of the step."""

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return self._rates()
        pairs = zip(self._rates(), self.lr_lambdas, strict=True)
        return [rate * function(self.last_epoch) for rate, function in pairs]


class StepLR(LRScheduler):
    """Times gamma every `step_size` steps."""

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        due = self.last_epoch > 0 and self.last_epoch % self.step_size == 0
        return [rate * self.gamma if due else rate for rate in self._rates()]


class MultiStepLR(LRScheduler):
    """Times gamma at each of the milestones."""

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones = sorted(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        factor = self.gamma ** self.milestones.count(self.last_epoch)
        return [rate * factor for rate in self._rates()]


class ConstantLR(LRScheduler):
    """The first rate times `factor` for `total_iters` steps, then the first rate."""

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return [rate * self.factor for rate in self._rates()]
        due = self.last_epoch == self.total_iters
        return [rate / self.factor if due else rate for rate in self._rates()]


class LinearLR(LRScheduler):
    """The first rate times a factor that goes in a line from `start_factor` to `end_factor`."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return [rate * self.start_factor for rate in self._rates()]
        if self.last_epoch > self.total_iters:
            return self._rates()
        rise = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * rise
        return [rate * (1 + rise / before) for rate in self._rates()]


class ExponentialLR(LRScheduler):
    """Times gamma at each step."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [rate * (self.gamma if self.last_epoch else 1) for rate in self._rates()]


class PolynomialLR(LRScheduler):
    """The first rate times (1 - step / total_iters)^power, until 0."""

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        left = 1 - min(self.last_epoch, self.total_iters) / self.total_iters
        return [base * left**self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the first rate to eta_min in T_max steps, and on (Loshchilov and Hutter,
    2017)."""

    def __init__(
        self,
        optimizer: Optimizer,
        T_max: int,  # noqa: N803 - PyTorch's name
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        share = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """CosineAnnealingLR that begins again after T_0 steps, then after T_mult times as many as
    before."""

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,  # noqa: N803 - PyTorch's name
        T_mult: int = 1,  # noqa: N803 - PyTorch's name
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if T_0 < 1 or T_mult < 1:
            raise ValueError("CosineAnnealingWarmRestarts(): T_0 and T_mult are at least 1")
        self.T_0 = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def step(self, epoch: float | None = None) -> None:
        """Goes on to the next step, or to that one, which may be between two."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch  # type: ignore[assignment]
        self._set(self.get_lr())

    def get_lr(self) -> list[float]:
        at, length = float(self.last_epoch), float(self.T_0)
        while at >= length:
            at -= length
            length *= self.T_mult
        share = (1 + math.cos(math.pi * at / length)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]


class OneCycleLR(LRScheduler):
    """From max_lr / div_factor up to max_lr in `pct_start` of the steps, then down to the first
    rate / final_div_factor; momentum goes the other way (Smith and Topin, 2018)."""

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float = 0.85,
        max_momentum: float = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError("OneCycleLR(): total_steps, or epochs and steps_per_epoch")
            total_steps = epochs * steps_per_epoch
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"OneCycleLR(): no anneal_strategy {anneal_strategy!r}")
        self.total_steps = total_steps
        self.anneal_strategy = anneal_strategy
        self.cycle_momentum = cycle_momentum
        top = pct_start * total_steps - 1
        self._phases = [(top, "initial_lr", "max_lr"), (total_steps - 1.0, "max_lr", "min_lr")]
        if three_phase:
            back = 2 * pct_start * total_steps - 2
            self._phases[1:] = [
                (back, "max_lr", "initial_lr"),
                (total_steps - 1.0, "initial_lr", "min_lr"),
            ]
        if last_epoch == -1:
            many = isinstance(max_lr, (list, tuple))
            rates = list(max_lr) if many else [max_lr] * len(optimizer.param_groups)
            for group, rate in zip(optimizer.param_groups, rates, strict=True):
                group["max_lr"] = rate
                group["initial_lr"] = rate / div_factor
                group["min_lr"] = group["initial_lr"] / final_div_factor
                group["base_momentum"], group["max_momentum"] = base_momentum, max_momentum
        super().__init__(optimizer, last_epoch)

    def _between(self, start: float, end: float, share: float) -> float:
        if self.anneal_strategy == "linear":
            return (end - start) * share + start
        return end + (start - end) / 2 * (1 + math.cos(math.pi * share))

    def get_lr(self) -> list[float]:
        if self.last_epoch > self.total_steps:
            raise ValueError(f"OneCycleLR: step {self.last_epoch} of {self.total_steps}")
        ends = [end for end, _, _ in self._phases]
        place = min(bisect_left(ends, self.last_epoch), len(ends) - 1)
        begin = ends[place - 1] if place else 0.0
        share = (self.last_epoch - begin) / (ends[place] - begin)
        rates = []
        _, low, high = self._phases[place]
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[low], group[high], share))
            if self.cycle_momentum:
                first = "base_momentum" if place == 1 else "max_momentum"
                second = "max_momentum" if place else "base_momentum"
                self._set_momentum(group, self._between(group[first], group[second], share))
        return rates

    def _set_momentum(self, group: Group, value: float) -> None:
        if "betas" in group:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


class SequentialLR(LRScheduler):
    """Schedules one after another: the next begins at each milestone."""

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ) -> None:
        if len(milestones) != len(schedulers) - 1:
            raise ValueError("SequentialLR(): one milestone less than schedules")
        self.optimizer = optimizer
        self._schedulers = list(schedulers)
        self._milestones = list(milestones)
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        for each in self._schedulers:
            each.last_epoch -= 1
        self._schedulers[0].step()
        self._last_lr = self._schedulers[0].get_last_lr()

    def step(self, epoch: int | None = None) -> None:
        """Goes on to the next step."""
        self.last_epoch += 1
        place = bisect_right(self._milestones, self.last_epoch)
        current = self._schedulers[place]
        begins = place > 0 and self._milestones[place - 1] == self.last_epoch
        current.step(0 if begins else None)
        self._last_lr = current.get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        state["_schedulers"] = [each.state_dict() for each in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        own = dict(state_dict)
        for each, state in zip(self._schedulers, own.pop("_schedulers"), strict=True):
            each.load_state_dict(state)
        vars(self).update(own)


class ChainedScheduler(LRScheduler):
    """Schedules that all go on at each step."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Any = None) -> None:
        self._schedulers = list(schedulers)
        self.optimizer = optimizer or self._schedulers[0].optimizer
        self._last_lr = self._rates()

    def step(self, epoch: int | None = None) -> None:
        """Goes on to the next step of each."""
        for each in self._schedulers:
            each.step()
        self._last_lr = self._rates()


class ReduceLROnPlateau(LRScheduler):
    """Times `factor` when a metric, given to `step`, has not improved for `patience` steps."""

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: Any = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1:
            raise ValueError("ReduceLROnPlateau(): factor is below 1")
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError("ReduceLROnPlateau(): mode is min or max, threshold_mode rel or abs")
        self.optimizer = optimizer
        self.mode, self.factor, self.patience = mode, factor, patience
        self.threshold, self.threshold_mode = threshold, threshold_mode
        self.cooldown, self.eps = cooldown, eps
        many = isinstance(min_lr, (list, tuple))
        self.min_lrs = list(min_lr) if many else [min_lr] * len(optimizer.param_groups)
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = self.last_epoch = 0
        self._last_lr = self._rates()

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Goes on to the next step, with that value of the metric."""
        current = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._improves(current):
            self.best, self.num_bad_epochs = current, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            pairs = zip(self._rates(), self.min_lrs, strict=True)
            lower = [(rate, max(rate * self.factor, least)) for rate, least in pairs]
            self._set(new if rate - new > self.eps else rate for rate, new in lower)
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._rates()

    def _improves(self, current: float) -> bool:
        margin = self.threshold * (abs(self.best) if self.threshold_mode == "rel" else 1)
        if math.isinf(self.best):
            return current < self.best if self.mode == "min" else current > self.best
        return current < self.best - margin if self.mode == "min" else current > self.best + margin
