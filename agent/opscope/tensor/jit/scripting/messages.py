"""Script assert, raise and print, and the f-strings in them."""

from __future__ import annotations

import ast
import builtins

from opscope.tensor.jit.scripting.branches import merge, run_branch
from opscope.tensor.jit.scripting.conditions import condition
from opscope.tensor.jit.scripting.dispatch import expression, scripts
from opscope.tensor.jit.scripting.frame import Frame
from opscope.tensor.jit.scripting.graph import GraphValue
from opscope.tensor.jit.scripting.number_calls import to_str
from opscope.tensor.jit.scripting.numbers import binary
from opscope.tensor.jit.scripting.types import STR
from opscope.tensor.jit.scripting.values import Constant, Object, Value, type_of


@scripts(ast.JoinedStr)
def _f_string(frame: Frame, node: ast.JoinedStr) -> Value:
    whole: Value = Constant("")
    for each in node.values:
        if isinstance(each, ast.FormattedValue):
            if each.format_spec is not None or each.conversion not in (-1, ord("s")):
                frame.fail(
                    each, "formats in an f-string cannot be scripted", "{value} without a format"
                )
            piece = to_str(frame, expression(frame, each.value), each)
        else:
            piece = expression(frame, each)
        is_first = whole == Constant("")
        whole = piece if is_first else binary(frame, ast.Add(), whole, piece, node)
    return whole


@scripts(ast.Assert)
def _assert(frame: Frame, node: ast.Assert) -> None:
    test = condition(frame, node.test)

    def fail() -> None:
        text = Constant("") if node.msg is None else _text(frame, node.msg)
        _raise_exception(frame, text, "AssertionError", node)

    if isinstance(test.value, GraphValue):
        passed = run_branch(frame, lambda: None)
        merge(frame, test.value, passed, run_branch(frame, fail), node)
    elif not test.value:
        fail()
    frame.exclude_none(test.if_true)


def _text(frame: Frame, node: ast.expr) -> Value:
    """The text of an exception's argument."""
    value = expression(frame, node)
    return value if type_of(value) == STR else to_str(frame, value, node)


@scripts(ast.Raise)
def _raise(frame: Frame, node: ast.Raise) -> None:
    if node.exc is None:
        frame.fail(node, "raise without an exception cannot be scripted", "raise ValueError(...)")
    call = node.exc if isinstance(node.exc, ast.Call) else None
    kind = expression(frame, call.func if call is not None else node.exc)
    name = getattr(kind.object, "__name__", "") if isinstance(kind, Object) else ""
    found = getattr(builtins, name, None)
    is_known = isinstance(found, type) and issubclass(found, Exception)
    if not is_known or not isinstance(kind, Object) or kind.object is not found:
        frame.fail(
            node.exc, "only Python's own exceptions can be raised in a graph", "ValueError(...)"
        )
    arguments = call.args if call is not None else []
    if len(arguments) > 1 or (call is not None and call.keywords):
        frame.fail(node.exc, "an exception in a graph takes one text", f"{name}(text)")
    text = _text(frame, arguments[0]) if arguments else Constant("")
    _raise_exception(frame, text, name, node)


def _raise_exception(frame: Frame, text: Value, name: str, at: ast.AST) -> None:
    inputs = [frame.graph_value(text, at), frame.text_constant(name, at)]
    frame.emit("prim::RaiseException", inputs, [], at)
    frame.is_dead = True
