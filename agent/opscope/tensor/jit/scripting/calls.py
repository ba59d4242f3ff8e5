"""Script calls: of functions, modules, operators, methods and built-ins."""

from __future__ import annotations

import ast
from typing import Any

from opscope._tensor import tensor
from opscope.tensor.jit.scripting.builtin_calls import BUILTINS
from opscope.tensor.jit.scripting.dispatch import expression, list_items, scripts
from opscope.tensor.jit.scripting.frame import Frame
from opscope.tensor.jit.scripting.functions import call_function
from opscope.tensor.jit.scripting.iteration import loopable
from opscope.tensor.jit.scripting.list_methods import call_method
from opscope.tensor.jit.scripting.operator_calls import call_operator
from opscope.tensor.jit.scripting.tasks import call_task_function, call_wait, forward_of
from opscope.tensor.jit.scripting.tensor_functions import call_tensor_function, operator_name
from opscope.tensor.jit.scripting.tensor_methods import call_tensor_method
from opscope.tensor.jit.scripting.types import TENSOR, FutureOf, plain
from opscope.tensor.jit.scripting.values import (
    FunctionValue,
    Items,
    Method,
    ModuleValue,
    Object,
    Value,
    describe,
    type_of,
)
from opscope.tensor.nn import Module


@scripts(ast.Call)
def _call(frame: Frame, node: ast.Call) -> Value:
    function = expression(frame, node.func)
    makes_tensor = isinstance(function, Object) and function.object is tensor
    read = list_items if makes_tensor else expression
    arguments: list[Value] = []
    for each in node.args:
        if isinstance(each, ast.Starred):
            arguments += _spread(frame, each)
        else:
            arguments.append(read(frame, each))
    keywords: dict[str, Value] = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            frame.fail(keyword.value, "** in a call cannot be scripted", "the keywords one by one")
        keywords[keyword.arg] = expression(frame, keyword.value)
    return call(frame, function, arguments, keywords, node)


def _spread(frame: Frame, node: ast.Starred) -> tuple[Value, ...]:
    """The items of a tuple as arguments."""
    rounds = loopable(frame, expression(frame, node.value), node.value)
    if not isinstance(rounds, Items):
        frame.fail(
            node,
            "* in a call needs a tuple, because the number of arguments has to be known",
            "the list itself as an argument",
        )
    return rounds.items


def call(
    frame: Frame, function: Value, arguments: list[Value], keywords: dict[str, Value], at: ast.AST
) -> Value:
    """function(*arguments, **keywords)"""
    if isinstance(function, FunctionValue):
        for special in (call_task_function, call_tensor_function):
            result = special(frame, function.function, arguments, keywords, at)
            if result is not None:
                return result
        return call_function(frame, function, arguments, keywords, at)
    if isinstance(function, ModuleValue):
        if type(function.module).forward is Module.forward:
            frame.fail(at, f"{type(function.module).__name__} defines no forward", "its methods")
        return call_function(frame, forward_of(frame, function), arguments, keywords, at)
    if isinstance(function, Method):
        owner = type_of(function.owner)
        if isinstance(owner and plain(owner), FutureOf) and function.name == "wait":
            return call_wait(frame, [function.owner, *arguments], keywords, at)
        if type_of(function.owner) == TENSOR:
            return call_tensor_method(frame, function.owner, function.name, arguments, keywords, at)
        return call_method(frame, function, arguments, keywords, at)
    if isinstance(function, Object):
        return _call_object(frame, function.object, arguments, keywords, at)
    frame.fail(at, f"{describe(function)} cannot be called", "a function or a module")


def _call_object(
    frame: Frame, python: Any, arguments: list[Value], keywords: dict[str, Value], at: ast.AST
) -> Value:
    name = operator_name(python)
    if name is not None:
        return call_operator(frame, name, arguments, keywords, at)
    special = call_tensor_function(frame, python, arguments, keywords, at)
    if special is not None:
        return special
    try:
        builtin = BUILTINS.get(python)
    except TypeError:
        builtin = None
    if builtin is not None:
        return builtin(frame, arguments, keywords, at)
    if isinstance(python, type):
        frame.fail(
            at,
            f"an object of the class {python.__name__} cannot be made in a graph",
            "a tuple, or the object made before scripting",
        )
    frame.fail(
        at,
        f"{getattr(python, '__qualname__', python)} is not written in Python, and no graph has it",
        "a function of opscope.tensor or math that graphs have",
    )
