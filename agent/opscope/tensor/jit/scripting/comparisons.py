"""Script comparisons of numbers, strings, lists and tensors; `is` and `in`; chains."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from opscope.tensor.jit.scripting.branches import choose, same
from opscope.tensor.jit.scripting.convert import convert
from opscope.tensor.jit.scripting.dispatch import expression, scripts
from opscope.tensor.jit.scripting.frame import Frame
from opscope.tensor.jit.scripting.graph import GraphValue
from opscope.tensor.jit.scripting.numbers import (
    common_number,
    compute,
    is_number,
    same_lists,
)
from opscope.tensor.jit.scripting.truth import Condition, negate, truth
from opscope.tensor.jit.scripting.types import (
    BOOL,
    DTYPE,
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
    Value,
    describe,
    type_of,
)

_COMPARISONS: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Eq: ("eq", operator.eq),
    ast.NotEq: ("ne", operator.ne),
    ast.Lt: ("lt", operator.lt),
    ast.LtE: ("le", operator.le),
    ast.Gt: ("gt", operator.gt),
    ast.GtE: ("ge", operator.ge),
}


def compare(frame: Frame, op: ast.cmpop, left: Value, right: Value, at: ast.AST) -> Value:
    """What one comparison gives."""
    if isinstance(op, (ast.In, ast.NotIn)):
        found = _contains(frame, left, right, at)
        if isinstance(op, ast.In):
            return found
        return Condition(negate(frame, truth(frame, found, at), at)).as_value()
    if isinstance(op, (ast.Is, ast.IsNot)):
        return _identity(frame, op, left, right, at)
    kind, function = _COMPARISONS[type(op)]
    known = compute(function, left, right)
    if known is not None:
        return known
    types = [type_of(left), type_of(right)]
    inputs: list[GraphValue] | None = None
    result = BOOL
    if TENSOR in types and all(
        each == TENSOR or is_number(v) for each, v in zip(types, (left, right), strict=True)
    ):
        inputs = [frame.graph_value(left, at), frame.graph_value(right, at)]
        return frame.emit_one(f"core::{kind}", inputs, TENSOR, at)
    if is_number(left) and is_number(right):
        if types == [BOOL, BOOL]:
            inputs = [frame.graph_value(left, at), frame.graph_value(right, at)]
        else:
            _, inputs = common_number(frame, [left, right], at)
    elif types == [STR, STR] or (types == [DTYPE, DTYPE] and kind in ("eq", "ne")):
        if isinstance(left, Constant) and isinstance(right, Constant):
            return Constant(function(left.value, right.value))
        inputs = [frame.graph_value(left, at), frame.graph_value(right, at)]
    elif kind in ("eq", "ne"):
        if isinstance(left, Items) and isinstance(right, Items):
            return _equal_items(frame, left, right, kind, at)
        inputs = same_lists(frame, left, right, at)
    if inputs is None:
        sign = ast.unparse(ast.Compare(ast.Name("a"), [op], [ast.Name("b")])).split()[1]
        remedy = "values of one type, such as int(...), float(...) or str(...) of one of them"
        if any(isinstance(each, OptionalOf) for each in types):
            remedy = "a test before it that excludes None: assert x is not None"
        frame.fail(at, f"there is no {sign} of {describe(left)} and {describe(right)}", remedy)
    return frame.emit_one(f"py::{kind}", inputs, result, at)


def _equal_items(frame: Frame, left: Items, right: Items, kind: str, at: ast.AST) -> Value:
    if len(left.items) != len(right.items):
        return Constant(kind == "ne")
    outcome: Value = Constant(True)
    for pair in zip(left.items, right.items, strict=True):
        item = truth(frame, compare(frame, ast.Eq(), *pair, at), at)
        outcome = _both(frame, outcome, item, at)
    if kind == "eq":
        return outcome
    return Condition(negate(frame, truth(frame, outcome, at), at)).as_value()


def _both(frame: Frame, one: Value, other: bool | GraphValue, at: ast.AST) -> Value:
    if isinstance(one, Constant):
        return Condition(other if one.value else False).as_value()
    if not isinstance(other, GraphValue):
        return one if other else Constant(False)
    assert isinstance(one, GraphValue)
    return frame.emit_one("py::and", [one, other], BOOL, at)


def _identity(frame: Frame, op: ast.cmpop, left: Value, right: Value, at: ast.AST) -> Value:
    is_is = isinstance(op, ast.Is)
    types = [type_of(left), type_of(right)]
    if types == [DTYPE, DTYPE]:
        return compare(frame, ast.Eq() if is_is else ast.NotEq(), left, right, at)
    if types == [TENSOR, TENSOR]:
        both = [frame.graph_value(left, at), frame.graph_value(right, at)]
        found: bool | GraphValue = frame.emit_one("py::is", both, BOOL, at)
        return Condition(found if is_is else negate(frame, found, at)).as_value()
    if None in types or NONE in types or types == [BOOL, BOOL]:
        if same(left, right):
            return Constant(is_is)
        if not any(isinstance(each, (GraphValue)) for each in (left, right)):
            return Constant(not is_is)
    frame.fail(at, f"is compares with None, not {describe(left)} with {describe(right)}", "==")


def _contains(frame: Frame, item: Value, where: Value, at: ast.AST) -> Value:
    known = compute(lambda a, b: a in b, item, where)
    if known is not None:
        return known
    if isinstance(where, Items):
        outcome: Value = Constant(False)
        for each in where.items:
            equal = truth(frame, compare(frame, ast.Eq(), item, each, at), at)
            outcome = _either(frame, outcome, equal, at)
        return outcome
    found = type_of(where)
    if found is not None:
        found = plain(found)
    made = None
    if isinstance(found, ListOf):
        made = convert(frame, item, found.part, at)
    elif found == STR and type_of(item) == STR:
        made = frame.graph_value(item, at)
    if made is None:
        frame.fail(
            at,
            f"there is no in of {describe(item)} and {describe(where)}",
            "an item of the list's type, or a str in a str",
        )
    return frame.emit_one("py::contains", [frame.graph_value(where, at), made], BOOL, at)


def _either(frame: Frame, one: Value, other: bool | GraphValue, at: ast.AST) -> Value:
    if isinstance(one, Constant):
        return one if one.value else Condition(other).as_value()
    if not isinstance(other, GraphValue):
        return Constant(True) if other else one
    assert isinstance(one, GraphValue)
    return frame.emit_one("py::or", [one, other], BOOL, at)


@scripts(ast.Compare)
def _compare(frame: Frame, node: ast.Compare) -> Value:
    return _chain(frame, expression(frame, node.left), node.ops, node.comparators, node)


def _chain(
    frame: Frame, left: Value, ops: list[ast.cmpop], nodes: list[ast.expr], at: ast.AST
) -> Value:
    right = expression(frame, nodes[0])
    first = compare(frame, ops[0], left, right, at)
    if len(ops) == 1:
        return first
    outcome = truth(frame, first, at)
    if not isinstance(outcome, GraphValue):
        return _chain(frame, right, ops[1:], nodes[1:], at) if outcome else first
    return choose(
        frame,
        outcome,
        lambda: _chain(frame, right, ops[1:], nodes[1:], at),
        lambda: first if type_of(first) != BOOL else Constant(False),
        at,
    )
