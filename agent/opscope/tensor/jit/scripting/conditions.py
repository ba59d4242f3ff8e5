"""Script conditions (`and`, `or`, `not`, `is None`, isinstance), and narrow types by them."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from opscope.tensor.jit.scripting.branches import merge, run_branch
from opscope.tensor.jit.scripting.dispatch import expression
from opscope.tensor.jit.scripting.frame import Frame
from opscope.tensor.jit.scripting.graph import GraphValue
from opscope.tensor.jit.scripting.truth import NOTHING, Condition, negate, truth
from opscope.tensor.jit.scripting.types import (
    BOOL,
    FLOAT,
    INT,
    NONE,
    STR,
    TENSOR,
    ListOf,
    OptionalOf,
    plain,
)
from opscope.tensor.jit.scripting.values import (
    Constant,
    Items,
    ModuleValue,
    Object,
    type_of,
)
from opscope.tensor.jit.scripting.variables import Bound


def condition(frame: Frame, node: ast.expr) -> Condition:
    """Script a test."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = condition(frame, node.operand)
        return Condition(negate(frame, inner.value, node), inner.if_false, inner.if_true)
    if isinstance(node, ast.BoolOp):
        return _all_of(frame, isinstance(node.op, ast.And), node.values, node)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return _none_test(frame, node)
    if isinstance(node, ast.Call) and len(node.args) == 2 and not node.keywords:
        return _type_test(frame, node)
    return Condition(truth(frame, expression(frame, node), node))


def _all_of(frame: Frame, is_and: bool, nodes: Sequence[ast.expr], at: ast.AST) -> Condition:
    """`and` of tests, or `or`."""
    first = condition(frame, nodes[0])
    if len(nodes) == 1:
        return first
    shown = first.if_true if is_and else first.if_false
    if not isinstance(first.value, GraphValue):
        if first.value is not is_and:
            return first
        return _all_of(frame, is_and, nodes[1:], at)
    found: list[Condition] = []

    def evaluate() -> None:
        frame.exclude_none(shown)
        found.append(_all_of(frame, is_and, nodes[1:], at))
        frame.assign("<test>", found[0].as_value(), at)

    then = run_branch(frame, evaluate)
    other = run_branch(frame, lambda: frame.assign("<test>", Constant(not is_and), at))
    if not is_and:
        then, other = other, then
    before = frame.variables
    merge(frame, first.value, then, other, at)
    value = frame.variables["<test>"]
    frame.variables = before
    assert isinstance(value, Bound)
    outcome = value.value
    facts = shown | (found[0].if_true if is_and else found[0].if_false)
    result = outcome.value if isinstance(outcome, Constant) else outcome
    assert isinstance(result, (bool, GraphValue))
    return Condition(result, facts, NOTHING) if is_and else Condition(result, NOTHING, facts)


def _none_test(frame: Frame, node: ast.Compare) -> Condition:
    """`x is None`, `x is not None`; other comparisons show nothing."""
    [op], [right] = node.ops, node.comparators
    is_none = isinstance(right, ast.Constant) and right.value is None
    if not is_none or not isinstance(op, (ast.Is, ast.IsNot)):
        return Condition(truth(frame, expression(frame, node), node))
    value = expression(frame, node.left)
    names = frozenset([node.left.id]) if isinstance(node.left, ast.Name) else NOTHING
    type_ = type_of(value)
    if type_ is None or not isinstance(plain(type_), OptionalOf):
        return Condition((type_ == NONE) is isinstance(op, ast.Is))
    found = frame.emit_one("py::is_none", [frame.graph_value(value, node)], BOOL, node)
    if isinstance(op, ast.Is):
        return Condition(found, NOTHING, names)
    return Condition(negate(frame, found, node), names, NOTHING)


_CLASSES = {TENSOR: "Tensor", INT: int, FLOAT: float, BOOL: bool, STR: str, NONE: type(None)}


def _type_test(frame: Frame, node: ast.Call) -> Condition:
    """isinstance, which is known unless the value may be None."""
    function = expression(frame, node.func)
    if not isinstance(function, Object) or function.object is not isinstance:
        return Condition(truth(frame, expression(frame, node), node))
    value, wanted = expression(frame, node.args[0]), expression(frame, node.args[1])
    classes = wanted.items if isinstance(wanted, Items) else (wanted,)
    names = [
        getattr(each.object, "__name__", "") if isinstance(each, Object) else "" for each in classes
    ]
    type_ = type_of(value)
    if isinstance(value, ModuleValue) or type_ is None:
        module = value.module if isinstance(value, ModuleValue) else None
        kinds = tuple(each.object for each in classes if isinstance(each, Object))
        return Condition(isinstance(module, kinds))
    type_ = plain(type_)

    def has(part: object) -> bool:
        if isinstance(part, ListOf):
            return "list" in names or "List" in names
        if part == BOOL and "int" in names:
            return True
        if part == NONE:
            return "NoneType" in names
        return str(part) in names

    if isinstance(value, Items):
        return Condition(("list" if value.is_list else "tuple") in names)
    if isinstance(type_, OptionalOf):
        if has(type_.part) == has(NONE):
            return Condition(has(NONE))
        shown = frozenset([node.args[0].id]) if isinstance(node.args[0], ast.Name) else NOTHING
        found = frame.emit_one("py::is_none", [frame.graph_value(value, node)], BOOL, node)
        if has(NONE):
            return Condition(found, NOTHING, shown)
        return Condition(negate(frame, found, node), shown, NOTHING)
    return Condition(has(type_))
