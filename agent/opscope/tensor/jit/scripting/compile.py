"""`script`: a function or a module as a compiled model."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from opscope.errors import ScriptError
from opscope.record.usage import log_api_usage_once
from opscope.tensor.jit.compiled import CompiledModel
from opscope.tensor.jit.scripting.context import SCRIPTED, Context
from opscope.tensor.jit.scripting.frame import Frame
from opscope.tensor.jit.scripting.functions import compile_function, new_frame
from opscope.tensor.jit.scripting.parameters import (
    Parameter,
    Passed,
    default_object,
    default_value,
    read_signature,
)
from opscope.tensor.jit.scripting.types import ANY, FLOAT, NONE, TENSOR, ListOf, Type, optional
from opscope.tensor.jit.scripting.values import FunctionValue, type_of
from opscope.tensor.nn import Module

ENTRY = "forward"


def script(target: Callable[..., Any] | Module) -> CompiledModel:
    """Compile a function, or a module's `forward` with all that it calls, from the source.

    >>> @opscope.tensor.jit.script
    ... def positive(x, rounds: int = 3):
    ...     for _ in range(rounds):
    ...         if x.min() >= 0:
    ...             break
    ...         x = x + 1
    ...     return x

    Control flow stays in the graph. Supported are

    - statements: `if`, `while`, `for`, `break`, `continue`, `return` anywhere, `assert`, `raise` of
      Python's exceptions, assignments (also annotated, augmented, and of several at once), `pass`;
    - `for` over range, lists, tensors, texts, enumerate, zip and reversed; over tuples, ModuleList
      and Sequential, which are unrolled;
    - int, float, bool, str, None, lists, tuples, Optional, with Python's operators, comparisons
      (also chained), `and`, `or`, `not`, `in`, conditional expressions, subscripts and slices,
      comprehensions with one `for`, f-strings without formats;
    - `abs all any bool divmod enumerate float int isinstance len list max min pow print range
      reversed round str sum tuple zip`; of `math`: `ceil exp floor log prod sqrt`, and all of
      constants; methods of lists: `append clear copy count extend index insert pop reverse`;
    - the operators, functions and methods of opscope.tensor, indexing by numbers, slices, None,
      `...`, tensors, masks and lists, and assignment to what is indexed;
    - calls of functions, methods and modules written in Python, with keywords and defaults,
      `super()`; no recursion;
    - parameters annotated `int`, `float`, `bool`, `str`, `Tensor`, `list`, `tuple`, `Optional` and
      dtype, also as strings; without an annotation they are tensors.

    Attributes of modules, globals and closures are constants, `training` too; their tensors are
    those of the model. Raises ScriptError for all else, with the line, a caret and what to write
    instead, and if the source is not deployed beside the .pyc.
    """
    log_api_usage_once("opscope.tensor.jit.script")
    if isinstance(target, CompiledModel):
        return target
    is_module = isinstance(target, Module)
    if not is_module and not inspect.isroutine(target):
        raise ScriptError(
            f"script() takes a function or a module, not {type(target).__name__}",
            remedy="script(function) or script(module)",
        )
    root = target if isinstance(target, Module) else None
    context = Context(root)
    function = context.value_of(root.forward if root is not None else target)
    if not isinstance(function, FunctionValue):
        raise ScriptError(
            f"script() takes functions written in Python, not {target!r}",
            remedy="a function defined with def",
        )
    frame = new_frame(context, function)
    signature = read_signature(frame, function.bound_to is not None)
    if signature.rest:
        frame.fail(
            frame.source.tree.args.vararg or frame.source.tree,
            "the number of arguments has to be known",
            "named parameters, or a list",
        )
    passed: Passed = {each.name: _entry_type(frame, each) for each in signature.parameters}
    compile_function(frame, function, signature, passed, context.unused_name(ENTRY))
    parameters = [] if root is None else [name for name, _ in root.named_parameters()]
    model = CompiledModel(
        {each.name: each.text for each in context.functions.values()},
        context.attributes,
        parameters=parameters,
        name=type(target).__name__ if is_module else function.function.__name__,
        signature=[
            (each.name, _default(frame, each)) if each.has_default else (each.name,)
            for each in signature.parameters
        ],
        code=context.code,
        entry=ENTRY,
    )
    SCRIPTED[model] = target
    return model


def _entry_type(frame: Frame, parameter: Parameter) -> Type:
    """The type of a parameter; Any is what its default is, or else a Tensor."""
    if parameter.type != ANY:
        return parameter.type
    found = type_of(default_value(frame, parameter)) if parameter.has_default else None
    return optional(TENSOR) if found == NONE else found or TENSOR


def _default(frame: Frame, parameter: Parameter) -> object:
    """A parameter's default as a graph takes it: a float, a list, where these are annotated."""
    default = default_object(frame, parameter)
    if isinstance(parameter.type, ListOf) and isinstance(default, tuple):
        return list(default)
    return float(default) if parameter.type == FLOAT else default
