"""Gradients clipped, and parameters as one vector: torch.nn.utils; `rnn` has packed sequences."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from opscope._tensor import Tensor, functions, tensor
from opscope.tensor.autograd import no_grad


def _gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    whole = [parameters] if isinstance(parameters, Tensor) else parameters
    return [each.grad for each in whole if each.grad is not None]


def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of all the tensors as one vector. RuntimeError, if asked for, for inf and NaN."""
    whole = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not whole:
        return tensor(0.0)
    norms = functions["stack"]([each.norm(float(norm_type)) for each in whole])
    total: Tensor = norms.norm(float(norm_type))
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(f"the norm of order {norm_type} of the gradients is {total.item()}")
    return total


@no_grad()
def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    total_norm: Tensor,
    foreach: bool | None = None,
) -> None:
    """Scales all gradients, whose norm is total_norm, to a norm of at most max_norm, in place."""
    scale = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
    for gradient in _gradients(parameters):
        gradient.mul_(scale.to(gradient.dtype))


@no_grad()
def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales all gradients to a norm, as one vector, of at most max_norm, in place; returns the
    norm that they had."""
    given = parameters if isinstance(parameters, Tensor) else list(parameters)
    total = get_total_norm(_gradients(given), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(given, max_norm, total)
    return total


@no_grad()
def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Limits each element of the gradients to ±clip_value, in place."""
    for gradient in _gradients(parameters):
        gradient.clamp_(-float(clip_value), float(clip_value))


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters as one vector."""
    return functions["cat"]([each.reshape((-1,)) for each in parameters])  # type: ignore[no-any-return]


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Gives each parameter its part of the vector."""
    place = 0
    for each in parameters:
        count = each.numel()
        each.data = vec[place : place + count].reshape(each.shape).data
        place += count


def __getattr__(name: str) -> Any:
    from opscope.tensor.nearest import missing

    raise missing(__name__, name, globals())
