"""Script `and`, `or`, `not` and conditional expressions whose value is used."""

from __future__ import annotations

import ast

from opscope.tensor.jit.scripting.branches import choose
from opscope.tensor.jit.scripting.conditions import condition
from opscope.tensor.jit.scripting.dispatch import expression, scripts
from opscope.tensor.jit.scripting.frame import Frame
from opscope.tensor.jit.scripting.graph import GraphValue
from opscope.tensor.jit.scripting.numbers import (
    unary,
)
from opscope.tensor.jit.scripting.truth import Condition, truth
from opscope.tensor.jit.scripting.values import (
    Value,
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
