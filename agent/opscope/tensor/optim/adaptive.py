"""Optimizers that few programs use, as PyTorch defines them: RMSprop, Adagrad, Adadelta, Adamax,
NAdam, RAdam.

The options that optimizers.py names change nothing here either.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from opscope._tensor import Tensor, functions
from opscope.tensor.optim.optimizer import Group, Optimizer, decayed, zeros


class RMSprop(Optimizer):
    """Steps divided by the root of a moving mean of squares (Hinton, 2012)."""

    def __init__(
        self,
        params: Iterable[Tensor | Group],
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        *,
        maximize: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
    ) -> None:
        super().__init__(
            params,
            lr=lr,
            alpha=alpha,
            eps=eps,
            weight_decay=weight_decay,
            momentum=momentum,
            centered=centered,
            maximize=maximize,
        )

    def _move(self, param: Tensor, grad: Tensor, group: Group, state: dict[str, Any]) -> None:
        grad = decayed(param, grad, group)
        if not state:
            state["step"] = 0
            state["square_avg"] = zeros(param)
            if group["momentum"] > 0:
                state["momentum_buffer"] = zeros(param)
            if group["centered"]:
                state["grad_avg"] = zeros(param)
        state["step"] += 1
        share = 1 - group["alpha"]
        square = state["square_avg"].mul_(group["alpha"]).add_(grad * grad, alpha=share)
        if group["centered"]:
            mean = state["grad_avg"].mul_(group["alpha"]).add_(grad, alpha=share)
            square = square - mean * mean
        step = grad / square.sqrt().add_(group["eps"])
        if group["momentum"] > 0:
            step = state["momentum_buffer"].mul_(group["momentum"]).add_(step)
        param.add_(step, alpha=-group["lr"])


class Adagrad(Optimizer):
    """Steps divided by the root of the sum of squares so far (Duchi, Hazan and Singer, 2011)."""

    def __init__(
        self,
        params: Iterable[Tensor | Group],
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr=lr,
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            eps=eps,
            maximize=maximize,
        )

    def _move(self, param: Tensor, grad: Tensor, group: Group, state: dict[str, Any]) -> None:
        if not state:
            state["step"] = 0
            state["sum"] = zeros(param).fill_(group["initial_accumulator_value"])
        state["step"] += 1
        grad = decayed(param, grad, group)
        rate = group["lr"] / (1 + (state["step"] - 1) * group["lr_decay"])
        total = state["sum"].add_(grad * grad)
        param.add_(grad / total.sqrt().add_(group["eps"]), alpha=-rate)


class Adadelta(Optimizer):
    """Steps scaled by the ratio of moving means of steps and gradients (Zeiler, 2012)."""

    def __init__(
        self,
        params: Iterable[Tensor | Group],
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        *,
        maximize: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
    ) -> None:
        super().__init__(
            params, lr=lr, rho=rho, eps=eps, weight_decay=weight_decay, maximize=maximize
        )

    def _move(self, param: Tensor, grad: Tensor, group: Group, state: dict[str, Any]) -> None:
        grad = decayed(param, grad, group)
        if not state:
            state.update(step=0, square_avg=zeros(param), acc_delta=zeros(param))
        state["step"] += 1
        rho, eps = group["rho"], group["eps"]
        square = state["square_avg"].mul_(rho).add_(grad * grad, alpha=1 - rho)
        step = (state["acc_delta"] + eps).sqrt() / (square + eps).sqrt() * grad
        state["acc_delta"].mul_(rho).add_(step * step, alpha=1 - rho)
        param.add_(step, alpha=-group["lr"])


class Adamax(Optimizer):
    """Adam with the largest magnitude in place of the mean square (Kingma and Ba, 2015)."""

    def __init__(
        self,
        params: Iterable[Tensor | Group],
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(
            params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, maximize=maximize
        )

    def _move(self, param: Tensor, grad: Tensor, group: Group, state: dict[str, Any]) -> None:
        grad = decayed(param, grad, group)
        if not state:
            state.update(step=0, exp_avg=zeros(param), exp_inf=zeros(param))
        state["step"] += 1
        first, second = group["betas"]
        mean = state["exp_avg"].mul_(first).add_(grad, alpha=1 - first)
        largest = functions["maximum"](state["exp_inf"] * second, grad.abs() + group["eps"])
        state["exp_inf"].copy_(largest)
        param.add_(mean / largest, alpha=-group["lr"] / (1 - first ** state["step"]))


class NAdam(Optimizer):
    """Adam with Nesterov's momentum (Dozat, 2016)."""

    def __init__(
        self,
        params: Iterable[Tensor | Group],
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(
            params,
            lr=lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            momentum_decay=momentum_decay,
            decoupled_weight_decay=decoupled_weight_decay,
            maximize=maximize,
        )

    def _move(self, param: Tensor, grad: Tensor, group: Group, state: dict[str, Any]) -> None:
        grad = decayed(param, grad, group)
        if not state:
            state.update(step=0, mu_product=1.0, exp_avg=zeros(param), exp_avg_sq=zeros(param))
        state["step"] += 1
        first, second = group["betas"]
        decay, steps = group["momentum_decay"], state["step"]
        mu = first * (1 - 0.5 * 0.96 ** (steps * decay))
        mu_next = first * (1 - 0.5 * 0.96 ** ((steps + 1) * decay))
        state["mu_product"] *= mu
        mean = state["exp_avg"].mul_(first).add_(grad, alpha=1 - first)
        square = state["exp_avg_sq"].mul_(second).add_(grad * grad, alpha=1 - second)
        scale = (square / (1 - second**steps)).sqrt().add_(group["eps"])
        param.add_(grad / scale, alpha=-group["lr"] * (1 - mu) / (1 - state["mu_product"]))
        product = state["mu_product"] * mu_next
        param.add_(mean / scale, alpha=-group["lr"] * mu_next / (1 - product))


class RAdam(Optimizer):
    """Adam whose steps wait until the variance of their scale is known (Liu et al., 2020)."""

    def __init__(
        self,
        params: Iterable[Tensor | Group],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(
            params,
            lr=lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            decoupled_weight_decay=decoupled_weight_decay,
            maximize=maximize,
        )

    def _move(self, param: Tensor, grad: Tensor, group: Group, state: dict[str, Any]) -> None:
        grad = decayed(param, grad, group)
        if not state:
            state.update(step=0, exp_avg=zeros(param), exp_avg_sq=zeros(param))
        state["step"] += 1
        first, second = group["betas"]
        steps = state["step"]
        mean = state["exp_avg"].mul_(first).add_(grad, alpha=1 - first)
        square = state["exp_avg_sq"].mul_(second).add_(grad * grad, alpha=1 - second)
        corrected = mean / (1 - first**steps)
        left = 1 - second**steps
        limit = 2 / (1 - second) - 1
        length = limit - 2 * steps * second**steps / left
        if length > 5:
            rectified = (length - 4) * (length - 2) * limit
            rectified = math.sqrt(rectified / ((limit - 4) * (limit - 2) * length))
            corrected = corrected * (math.sqrt(left) / (square.sqrt() + group["eps"])) * rectified
        param.add_(corrected, alpha=-group["lr"])
