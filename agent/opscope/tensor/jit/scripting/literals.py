"""Script names, constants, tuples and lists."""

from __future__ import annotations

import ast

from opscope.tensor.jit.scripting.dispatch import expression, scripts
from opscope.tensor.jit.scripting.frame import Frame
from opscope.tensor.jit.scripting.iteration import loopable
from opscope.tensor.jit.scripting.listing import new_list, to_list
from opscope.tensor.jit.scripting.numbers import binary
from opscope.tensor.jit.scripting.values import Constant, Items, Object, Value


@scripts(ast.Constant)
def _constant(frame: Frame, node: ast.Constant) -> Value:
    if node.value is ...:
        return Object(...)
    if node.value is None or isinstance(node.value, (bool, int, float, str)):
        return Constant(node.value)
    kind = type(node.value).__name__
    frame.fail(node, f"there are no {kind} in graphs", "a number, str, list, tuple or Tensor")


@scripts(ast.Name)
def _name(frame: Frame, node: ast.Name) -> Value:
    return frame.read(node.id, node)


@scripts(ast.Tuple, ast.List)
def _items(frame: Frame, node: ast.Tuple | ast.List) -> Value:
    is_list = isinstance(node, ast.List)
    pieces: list[Value] = []
    items: list[Value] = []
    for each in node.elts:
        if not isinstance(each, ast.Starred):
            items.append(expression(frame, each))
            continue
        value = expression(frame, each.value)
        rounds = loopable(frame, value, each)
        if isinstance(rounds, Items):
            items += rounds.items
            continue
        # Of unknown length: a list, which nothing else refers to.
        pieces += [Items(tuple(items)), to_list(frame, value, each)]
        items = []
    if not pieces:
        return new_list(frame, tuple(items), node) if is_list else Items(tuple(items))
    whole = pieces[0]
    for piece in [*pieces[1:], Items(tuple(items))]:
        whole = _joined(frame, whole, piece, node)
    return whole


def _joined(frame: Frame, one: Value, other: Value, at: ast.AST) -> Value:
    """Both, one after the other; nothing for what is empty."""
    for some, rest in ((one, other), (other, one)):
        if isinstance(some, Items) and not some.items:
            return rest
    return binary(frame, ast.Add(), one, other, at)
