"""Optimizers: SGD, Adam, AdamW, as PyTorch defines them. A step is one range of phase optimizer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from opscope._tensor import Tensor, functions
from opscope.record.ranges import record_function
from opscope.record.usage import log_api_usage_once
from opscope.tensor.autograd import enable_grad, no_grad

Group = dict[str, Any]


class Optimizer:
    """Holds parameters; `step` moves each by its grad, and leaves those without a grad unchanged.

    `params` are tensors, or dicts with "params" and their own options; `param_groups` has all of
    them with complete options, and may be changed between steps. `state` has the optimizer's data
    for each parameter.
    """

    def __init__(self, params: Iterable[Tensor | Group], **defaults: Any) -> None:
        known = next(kind for kind in type(self).__mro__ if kind.__module__ == __name__)
        log_api_usage_once(f"opscope.tensor.optim.{known.__name__}")
        self.defaults = defaults
        self.param_groups: list[Group] = []
        self.state: dict[Tensor, dict[str, Any]] = {}
        self._name = f"core::{type(self).__name__}.step"
        given = list(params)
        groups = given if given and isinstance(given[0], dict) else [{"params": given}]
        for group in groups:
            if not isinstance(group, dict):
                raise TypeError(f"{type(self).__name__}(): tensors, or groups of them; not both")
            self.add_param_group(group)
        if not any(group["params"] for group in self.param_groups):
            raise ValueError(f"{type(self).__name__}(): there are no parameters")

    def add_param_group(self, param_group: Group) -> None:
        """Adds parameters with options of their own. ValueError for a known parameter."""
        params = param_group["params"]
        params = [params] if isinstance(params, Tensor) else list(params)
        known = {param for group in self.param_groups for param in group["params"]}
        for param in params:
            if not isinstance(param, Tensor) or not param.is_leaf:
                raise ValueError(f"{type(self).__name__}(): not a leaf tensor: {param!r}")
            if param in known:
                raise ValueError(f"{type(self).__name__}(): a parameter is given twice")
            known.add(param)
        unknown = param_group.keys() - self.defaults.keys() - {"params"}
        if unknown:
            raise ValueError(f"{type(self).__name__}(): unknown options: {', '.join(unknown)}")
        group = {**self.defaults, **param_group, "params": params}
        for name, value in group.items():
            if name in ("lr", "weight_decay", "momentum", "eps") and not value >= 0:
                raise ValueError(f"{type(self).__name__}(): {name} cannot be {value}")
        self.param_groups.append(group)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Moves every parameter once. `closure`, called first, computes the loss and its gradients;
        returns its result."""
        with record_function(self._name, phase="optimizer"), no_grad():
            loss = None
            if closure is not None:
                with enable_grad():
                    loss = closure()
            for group in self.param_groups:
                for param in group["params"]:
                    if param.grad is not None:
                        self._move(param, param.grad, group, self.state.setdefault(param, {}))
            return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Removes the gradients; with `set_to_none` False, sets them to zero."""
        for group in self.param_groups:
            for param in group["params"]:
                if set_to_none or param.grad is None:
                    param.grad = None
                else:
                    param.grad = param.grad.detach().fill_(0)

    def _move(self, param: Tensor, grad: Tensor, group: Group, state: dict[str, Any]) -> None:
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """Options and state, with parameters identified by their index, as in PyTorch."""
        params = [param for group in self.param_groups for param in group["params"]]
        places = {param: place for place, param in enumerate(params)}
        return {
            "state": {places[param]: dict(state) for param, state in self.state.items() if state},
            "param_groups": [
                {**group, "params": [places[param] for param in group["params"]]}
                for group in self.param_groups
            ],
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restores the result of state_dict(), copying tensors. ValueError for other groups."""
        groups = state_dict["param_groups"]
        own = [len(group["params"]) for group in self.param_groups]
        found = [len(group["params"]) for group in groups]
        if own != found:
            raise ValueError(
                f"load_state_dict(): the groups have {own} parameters, those of the state {found}"
            )
        params = [param for group in self.param_groups for param in group["params"]]
        places = [place for group in groups for place in group["params"]]
        for group, loaded in zip(self.param_groups, groups, strict=True):
            group.update({k: v for k, v in loaded.items() if k != "params" and k in group})
        self.state = {
            param: {
                name: value.detach().clone() if isinstance(value, Tensor) else value
                for name, value in state_dict["state"][place].items()
            }
            for param, place in zip(params, places, strict=True)
            if place in state_dict["state"]
        }

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {number}")
            lines += [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
        return "\n".join([*lines, ")"])


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
        )

    def _move(self, param: Tensor, grad: Tensor, group: Group, state: dict[str, Any]) -> None:
        if group["weight_decay"]:
            grad = grad.add(param, alpha=group["weight_decay"])
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
    ) -> None:
        if not all(0 <= beta < 1 for beta in betas):
            raise ValueError(f"{type(self).__name__}(): betas are within [0, 1), not {betas}")
        super().__init__(
            params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, amsgrad=amsgrad
        )

    def _decayed(self, param: Tensor, grad: Tensor, group: Group) -> Tensor:
        """The gradient with weight decay included."""
        if group["weight_decay"]:
            return grad.add(param, alpha=group["weight_decay"])
        return grad

    def _move(self, param: Tensor, grad: Tensor, group: Group, state: dict[str, Any]) -> None:
        grad = self._decayed(param, grad, group)
        if not state:
            zeros = functions["zeros"]
            state["step"] = 0
            state["exp_avg"] = zeros(param.shape, dtype=param.dtype)
            state["exp_avg_sq"] = zeros(param.shape, dtype=param.dtype)
            if group["amsgrad"]:
                state["max_exp_avg_sq"] = zeros(param.shape, dtype=param.dtype)
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
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad)

    def _decayed(self, param: Tensor, grad: Tensor, group: Group) -> Tensor:
        if group["weight_decay"]:
            param.mul_(1 - group["lr"] * group["weight_decay"])
        return grad
