"""Script reading and writing `x[key]` of lists, strings, tuples and modules.

tensor_index.py scripts those of tensors.
"""

from __future__ import annotations

import ast
from typing import Any

from opscope.tensor.jit.scripting.convert import need
from opscope.tensor.jit.scripting.dispatch import expression, scripts
from opscope.tensor.jit.scripting.frame import Frame
from opscope.tensor.jit.scripting.graph import GraphValue
from opscope.tensor.jit.scripting.iteration import module_items
from opscope.tensor.jit.scripting.tensor_index import get_tensor_item, set_tensor_item
from opscope.tensor.jit.scripting.types import INT, STR, TENSOR, ListOf, optional, plain
from opscope.tensor.jit.scripting.values import (
    Constant,
    Items,
    ModuleValue,
    Object,
    SliceValue,
    Value,
    describe,
    type_of,
)


def read_key(frame: Frame, node: ast.expr) -> Value:
    """What is between the brackets."""
    if isinstance(node, ast.Slice):
        nodes = (node.lower, node.upper, node.step)
        parts = [Constant(None) if each is None else expression(frame, each) for each in nodes]
        return SliceValue(*parts)
    if isinstance(node, ast.Tuple):
        return Items(tuple(read_key(frame, each) for each in node.elts))
    return expression(frame, node)


@scripts(ast.Subscript)
def _subscript(frame: Frame, node: ast.Subscript) -> Value:
    return get_item(frame, expression(frame, node.value), read_key(frame, node.slice), node)


def get_item(frame: Frame, owner: Value, key: Value, at: ast.AST) -> Value:
    """owner[key]"""
    if isinstance(owner, ModuleValue):
        owner = Items(module_items(frame, owner, at))
    if isinstance(owner, Items):
        return _of_items(frame, owner, key, at)
    if isinstance(owner, Object):
        return _of_object(frame, owner, key, at)
    found = type_of(owner)
    found = found and plain(found)
    if found == TENSOR:
        return get_tensor_item(frame, owner, key, at)
    if not isinstance(found, ListOf) and found != STR:
        frame.fail(at, f"{describe(owner)} has no items", "a test that excludes None, if it may be")
    if isinstance(owner, Constant) and isinstance(key, Constant) and isinstance(owner.value, str):
        try:
            return Constant(owner.value[key.value])  # type: ignore[index]
        except (IndexError, TypeError):
            pass  # as when the graph runs
    made = frame.graph_value(owner, at)
    assert found is not None
    if isinstance(key, SliceValue):
        bounds = [_bound(frame, each, at) for each in (key.start, key.stop)]
        step = Constant(1) if _is_none(key.step) else key.step
        bounds.append(need(frame, step, INT, at, "the step of a slice"))
        return frame.emit_one("py::slice", [made, *bounds], found, at)
    place = _place(frame, key, at)
    part = found.part if isinstance(found, ListOf) else STR
    return frame.receive(frame.emit_one("py::getitem", [made, place], part, at), at)


def _is_none(value: Value) -> bool:
    return isinstance(value, Constant) and value.value is None


def _bound(frame: Frame, value: Value, at: ast.AST) -> GraphValue:
    return need(frame, value, optional(INT), at, "the bound of a slice")


def _place(frame: Frame, key: Value, at: ast.AST) -> GraphValue:
    if type_of(key) == TENSOR:
        return frame.emit_one("py::int", [frame.graph_value(key, at)], INT, at)
    return need(frame, key, INT, at, "an index")


def _of_items(frame: Frame, owner: Items, key: Value, at: ast.AST) -> Value:
    """An item of a tuple: which one must be known, unless all have one type."""
    if isinstance(key, SliceValue):
        bounds = [key.start, key.stop, key.step]
        known: list[Any] = [each.value for each in bounds if isinstance(each, Constant)]
        if len(known) == 3:
            return Items(owner.items[slice(*known)], is_list=owner.is_list)
    if isinstance(key, Constant) and isinstance(key.value, int):
        try:
            return owner.items[key.value]
        except IndexError:
            frame.fail(at, f"there are only {len(owner.items)} items", "an index below that")
    types = {type_of(each) for each in owner.items}
    if len(types) != 1 or None in types:
        frame.fail(
            at,
            "which item of a tuple this is has to be known while scripting, because its items "
            "have different types",
            "a number, or a loop over the tuple",
        )
    values = [frame.graph_value(each, at) for each in owner.items]
    return get_item(frame, frame.list_of(values, at), key, at)


def _of_object(frame: Frame, owner: Object, key: Value, at: ast.AST) -> Value:
    """An entry of a dict of Python that the code refers to."""
    if isinstance(owner.object, dict) and isinstance(key, Constant):
        if key.value in owner.object:
            return frame.context.value_of(owner.object[key.value])
        frame.fail(at, f"the dict has no key {key.value!r}", "a key that it has")
    frame.fail(at, f"{describe(owner)} has no items in a graph", "a list or a tuple")


def set_item(frame: Frame, owner: Value, key: Value, value: Value, at: ast.AST) -> None:
    """owner[key] = value"""
    found = type_of(owner)
    found = found and plain(found)
    if found == TENSOR:
        set_tensor_item(frame, owner, key, value, at)
        return
    if not isinstance(found, ListOf) or not isinstance(owner, GraphValue):
        frame.fail(at, f"items of {describe(owner)} cannot be assigned", "a list or a Tensor")
    if isinstance(key, SliceValue):
        frame.fail(at, "a slice of a list cannot be assigned", "its items one by one")
    made = need(frame, value, found.part, at, "an item of the list")
    frame.emit("py::setitem", [owner, _place(frame, key, at), made], [], at)
