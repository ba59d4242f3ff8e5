"""Hooks of a module's backward: two nodes of the tape, around what one call of the module recorded.

The node behind the results gets their gradients first, and the node before the arguments gets
theirs last. Both give them on as they are, unless a hook returns others.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

from opscope._tensor import Tensor, functions
from opscope.tensor.autograd import Function, is_grad_enabled

Gradients = tuple[Any, ...]


class _Gate(Function):
    """The tensors as they are; `change` gets their gradients and returns those to go on. Without
    `fills` the gradient of an unused tensor is None."""

    @staticmethod
    def forward(
        ctx: Any, change: Callable[[Gradients], Gradients], fills: bool, *tensors: Tensor
    ) -> Any:
        ctx.change = change
        ctx.set_materialize_grads(fills)
        return tensors

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return (None, None, *ctx.change(gradients))


def _as_tuple(value: Any) -> Gradients:
    return value if isinstance(value, tuple) else (value,)


def _checked(hook: str, name: str, gradients: Gradients, changed: Any) -> Gradients:
    """What a hook returned, as many as the gradients that it got."""
    new = _as_tuple(changed)
    if len(new) != len(gradients):
        raise RuntimeError(
            f"{hook} returned an invalid number of {name}, got {len(new)}, but expected "
            f"{len(gradients)}"
        )
    return new


class Gates:
    """The backward hooks of one call of a module, in PyTorch's order."""

    def __init__(
        self,
        module: Any,
        before: Mapping[int, Callable[..., Any]],
        after: Mapping[int, Callable[..., Any]],
    ) -> None:
        self._module = module
        self._before = tuple(before.values())
        self._after = tuple(after.values())
        self._input_count = 0
        self._has_input_gate = False
        self._output_gradients: Gradients | None = None

    def watch_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, with their gradients given to the hooks after backward."""
        self._input_count = len(args)
        # As in PyTorch: tensors without a gradient get zeros, if another argument has one.
        sizes = {
            place: (value.shape, value.dtype)
            for place, value in enumerate(args)
            if isinstance(value, Tensor) and not value.requires_grad
        }

        def done(gradients: Gradients) -> Gradients:
            full = list(gradients)
            for place, (shape, dtype) in sizes.items():
                full[place] = functions["zeros"](shape, dtype=dtype)
            return self._inputs_done(tuple(full))

        changed, places = self._gated(args, done, True)
        self._has_input_gate = bool(places)
        return changed

    def watch_outputs(self, result: Any) -> Any:
        """The result, a tensor or a tuple, with its gradients given to the hooks before
        backward."""
        if not isinstance(result, (Tensor, tuple)):
            warnings.warn(
                "backward hooks are not called: the module's result is a tensor or a tuple of "
                f"tensors for them, not a {type(result).__name__}",
                stacklevel=4,
            )
            return result
        changed, _ = self._gated(_as_tuple(result), self._outputs_done, False)
        return changed if isinstance(result, tuple) else changed[0]

    def _gated(
        self, values: tuple[Any, ...], done: Callable[[Gradients], Gradients], fills: bool
    ) -> tuple[tuple[Any, ...], list[int]]:
        """The values, those with a gradient behind a gate, and their places. `done` gets and
        returns a gradient or None for each value."""
        places = [
            place
            for place, value in enumerate(values)
            if is_grad_enabled() and isinstance(value, Tensor) and value.requires_grad
        ]
        if not places:
            return values, places

        def change(gradients: Gradients) -> Gradients:
            full: list[Any] = [None] * len(values)
            for place, gradient in zip(places, gradients, strict=True):
                full[place] = gradient
            all_changed = done(tuple(full))
            return tuple(all_changed[place] for place in places)

        gated = list(values)
        passed = _Gate.apply(change, fills, *(values[place] for place in places))
        for place, tensor in zip(places, passed, strict=True):
            gated[place] = tensor
        return tuple(gated), places

    def _outputs_done(self, gradients: Gradients) -> Gradients:
        for hook in self._before:
            changed = hook(self._module, gradients)
            if changed is not None:
                gradients = _checked("Backward pre hook", "grad_output", gradients, changed)
        self._output_gradients = gradients
        if not self._has_input_gate:
            none = (None,) * self._input_count
            for hook in self._after:
                changed = hook(self._module, none, gradients)
                if changed is not None and any(each is not None for each in _as_tuple(changed)):
                    raise RuntimeError(
                        "a backward hook of a module whose arguments require no gradient must "
                        "return None, or None for each gradient"
                    )
        return gradients

    def _inputs_done(self, gradients: Gradients) -> Gradients:
        if self._output_gradients is None:
            return gradients  # a gradient of a gradient, which does not come from the result
        for hook in self._after:
            changed = hook(self._module, gradients, self._output_gradients)
            if changed is not None:
                gradients = _checked("Backward hook", "grad_input", gradients, changed)
        self._output_gradients = None
        return gradients
