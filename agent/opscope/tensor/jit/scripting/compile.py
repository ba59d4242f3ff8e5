"""`script`: a function or a module as a compiled model."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from opscope.errors import ScriptError
from opscope.tensor.jit.compiled import CompiledModel
from opscope.tensor.jit.scripting.context import Context
from opscope.tensor.jit.scripting.functions import compile_function, new_frame
from opscope.tensor.jit.scripting.parameters import Passed, default_object, read_signature
from opscope.tensor.jit.scripting.types import ANY, TENSOR
from opscope.tensor.jit.scripting.values import FunctionValue
from opscope.tensor.nn import Module

ENTRY = "forward"


def script(target: Callable[..., Any] | Module) -> CompiledModel:
    """Compile a function, or a module's `forward` with all that it calls, from the source."""
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
    passed: Passed = {
        each.name: TENSOR if each.type == ANY else each.type for each in signature.parameters
    }
    compile_function(frame, function, signature, passed, context.unused_name(ENTRY))
    parameters = [] if root is None else [name for name, _ in root.named_parameters()]
    return CompiledModel(
        {each.name: each.text for each in context.functions.values()},
        context.attributes,
        parameters=parameters,
        name=type(target).__name__ if is_module else function.function.__name__,
        signature=[
            (each.name, default_object(frame, each)) if each.has_default else (each.name,)
            for each in signature.parameters
        ],
        code=context.code,
        entry=ENTRY,
    )
