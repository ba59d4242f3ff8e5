"""`trace`: runs a function once and makes a compiled model of the operators that it called."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable, Sequence
from typing import Any

from opscope._tensor import Tensor
from opscope.record.usage import log_api_usage_once
from opscope.tensor.jit.compiled import CompiledModel
from opscope.tensor.jit.graph_builder import GraphBuilder, TraceError
from opscope.tensor.jit.nodes import to_text
from opscope.tensor.jit.recording import Recording
from opscope.tensor.jit.state import State
from opscope.tensor.jit.structures import add_example, add_result, tensors_in
from opscope.tensor.jit.trace_check import Expected
from opscope.tensor.nn.module import Module, Parameter


def trace(
    function: Callable[..., Any], *examples: Any, check: bool = True, name: str | None = None
) -> CompiledModel:
    """Run a function or module on examples, and make a compiled model of the operators it calls.

    >>> model = trace(net.eval(), images)
    >>> model(other_images)

    `examples` are tensors, lists of tensors and tuples of these; the model takes the same. The
    graph has exactly the operators that ran: what Python decided (an `if`, the number of rounds of
    a loop, a shape, any number) is a constant of it. Use `script` for a function whose control flow
    depends on its inputs. A tensor that the function takes elements of as Python values
    (`x.item()`, `if x > 0`) is reported by a TracerWarning for each such line.

    Parameters and buffers of a module are attributes of the model by their names in `state_dict`,
    and the same tensors: training one trains the other. Other tensors are attributes `constants.N`.
    Writes in place and views work as in the function. Operators called under `no_grad` take no part
    in gradients. `name` defaults to that of the function or class.

    `check` runs the graph on the examples, and compares what it returns and writes with what the
    function did. Tensors that the function writes have their elements back afterwards, so tracing
    changes neither examples nor module.

    Raises TypeError for other examples; TraceError, with the reason, for a function that cannot be
    traced, or whose graph computes something else.
    """
    log_api_usage_once("opscope.tensor.jit.trace")
    module = _module_of(function)
    attributes = {} if module is None else _tensors_of(module)
    paths = {} if module is None else {id(each): path for path, each in module.named_modules()}
    names = _names(function, len(examples))
    builder = GraphBuilder(attributes)
    for parameter, example in zip(names, examples, strict=True):
        add_example(builder, example, parameter)
    # Parameters are large and seldom written: the recording keeps those that are.
    state = State(
        each
        for each in (*tensors_in(examples), *attributes.values())
        if not isinstance(each, Parameter)
    )
    marks = {path: _mark(tensor) for path, tensor in attributes.items()}
    try:
        with Recording(builder, state, paths):
            result = function(*examples)
        add_result(builder, result)
        _check_attributes(module, attributes, marks, state)
        model = CompiledModel(
            {"forward": to_text(builder.body)},
            builder.attributes,
            parameters=[path for path, own in attributes.items() if isinstance(own, Parameter)],
            name=name or _name_of(function),
            signature=[(parameter,) for parameter in names],
        )
        if check:
            Expected(result, state).compare(model, examples, state, builder.body)
    finally:
        state.restore()
    return model


def _module_of(function: Callable[..., Any]) -> Module | None:
    """The module whose tensors the function uses: itself, or the one that it is a method of."""
    owner = function if isinstance(function, Module) else getattr(function, "__self__", None)
    return owner if isinstance(owner, Module) else None


def _tensors_of(module: Module) -> dict[str, Tensor]:
    return {**module._state(), **dict(module.named_buffers())}


def _mark(tensor: Tensor) -> tuple[int, int]:
    """Changes if something writes the tensor or replaces its memory."""
    return tensor._storage_data_ptr(), tensor._version


def _check_attributes(
    module: Module | None,
    attributes: dict[str, Tensor],
    marks: dict[str, tuple[int, int]],
    state: State,
) -> None:
    """TraceError if an attribute has changed in a way that the recording did not see."""
    now = {} if module is None else _tensors_of(module)
    for path, tensor in attributes.items():
        place, version = marks[path]
        if now.get(path) is not tensor:
            raise TraceError(
                f"the function sets {path!r} to another tensor; a graph can only write in place"
            )
        if tensor._storage_data_ptr() != place:
            raise TraceError(f"the function replaces the memory of {path!r}")
        if tensor._version != version and tensor not in state:
            raise TraceError(f"an operator writes {path!r}, and its name does not say so")


def _name_of(function: Callable[..., Any]) -> str:
    found = getattr(function, "__name__", None)
    return found if isinstance(found, str) else type(function).__name__


def _names(function: Callable[..., Any], count: int) -> Sequence[str]:
    """A name for each example: those of the function's parameters."""
    called = function.forward if isinstance(function, Module) else function
    names: list[str] = []
    try:
        parameters = list(inspect.signature(called).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}_{index}" for index in range(count - len(names))]
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
    names = names[:count] + [f"input_{index}" for index in range(len(names), count)]
    is_usable = len(set(names)) == count and not any(map(keyword.iskeyword, names))
    return names if is_usable else [f"input_{index}" for index in range(count)]
