"""Script `opscope.fork` and `opscope.wait`: functions that run as tasks."""

from __future__ import annotations

import ast
from typing import Any

from opscope.record.tasks import fork, wait
from opscope.tensor.jit.scripting.frame import Frame
from opscope.tensor.jit.scripting.functions import call_function
from opscope.tensor.jit.scripting.number_calls import exactly
from opscope.tensor.jit.scripting.types import FutureOf, plain
from opscope.tensor.jit.scripting.values import (
    FunctionValue,
    ModuleValue,
    Value,
    describe,
    type_of,
)


def forward_of(frame: Frame, module: ModuleValue) -> FunctionValue:
    """What a call of a module calls."""
    forward: Any = frame.context.value_of(module.module.forward)
    return FunctionValue(forward.function, module)


def call_task_function(
    frame: Frame,
    function: object,
    arguments: list[Value],
    keywords: dict[str, Value],
    at: ast.AST,
) -> Value | None:
    """A call of `fork` or `wait`; None for other functions."""
    if function is fork:
        return _call_fork(frame, arguments, keywords, at)
    return call_wait(frame, arguments, keywords, at) if function is wait else None


def _call_fork(
    frame: Frame, arguments: list[Value], keywords: dict[str, Value], at: ast.AST
) -> Value:
    """fork(function, *arguments, **keywords)"""
    function = arguments[0] if arguments else None
    if isinstance(function, ModuleValue):
        function = forward_of(frame, function)
    if not isinstance(function, FunctionValue):
        what = describe(function) if function is not None else "nothing"
        frame.fail(at, f"fork takes a function or a module, not {what}", "def, in the module")
    return call_function(frame, function, arguments[1:], keywords, at, is_task=True)


def call_wait(
    frame: Frame, arguments: list[Value], keywords: dict[str, Value], at: ast.AST
) -> Value:
    """wait(future), or future.wait()"""
    [future] = exactly(frame, arguments, keywords, 1, "wait", at)
    found = type_of(future)
    type_ = found and plain(found)
    if not isinstance(type_, FutureOf):
        frame.fail(at, f"wait takes a future, not {describe(future)}", "what fork gives")
    result = frame.emit_one("prim::Wait", [frame.graph_value(future, at)], type_.part, at)
    return frame.receive(result, at)
