"""The base class of optimizers, as PyTorch defines it. A step is one range of phase optimizer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from opscope._tensor import Tensor, functions
from opscope.record.ranges import record_function
from opscope.record.usage import log_api_usage_once
from opscope.tensor.autograd import enable_grad, no_grad

Group = dict[str, Any]


def zeros(param: Tensor) -> Tensor:
    """State of the parameter's shape and dtype."""
    return functions["zeros"](param.shape, dtype=param.dtype)  # type: ignore[no-any-return]


def decayed(param: Tensor, grad: Tensor, group: Group) -> Tensor:
    """The gradient with weight decay; decoupled from it, the parameter decays instead."""
    if not group["weight_decay"]:
        return grad
    if group.get("decoupled_weight_decay"):
        param.mul_(1 - group["lr"] * group["weight_decay"])
        return grad
    return grad.add(param, alpha=group["weight_decay"])


class Optimizer:
    """Holds parameters; `step` moves each by its grad, and leaves those without a grad unchanged.

    `params` are tensors, or dicts with "params" and their own options; `param_groups` has all of
    them with complete options, and may be changed between steps. `state` has the optimizer's data
    for each parameter.
    """

    def __init__(self, params: Iterable[Tensor | Group], **defaults: Any) -> None:
        known = next(
            kind
            for kind in type(self).__mro__
            if kind.__module__.startswith("opscope.tensor.optim.")
        )
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
        unknown = param_group.keys() - self.defaults.keys() - {"params", "initial_lr"}
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
                        grad = -param.grad if group.get("maximize") else param.grad
                        self._move(param, grad, group, self.state.setdefault(param, {}))
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
            known = {*group, "initial_lr"}
            group.update({k: v for k, v in loaded.items() if k != "params" and k in known})
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
