"""Gradients: grad mode, ``backward``, ``grad``, and functions with a backward written in Python.

The tape is the core's (native/tensor/autograd); this file gives it PyTorch's signatures.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, ClassVar, TypeVar, cast

from opscope import _tensor
from opscope._tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])


class _GradMode:
    """Turns this thread's grad mode on or off for a block, or for each call of a function."""

    __slots__ = ("_before",)

    on: bool

    def __enter__(self) -> None:
        self._before = _tensor.set_grad_mode(self.on)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _tensor.set_grad_mode(self._before)

    def __call__(self, function: F) -> F:
        mode = type(self)

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            with mode():
                return function(*args, **kwargs)

        return cast(F, run)


class no_grad(_GradMode):  # noqa: N801 - PyTorch's name
    """Nothing computed inside goes on the tape."""

    on = False


class enable_grad(_GradMode):  # noqa: N801 - PyTorch's name
    """What is computed inside goes on the tape again, within ``no_grad``."""

    on = True


def is_grad_enabled() -> bool:
    """Whether this thread's operators go on the tape."""
    return _tensor.grad_mode()


def backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
) -> None:
    """Add the gradients of this tensor to the ``grad`` of the leaves it was computed from.

    ``gradient`` has this tensor's shape; it may be left out for a tensor of one element. Without
    ``retain_graph`` the tape behind it can be walked once.
    """
    _tensor.backward((self,), (gradient,), bool(retain_graph), create_graph)


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of ``outputs`` with respect to ``inputs``; no ``grad`` is touched.

    RuntimeError for an input that the outputs do not depend on, unless ``allow_unused``: then None.
    """
    roots = (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)
    leaves = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    gradients: tuple[Tensor | None, ...]
    if grad_outputs is None:
        gradients = (None,) * len(roots)
    else:
        gradients = (grad_outputs,) if isinstance(grad_outputs, Tensor) else tuple(grad_outputs)
    if len(gradients) != len(roots):
        raise ValueError(f"grad(): {len(roots)} outputs, but {len(gradients)} grad_outputs")
    return _tensor.grad(roots, leaves, gradients, bool(retain_graph), create_graph, allow_unused)


class Context:
    """What a :class:`Function`'s forward keeps for its backward."""

    def __init__(self) -> None:
        self._saved: tuple[Tensor, ...] = ()
        self._versions: tuple[int, ...] = ()
        self.needs_input_grad: tuple[bool, ...] = ()

    def save_for_backward(self, *tensors: Tensor) -> None:
        """Keep tensors; backward is refused where one was changed in place since."""
        self._saved = tensors
        self._versions = tuple(tensor._version for tensor in tensors)

    @property
    def saved_tensors(self) -> tuple[Tensor, ...]:
        """What save_for_backward was given. RuntimeError where one was changed in place since."""
        for tensor, version in zip(self._saved, self._versions, strict=True):
            if tensor._version != version:
                raise RuntimeError(
                    f"saved_tensors: a tensor of shape {tensor.shape} was changed in place after "
                    f"it was saved: it is at version {tensor._version}, saved was {version}"
                )
        return self._saved


class Function:
    """An operator written in Python, with its backward. Subclass, then call ``apply``.

    Define two static methods. ``forward(ctx, *args)`` computes, off the tape;
    ``backward(ctx, *gradients)`` gets a gradient for each output (None: zero) and returns one, or
    None, for each argument of forward.
    """

    forward: ClassVar[Callable[..., Any]]
    backward: ClassVar[Callable[..., Any]]

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Call forward and put backward on the tape."""
        context = Context()
        context.needs_input_grad = tuple(
            isinstance(arg, Tensor) and arg.requires_grad for arg in args
        )
        with no_grad():
            returned = cls.forward(context, *args)
        outputs = returned if isinstance(returned, tuple) else (returned,)
        if not is_grad_enabled() or not any(context.needs_input_grad):
            return returned
        # An argument handed through must not become its own successor on the tape.
        outputs = tuple(
            output.detach() if any(output is arg for arg in args) else output for output in outputs
        )
        positions = [place for place, arg in enumerate(args) if isinstance(arg, Tensor)]

        def run(*gradients: Tensor | None) -> tuple[Tensor | None, ...]:
            found = cls.backward(context, *gradients)
            found = found if isinstance(found, tuple) else (found,)
            if len(found) != len(args):
                raise RuntimeError(
                    f"{cls.__name__}.backward returned {len(found)} gradients; forward took "
                    f"{len(args)} arguments"
                )
            return tuple(found[place] for place in positions)

        inputs = tuple(args[place] for place in positions)
        _tensor.record(f"{cls.__name__}Backward", inputs, outputs, run)
        return outputs if isinstance(returned, tuple) else outputs[0]
