"""Script methods of tensors: operators, methods written in Python, and queries."""

from __future__ import annotations

import ast

from opscope._tensor import operators
from opscope.tensor import composed, forms, memory
from opscope.tensor.jit.scripting.convert import need
from opscope.tensor.jit.scripting.frame import Frame
from opscope.tensor.jit.scripting.functions import call_function
from opscope.tensor.jit.scripting.operator_calls import call_operator
from opscope.tensor.jit.scripting.tensor_functions import call_tensor_function
from opscope.tensor.jit.scripting.types import BOOL, DTYPE, FLOAT, INT, ListOf
from opscope.tensor.jit.scripting.values import Constant, FunctionValue, Value

_WRITTEN_IN_PYTHON = {**forms.METHODS, "cpu": memory.cpu}
_FLOATING = ("float32", "float64", "float16", "bfloat16")


def call_tensor_method(
    frame: Frame,
    owner: Value,
    name: str,
    arguments: list[Value],
    keywords: dict[str, Value],
    at: ast.AST,
) -> Value:
    """owner.name(...)"""
    asks = _QUESTIONS.get(name)
    if asks is not None and not keywords:
        return asks(frame, owner, arguments, at)
    function = _WRITTEN_IN_PYTHON.get(name)
    if function is not None:
        values = [owner, *arguments]
        special = call_tensor_function(frame, function, values, keywords, at)
        if special is not None:
            return special
        return call_function(frame, FunctionValue(function), values, keywords, at)
    if f"core::{name}" in operators:
        return call_operator(frame, f"core::{name}", [owner, *arguments], keywords, at)
    if name in composed.METHODS:
        function = composed.find(name, composed.METHODS[name])
        return call_function(frame, FunctionValue(function), [owner, *arguments], keywords, at)
    frame.fail(at, f"Tensor.{name} is not in graphs", _REMEDIES.get(name, "an operator"))


_REMEDIES = {
    "backward": "the call on the result of the scripted function",
    "numpy": "the call on the result of the scripted function",
    "tolist": "the call on the result of the scripted function",
    "requires_grad_": "the call before the scripted function",
}


def _size(frame: Frame, owner: Value, arguments: list[Value], at: ast.AST) -> Value:
    tensor = frame.graph_value(owner, at)
    if not arguments:
        return frame.emit_one("py::size", [tensor], ListOf(INT), at)
    dim = need(frame, arguments[0], INT, at, "the dimension of size")
    return frame.emit_one("py::size", [tensor, dim], INT, at)


def _dim(frame: Frame, owner: Value, arguments: list[Value], at: ast.AST) -> Value:
    return frame.emit_one("py::dim", [frame.graph_value(owner, at)], INT, at)


def _numel(frame: Frame, owner: Value, arguments: list[Value], at: ast.AST) -> Value:
    return frame.emit_one("py::numel", [frame.graph_value(owner, at)], INT, at)


def _item(frame: Frame, owner: Value, arguments: list[Value], at: ast.AST) -> Value:
    """A float, because the dtype is known only when the graph runs."""
    return frame.emit_one("py::float", [frame.graph_value(owner, at)], FLOAT, at)


def _is_floating_point(frame: Frame, owner: Value, arguments: list[Value], at: ast.AST) -> Value:
    dtype = frame.emit_one("py::dtype", [frame.graph_value(owner, at)], DTYPE, at)
    found: Value = Constant(False)
    for name in _FLOATING:
        wanted = frame.constant(name, DTYPE, at)
        equal = frame.emit_one("py::eq", [dtype, wanted], BOOL, at)
        before = frame.graph_value(found, at)
        found = frame.emit_one("py::or", [before, equal], BOOL, at)
    return found


_QUESTIONS = {
    "size": _size,
    "dim": _dim,
    "numel": _numel,
    "item": _item,
    "is_floating_point": _is_floating_point,
}
