"""Tests: what is true, and what a test shows about variables."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from opscope.tensor.jit.scripting.branches import choose, merge, run_branch, same
from opscope.tensor.jit.scripting.convert import convert
from opscope.tensor.jit.scripting.dispatch import expression, scripts
from opscope.tensor.jit.scripting.frame import Bound, Frame, Unbound
from opscope.tensor.jit.scripting.graph import GraphValue
from opscope.tensor.jit.scripting.numbers import (
    common_number,
    compute,
    is_number,
    same_lists,
    unary,
)
from opscope.tensor.jit.scripting.types import (
    BOOL,
    DTYPE,
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
    Value,
    describe,
    type_of,
)

NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Condition:
    """A test's outcome, and which variables are not None if it is true, and if it is false."""

    value: bool | GraphValue
    if_true: frozenset[str] = NOTHING
    if_false: frozenset[str] = NOTHING

    def as_value(self) -> Value:
        """The outcome as a value."""
        return self.value if isinstance(self.value, GraphValue) else Constant(self.value)


def truth(frame: Frame, value: Value, at: ast.AST) -> bool | GraphValue:
    """Whether Python takes the value for true."""
    if isinstance(value, Constant):
        return bool(value.value)
    if isinstance(value, Items):
        return bool(value.items)
    if isinstance(value, ModuleValue):
        return True
    type_ = type_of(value)
    if type_ is None:
        frame.fail(at, f"whether {describe(value)} is true is unknown", "a comparison")
    type_ = plain(type_)
    made = frame.graph_value(value, at)
    if type_ == BOOL:
        return made
    if type_ in (TENSOR, INT, FLOAT):
        return frame.emit_one("py::bool", [made], BOOL, at)
    if isinstance(type_, ListOf) or type_ == STR:
        length = frame.emit_one("py::len", [made], INT, at)
        return frame.emit_one("py::bool", [length], BOOL, at)
    if type_ == OptionalOf(DTYPE):
        return negate(frame, frame.emit_one("py::is_none", [made], BOOL, at), at)
    frame.fail(at, f"whether {type_} is true is unknown", f"{ast.unparse(at)} is not None")


def negate(frame: Frame, value: bool | GraphValue, at: ast.AST) -> GraphValue | bool:
    """not."""
    if not isinstance(value, GraphValue):
        return not value
    return frame.emit_one("py::not", [value], BOOL, at)


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
        rest = _all_of(frame, is_and, nodes[1:], at)
        return rest
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


# ---- comparisons --------------------------------------------------------------------------------

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
        remedy = ""
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
        frame.fail(at, f"there is no in of {describe(item)} and {describe(where)}")
    return frame.emit_one("py::contains", [frame.graph_value(where, at), made], BOOL, at)


def _either(frame: Frame, one: Value, other: bool | GraphValue, at: ast.AST) -> Value:
    if isinstance(one, Constant):
        return one if one.value else Condition(other).as_value()
    if not isinstance(other, GraphValue):
        return Constant(True) if other else one
    assert isinstance(one, GraphValue)
    return frame.emit_one("py::or", [one, other], BOOL, at)


# ---- expressions --------------------------------------------------------------------------------


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


@scripts(ast.UnaryOp)
def _unary(frame: Frame, node: ast.UnaryOp) -> Value:
    if isinstance(node.op, ast.Not):
        return condition(frame, node).as_value()
    return unary(frame, node.op, expression(frame, node.operand), node)


@scripts(ast.BoolOp)
def _bool_op(frame: Frame, node: ast.BoolOp) -> Value:
    return _operand(frame, isinstance(node.op, ast.And), node.values, node)


def _operand(frame: Frame, is_and: bool, nodes: list[ast.expr], at: ast.AST) -> Value:
    """The operand that `and` or `or` gives."""
    if len(nodes) == 1:
        return expression(frame, nodes[0])
    if isinstance(nodes[0], (ast.Compare, ast.Call, ast.UnaryOp)):
        first = condition_value(frame, nodes[0])
    else:
        first = Condition(False), expression(frame, nodes[0])
    test, value = first
    outcome = truth(frame, value, nodes[0])
    if not isinstance(outcome, GraphValue):
        return _operand(frame, is_and, nodes[1:], at) if outcome is is_and else value
    shown = test.if_true if is_and else test.if_false

    def rest() -> Value:
        frame.exclude_none(shown)
        return _operand(frame, is_and, nodes[1:], at)

    if is_and:
        return choose(frame, outcome, rest, lambda: value, at)
    return choose(frame, outcome, lambda: value, rest, at)


def condition_value(frame: Frame, node: ast.expr) -> tuple[Condition, Value]:
    """A test whose value is a bool, as both; another expression shows nothing."""
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
        found = condition(frame, node)
        return found, found.as_value()
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        found = condition(frame, node)
        return found, found.as_value()
    return Condition(False), expression(frame, node)


@scripts(ast.IfExp)
def _if_expression(frame: Frame, node: ast.IfExp) -> Value:
    test = condition(frame, node.test)
    if not isinstance(test.value, GraphValue):
        return expression(frame, node.body if test.value else node.orelse)

    def then() -> Value:
        frame.exclude_none(test.if_true)
        return expression(frame, node.body)

    def other() -> Value:
        frame.exclude_none(test.if_false)
        return expression(frame, node.orelse)

    return choose(frame, test.value, then, other, node)


__all__ = ["Condition", "Unbound", "condition", "negate", "truth"]
