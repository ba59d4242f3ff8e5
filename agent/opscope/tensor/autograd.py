"""Gradients: grad mode, `backward`, `grad`, and functions with a backward written in Python.

The core implements the tape (native/tensor/autograd); this file adds PyTorch's signatures.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast, overload

from opscope import _tensor
from opscope._tensor import Tensor, functions

if TYPE_CHECKING:
    from typing_extensions import Self

F = TypeVar("F", bound=Callable[..., Any])


class _GradMode:
    """Turns this thread's grad mode on or off for a block, or for each call of a function."""

    __slots__ = ("_before",)

    on: bool

    def __enter__(self) -> None:
        self._before = _tensor.set_grad_mode(self.on)

    def __exit__(self, *_: object) -> None:
        _tensor.set_grad_mode(self._before)

    def __call__(self, function: F) -> F:
        mode = type(self)
        if inspect.isgeneratorfunction(function):
            return cast(F, functools.wraps(function)(_stepwise(mode, function)))

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            with mode():
                return function(*args, **kwargs)

        return cast(F, run)


def _stepwise(mode: type[_GradMode], function: Callable[..., Any]) -> Callable[..., Any]:
    """The generator function with the mode on during each of its steps, and off between them."""

    def run(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        steps = function(*args, **kwargs)
        step: Callable[[], Any] = functools.partial(next, steps)
        while True:
            try:
                with mode():
                    value = step()
            except StopIteration as stop:
                return stop.value
            try:
                sent = yield value
            except BaseException as error:
                step = functools.partial(steps.throw, error)
            else:
                step = functools.partial(steps.send, sent)

    return run


class _Mode(_GradMode):
    """Decorates with and without parentheses: `@no_grad` and `@no_grad()`."""

    @overload
    def __new__(cls) -> Self: ...
    @overload
    def __new__(cls, function: F) -> F: ...  # type: ignore[misc]
    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        mode = super().__new__(cls)
        return mode if function is None else mode(function)


class no_grad(_Mode):  # noqa: N801 - PyTorch's name
    """Within the block, computations are not recorded on the tape."""

    on = False


class enable_grad(_Mode):  # noqa: N801 - PyTorch's name
    """Within the block, computations are recorded on the tape again, despite `no_grad`."""

    on = True


class set_grad_enabled(_GradMode):  # noqa: N801 - PyTorch's name
    """Turns this thread's grad mode on or off, at once; as a context manager, for the block."""

    __slots__ = ("on",)

    def __init__(self, mode: bool) -> None:
        self.on = mode
        self._before = _tensor.set_grad_mode(mode)

    def __enter__(self) -> None:
        pass

    def __call__(self, function: F) -> F:
        _tensor.set_grad_mode(self._before)
        return (enable_grad if self.on else no_grad)()(function)


class inference_mode(_GradMode):  # noqa: N801 - PyTorch's name
    """Within the block, computations are not recorded on the tape; `mode` False: they are.

    As `no_grad` and `enable_grad`: tensors made within may be used on the tape afterwards.
    """

    __slots__ = ("on",)

    def __new__(cls, mode: Any = True) -> Any:  # of any function: its decorator
        return super().__new__(cls) if isinstance(mode, bool) else cls()(mode)

    def __init__(self, mode: Any = True) -> None:
        self.on = not mode

    def __call__(self, function: F) -> F:
        return (enable_grad if self.on else no_grad)()(function)


def is_grad_enabled() -> bool:
    """Whether this thread's operators are recorded on the tape."""
    return _tensor.grad_mode()


def backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
) -> None:
    """Add the gradients of this tensor to the `grad` of the leaves that it was computed from.

    `gradient` has this tensor's shape; it is optional for a tensor of one element. Without
    `retain_graph` (default: the value of `create_graph`) the tape behind the tensor can be walked
    only once. With `create_graph` the gradients are on the tape themselves, for gradients of
    gradients; a leaf's `grad` and the tape then refer to each other, so their memory stays until
    `grad` is reset (`grad()` below creates no such cycle).

    Raises RuntimeError if the tape was walked before, if a saved tensor was changed in place, or if
    an operator has no second gradient.
    """
    retain = create_graph if retain_graph is None else retain_graph
    _tensor.backward((self,), (gradient,), retain, create_graph)


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of `outputs` with respect to `inputs`; changes no `grad`.

    Raises RuntimeError for an input that the outputs do not depend on; with `allow_unused`, its
    gradient is None. `retain_graph` and `create_graph` as for `backward`; walks only the tape
    between outputs and inputs.
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
    retain = create_graph if retain_graph is None else retain_graph
    return _tensor.grad(roots, leaves, gradients, retain, create_graph, allow_unused)


class Context:
    """Passes data from a `Function`'s forward to its backward."""

    def __init__(self) -> None:
        self._saved: tuple[Tensor | None, ...] = ()
        self._versions: tuple[int, ...] = ()
        self._outputs: tuple[Any, ...] = ()
        self._materializes = True
        self.needs_input_grad: tuple[bool, ...] = ()

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors (or None); backward fails if one is changed in place afterwards."""
        self._saved = tensors
        self._versions = tuple(0 if tensor is None else tensor._version for tensor in tensors)

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward gets zeros (the default) or None for an output without a gradient."""
        self._materializes = value

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The tensors saved. Raises RuntimeError if one was changed in place since."""
        for tensor, version in zip(self._saved, self._versions, strict=True):
            if tensor is not None and tensor._version != version:
                raise RuntimeError(
                    f"saved_tensors: a tensor of shape {tuple(tensor.shape)} was changed in place "
                    f"after it was saved: it is at version {tensor._version}, saved was {version}"
                )
        return tuple(self._on_tape(tensor) for tensor in self._saved)

    def _on_tape(self, tensor: Tensor | None) -> Tensor | None:
        # The results of forward differ from those of apply (see there); this converts them back.
        for index, output in enumerate(self._outputs):
            if tensor is not None and output is tensor:
                return _tensor.as_output(tensor, index)
        return tensor


class Function:
    """An operator written in Python, with its backward. Subclass, then call `apply`.

    Define two static methods. `forward(ctx, *args)` computes without the tape and returns a tensor
    or a tuple. `backward(ctx, *gradients)` gets one gradient for each result of forward (zeros for
    an unused one; see `ctx.set_materialize_grads`) and returns a gradient or None for each argument
    of forward. It may run on another thread than forward.
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
        if not is_grad_enabled() or not any(context.needs_input_grad):
            return returned
        outputs = returned if isinstance(returned, tuple) else (returned,)
        context._outputs = tuple(output for output in outputs if isinstance(output, Tensor))
        # The tape gets tensors of its own over the same memory. The context may keep forward's
        # results, but not the tape's tensors, which refer to the context.
        given = tuple(
            output.detach() if isinstance(output, Tensor) else output for output in outputs
        )
        on_tape = tuple(output for output in given if isinstance(output, Tensor))
        positions = [place for place, arg in enumerate(args) if isinstance(arg, Tensor)]
        inputs = tuple(args[place] for place in positions)
        run = _backward_of(cls, context, len(args), positions, outputs)
        # Without a namespace, the name would look like one of PyTorch's nodes.
        _tensor.record(f"user::{cls.__name__}Backward", inputs, on_tape, run)
        return given if isinstance(returned, tuple) else given[0]


def _backward_of(
    function: type[Function],
    context: Context,
    argument_count: int,
    positions: list[int],
    outputs: tuple[Any, ...],
) -> Callable[..., tuple[Tensor | None, ...]]:
    """The function that the tape calls: takes a gradient for each output tensor, returns one for
    each argument tensor.
    """
    shapes = [
        (output.shape, output.dtype) if isinstance(output, Tensor) else None for output in outputs
    ]

    def run(*gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        left = iter(gradients)
        whole: list[Tensor | None] = []
        for shape in shapes:
            gradient = next(left) if shape is not None else None
            if gradient is None and shape is not None and context._materializes:
                gradient = functions["zeros"](shape[0], dtype=shape[1])
            whole.append(gradient)
        found = function.backward(context, *whole)
        found = found if isinstance(found, tuple) else (found,)
        if len(found) != argument_count:
            raise RuntimeError(
                f"{function.__name__}.backward returned {len(found)} gradients; forward took "
                f"{argument_count} arguments"
            )
        return tuple(found[place] for place in positions)

    return run
