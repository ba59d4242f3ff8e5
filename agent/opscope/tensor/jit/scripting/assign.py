"""Script assignments: to one name or several, to items of tensors and lists, with annotations."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from opscope.tensor.jit.scripting.annotations import annotated_type
from opscope.tensor.jit.scripting.convert import need
from opscope.tensor.jit.scripting.dispatch import expression, list_items, scripts
from opscope.tensor.jit.scripting.frame import Frame
from opscope.tensor.jit.scripting.graph import GraphValue
from opscope.tensor.jit.scripting.numbers import BINARY, binary, is_number
from opscope.tensor.jit.scripting.subscripts import get_item, read_key, set_item
from opscope.tensor.jit.scripting.types import ANY, INT, TENSOR, ListOf, Type, plain
from opscope.tensor.jit.scripting.values import AttributeTensor, Items, Value, describe, type_of
from opscope.tensor.jit.scripting.variables import Bound


def assign_target(frame: Frame, target: ast.expr, value: Value) -> None:
    """target = value."""
    if isinstance(target, ast.Name):
        _assign_name(frame, target, value)
    elif isinstance(target, (ast.Tuple, ast.List)):
        _unpack(frame, target.elts, value, target)
    elif isinstance(target, ast.Subscript):
        owner = expression(frame, target.value)
        set_item(frame, owner, read_key(frame, target.slice), value, target)
    elif isinstance(target, ast.Attribute):
        frame.fail(
            target,
            "attributes cannot be assigned: a scripted model keeps them as they were",
            f"a variable, or a buffer that is changed in place: {ast.unparse(target)}.copy_(...)",
        )
    else:
        frame.fail(target, "this cannot be assigned", "a variable")


def _assign_name(frame: Frame, target: ast.Name, value: Value) -> None:
    before = frame.variables.get(target.id)
    if isinstance(before, Bound) and before.declared is not None:
        value = _as_declared(frame, value, before.declared, target, target.id)
    frame.assign(target.id, value, target)


def _as_declared(frame: Frame, value: Value, declared: Type, at: ast.AST, name: str) -> Value:
    """A value for a variable that an annotation gives a type."""
    made = need(frame, value, declared, at, name)
    if type_of(value) == plain(made.type) and not isinstance(value, Items):
        return value  # What is known of it stays known.
    return frame.receive(made, at)


def _unpack(frame: Frame, targets: Sequence[ast.expr], value: Value, at: ast.AST) -> None:
    for target in targets:
        if isinstance(target, ast.Starred):
            frame.fail(target, "* in an assignment cannot be scripted", "a slice, such as x[1:]")
    items = unpacked(frame, value, len(targets), at)
    for target, item in zip(targets, items, strict=True):
        assign_target(frame, target, item)


def unpacked(frame: Frame, value: Value, count: int, at: ast.AST) -> Sequence[Value]:
    """So many items of a tuple, list or tensor."""
    if isinstance(value, Items):
        if len(value.items) != count:
            frame.fail(at, f"{len(value.items)} values for {count} variables", f"{count} values")
        return value.items
    found = type_of(value)
    listed = frame.graph_value(value, at)
    if found == TENSOR:
        zero = frame.constant(0, INT, at)
        listed = frame.emit_one("core::unbind", [listed, zero], ListOf(TENSOR), at)
    type_ = plain(listed.type)
    if not isinstance(type_, ListOf):
        frame.fail(at, f"{describe(value)} cannot be unpacked", "a tuple or a list")
    return frame.emit("prim::ListUnpack", [listed], [type_.part] * count, at)


@scripts(ast.Assign)
def _assign(frame: Frame, node: ast.Assign) -> None:
    value = expression(frame, node.value)
    for target in node.targets:
        assign_target(frame, target, value)


@scripts(ast.AnnAssign)
def _annotated(frame: Frame, node: ast.AnnAssign) -> None:
    declared = annotated_type(frame, node.annotation)
    if not isinstance(node.target, ast.Name):
        frame.fail(node.target, "only variables can be annotated", "a variable")
    if node.value is None:
        return
    if declared == ANY:
        value = expression(frame, node.value)
        frame.assign(node.target.id, value, node)
        return
    value = list_items(frame, node.value)
    kept = _as_declared(frame, value, declared, node.value, node.target.id)
    frame.variables[node.target.id] = Bound(kept, frame.source.line(node), declared)


@scripts(ast.AugAssign)
def _augmented(frame: Frame, node: ast.AugAssign) -> None:
    target = node.target
    if isinstance(target, ast.Subscript):
        owner, key = expression(frame, target.value), read_key(frame, target.slice)
        old = get_item(frame, owner, key, target)
        new = _changed(frame, node, old)
        set_item(frame, owner, key, new, target)
        return
    old = expression(frame, _as_load(target))
    new = _changed(frame, node, old)
    if isinstance(target, ast.Attribute) and isinstance(old, AttributeTensor):
        return  # The attribute is the same tensor, changed in place.
    assign_target(frame, target, new)


def _as_load(target: ast.Name | ast.Attribute) -> ast.expr:
    loaded: ast.expr
    if isinstance(target, ast.Name):
        loaded = ast.Name(target.id, ast.Load())
    else:
        loaded = ast.Attribute(target.value, target.attr, ast.Load())
    return ast.copy_location(loaded, target)


def _changed(frame: Frame, node: ast.AugAssign, old: Value) -> Value:
    """What the variable is afterwards: a tensor or a list is itself changed."""
    value = expression(frame, node.value)
    found = type_of(old)
    if found == TENSOR and not isinstance(node.op, ast.MatMult):
        if not is_number(value) and type_of(value) != TENSOR:
            return binary(frame, node.op, old, value, node)
        inputs = [frame.graph_value(old, node), frame.graph_value(value, node)]
        kind = f"core::{BINARY[type(node.op)][1]}_"
        return frame.emit_one(kind, inputs, TENSOR, node)
    if isinstance(old, GraphValue) and isinstance(found, ListOf) and isinstance(node.op, ast.Add):
        more = need(frame, value, found, node.value, "what a list is extended by")
        frame.emit("py::extend", [old, more], [], node)
        return old
    return binary(frame, node.op, old, value, node)
