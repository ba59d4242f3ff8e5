"""Optimizers as PyTorch defines them: SGD, Adam and AdamW; adaptive.py has the others.

`foreach`, `fused`, `capturable` and `differentiable` are accepted for PyTorch's sake, and change
nothing: they are ways to the same results.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from opscope._tensor import Tensor, functions
from opscope.tensor.optim.optimizer import Group, Optimizer, decayed, zeros


class SGD(Optimizer):
    """Gradient descent, with momentum (optionally Nesterov's) and weight decay."""

    def __init__(
        self,
        params: Iterable[Tensor | Group],
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("SGD(): nesterov needs a momentum and no dampening")
        super().__init__(
            params,
            lr=lr,
            momentum=momentum,
            dampening=dampening,
            weight_decay=weight_decay,
            nesterov=nesterov,
            maximize=maximize,
        )

    def _move(self, param: Tensor, grad: Tensor, group: Group, state: dict[str, Any]) -> None:
        grad = decayed(param, grad, group)
        if group["momentum"]:
            velocity = state.get("momentum_buffer")
            if velocity is None:
                velocity = state["momentum_buffer"] = grad.clone()
            else:
                velocity.mul_(group["momentum"]).add_(grad, alpha=1 - group["dampening"])
            grad = grad.add(velocity, alpha=group["momentum"]) if group["nesterov"] else velocity
        param.add_(grad, alpha=-group["lr"])


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015), with PyTorch's order of operations.

    With `amsgrad` steps are scaled by the largest mean square so far (Reddi and others, 2018).
    """

    def __init__(
        self,
        params: Iterable[Tensor | Group],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        if not all(0 <= beta < 1 for beta in betas):
            raise ValueError(f"{type(self).__name__}(): betas are within [0, 1), not {betas}")
        super().__init__(
            params,
            lr=lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            amsgrad=amsgrad,
            maximize=maximize,
        )

    def _decayed(self, param: Tensor, grad: Tensor, group: Group) -> Tensor:
        return decayed(param, grad, group)

    def _move(self, param: Tensor, grad: Tensor, group: Group, state: dict[str, Any]) -> None:
        grad = self._decayed(param, grad, group)
        if not state:
            state.update(step=0, exp_avg=zeros(param), exp_avg_sq=zeros(param))
            if group["amsgrad"]:
                state["max_exp_avg_sq"] = zeros(param)
        state["step"] += 1
        steps = float(state["step"])
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        first, second = group["betas"]
        mean.mul_(first).add_(grad, alpha=1 - first)
        square.mul_(second).add_(grad * grad, alpha=1 - second)
        if group["amsgrad"]:
            largest = state["max_exp_avg_sq"]
            square = functions["maximum"](largest, square, out=largest)
        scale = square.sqrt().div_(math.sqrt(1 - second**steps)).add_(group["eps"])
        param.add_(mean / scale, alpha=-group["lr"] / (1 - first**steps))


class AdamW(Adam):
    """Adam with weight decay decoupled from the gradient (Loshchilov and Hutter, 2019)."""

    def __init__(
        self,
        params: Iterable[Tensor | Group],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)

    def _decayed(self, param: Tensor, grad: Tensor, group: Group) -> Tensor:
        if group["weight_decay"]:
            param.mul_(1 - group["lr"] * group["weight_decay"])
        return grad
