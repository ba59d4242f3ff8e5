"""Optimizers: SGD and Adam, as PyTorch defines them. A step is one range of phase optimizer."""

from __future__ import annotations

import math
from collections.abc import Iterable

from opscope._tensor import Tensor
from opscope.record.ranges import record_function
from opscope.tensor.autograd import no_grad


class Optimizer:
    """Holds parameters; ``step`` moves each by its grad. Parameters without a grad stay."""

    def __init__(self, parameters: Iterable[Tensor]) -> None:
        self._parameters = list(parameters)
        if not self._parameters:
            raise ValueError(f"{type(self).__name__}(): there are no parameters")
        # The record layer reads the phase from this form of name, PyTorch's own.
        self._name = f"Optimizer.step#{type(self).__name__}.step"

    def step(self) -> None:
        """Move every parameter once."""
        with record_function(self._name), no_grad():
            for place, parameter in enumerate(self._parameters):
                gradient = parameter.grad
                if gradient is not None:
                    self._move(place, parameter, gradient)

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self._parameters:
            parameter.grad = None

    def _move(self, place: int, parameter: Tensor, gradient: Tensor) -> None:
        raise NotImplementedError


class SGD(Optimizer):
    """Gradient descent, with momentum and weight decay where asked for."""

    def __init__(
        self,
        parameters: Iterable[Tensor],
        lr: float = 1e-3,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(parameters)
        self.lr = lr
        self.momentum = momentum
        self.weight_decay = weight_decay
        self._velocities: dict[int, Tensor] = {}

    def _move(self, place: int, parameter: Tensor, gradient: Tensor) -> None:
        if self.weight_decay:
            gradient = gradient.add(parameter, alpha=self.weight_decay)
        if self.momentum:
            velocity = self._velocities.get(place)
            if velocity is None:
                velocity = self._velocities[place] = gradient.clone()
            else:
                velocity.mul_(self.momentum).add_(gradient)
            gradient = velocity
        parameter.add_(gradient, alpha=-self.lr)


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015), with PyTorch's order of operations."""

    def __init__(
        self,
        parameters: Iterable[Tensor],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(parameters)
        self.lr = lr
        self.betas = betas
        self.eps = eps
        self.weight_decay = weight_decay
        self._moments: dict[int, tuple[Tensor, Tensor]] = {}
        self._steps: dict[int, int] = {}

    def _move(self, place: int, parameter: Tensor, gradient: Tensor) -> None:
        if self.weight_decay:
            gradient = gradient.add(parameter, alpha=self.weight_decay)
        if place not in self._moments:
            self._moments[place] = (gradient * 0, gradient * 0)
        mean, square = self._moments[place]
        steps = self._steps[place] = self._steps.get(place, 0) + 1
        first, second = self.betas
        mean.mul_(first).add_(gradient, alpha=1 - first)
        square.mul_(second).add_(gradient * gradient, alpha=1 - second)
        scale = square.sqrt().div_(math.sqrt(1 - second**steps)).add_(self.eps)
        parameter.add_(mean / scale, alpha=-self.lr / (1 - first**steps))
