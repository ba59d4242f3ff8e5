"""Just enough of a module system to write a small network: Parameter, Module, Linear, Sequential.

Names and behaviour are PyTorch's. What computes stands in the core's operators.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from opscope._tensor import Tensor, dtype, float32, functions
from opscope.tensor.autograd import no_grad


class Parameter(Tensor):
    """A tensor that a module trains: shares ``data``'s storage and requires grad."""

    def __init__(self, data: Tensor, requires_grad: bool = True) -> None:
        self.requires_grad = requires_grad


class Module:
    """Something with parameters. Subclass, set parameters and modules as attributes, and define
    ``forward``; calling the module calls it.
    """

    training: bool = True

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes."""
        raise NotImplementedError(f"{type(self).__name__} defines no forward")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)

    def children(self) -> Iterator[tuple[str, Module]]:
        """The modules that are attributes of this one, with their names."""
        for name, value in vars(self).items():
            if isinstance(value, Module):
                yield name, value

    def named_parameters(self, prefix: str = "") -> Iterator[tuple[str, Parameter]]:
        """This module's parameters and its children's, by dotted name."""
        for name, value in vars(self).items():
            if isinstance(value, Parameter):
                yield prefix + name, value
        for name, child in self.children():
            yield from child.named_parameters(f"{prefix}{name}.")

    def parameters(self) -> Iterator[Parameter]:
        """The parameters without their names."""
        for _, parameter in self.named_parameters():
            yield parameter

    def state_dict(self) -> dict[str, Tensor]:
        """The parameters' values by name: they share the parameters' storage."""
        return {name: parameter.detach() for name, parameter in self.named_parameters()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Copy values in. KeyError where names differ, ValueError where shapes do."""
        own = dict(self.named_parameters())
        if own.keys() != state.keys():
            different = sorted(own.keys() ^ state.keys())
            raise KeyError(f"load_state_dict(): only on one side: {', '.join(different)}")
        for name, parameter in own.items():
            if parameter.shape != state[name].shape:
                raise ValueError(
                    f"load_state_dict(): {name} has shape {parameter.shape}, "
                    f"the state has {state[name].shape}"
                )
        with no_grad():
            for name, parameter in own.items():
                parameter.copy_(state[name])

    def train(self, mode: bool = True) -> Module:
        """Set ``training`` here and in every child."""
        self.training = mode
        for _, child in self.children():
            child.train(mode)
        return self

    def eval(self) -> Module:
        """``train(False)``."""
        return self.train(False)

    def zero_grad(self) -> None:
        """Forget the parameters' gradients."""
        for parameter in self.parameters():
            parameter.grad = None


class Linear(Module):
    """``input @ weight.T + bias``; input (..., in_features), output (..., out_features)."""

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, *, dtype: dtype = float32
    ) -> None:
        bound = 1 / math.sqrt(in_features)
        self.weight = Parameter(_uniform((out_features, in_features), bound, dtype))
        self.bias = Parameter(_uniform((out_features,), bound, dtype)) if bias else None

    def forward(self, input: Tensor) -> Any:
        return functions["linear"](input, self.weight, self.bias)


class Sequential(Module):
    """Modules, or functions of one tensor, called one after the other."""

    def __init__(self, *steps: Any) -> None:
        self._steps = steps
        for place, step in enumerate(steps):
            if isinstance(step, Module):
                setattr(self, str(place), step)

    def forward(self, input: Any) -> Any:
        for step in self._steps:
            input = step(input)
        return input


def _uniform(shape: tuple[int, ...], bound: float, dtype: dtype) -> Tensor:
    """Numbers within ±bound, as PyTorch starts a linear layer."""
    values: Tensor = functions["rand"](shape, dtype=dtype)
    return (values * 2 - 1) * bound
