"""Script `while` and `for`: as prim::Loop, or unrolled if the items are known."""

from __future__ import annotations

import ast
from collections.abc import Callable

from opscope.tensor.jit.scripting.assign import assign_target
from opscope.tensor.jit.scripting.carried import Loop, assigned_names
from opscope.tensor.jit.scripting.conditions import condition
from opscope.tensor.jit.scripting.dispatch import expression, scripts
from opscope.tensor.jit.scripting.frame import Frame
from opscope.tensor.jit.scripting.graph import Block, GraphValue
from opscope.tensor.jit.scripting.iteration import loopable
from opscope.tensor.jit.scripting.sequence import Step, clear_flags, run_steps
from opscope.tensor.jit.scripting.types import BOOL, INT
from opscope.tensor.jit.scripting.values import Items, Value
from opscope.tensor.jit.scripting.variables import BROKEN, CONTINUED

_MOST_ROUNDS = 2**63 - 1
_CHANGE_LENGTH = ("append", "clear", "extend", "insert", "pop")


@scripts(ast.While)
def _while(frame: Frame, node: ast.While) -> None:
    _refuse_else(frame, node)
    first = condition(frame, node.test)
    if first.value is False:
        return

    def steps(place: GraphValue) -> list[Step]:
        # What the test shows of the variables as the loop carries them; its nodes are dropped.
        with frame.inside(Block(frame.block)):
            shown = condition(frame, node.test).if_true
        frame.exclude_none(shown)
        return list(node.body)

    Loop(
        frame,
        node,
        count=frame.constant(_MOST_ROUNDS, INT, node),
        starts=frame.graph_value(first.as_value(), node),
        steps=steps,
        goes_on=lambda: condition(frame, node.test).as_value(),
    ).write(assigned_names(node.body))


@scripts(ast.For)
def _for(frame: Frame, node: ast.For) -> None:
    _refuse_else(frame, node)
    rounds = loopable(frame, expression(frame, node.iter), node.iter)
    if isinstance(rounds, Items):
        _unroll(frame, node, rounds)
        return
    _refuse_other_length(frame, node)
    true = frame.constant(True, BOOL, node)

    def steps(place: GraphValue) -> list[Step]:
        return [lambda: assign_target(frame, node.target, rounds.item(place)), *node.body]

    Loop(
        frame,
        node,
        count=frame.graph_value(rounds.count(), node.iter),
        starts=true,
        steps=steps,
        goes_on=lambda: true,
    ).write(assigned_names([node]))


def _unroll(frame: Frame, node: ast.For, rounds: Items) -> None:
    def one(item: Value) -> Callable[[], None]:
        def work() -> None:
            assign_target(frame, node.target, item)
            run_steps(frame, node.body)
            clear_flags(frame, [CONTINUED])

        return work

    frame.loops.append(node.lineno)
    run_steps(frame, [one(item) for item in rounds.items])
    frame.loops.pop()
    # No flag is set before the loop; what comes after one that is set does not run.
    clear_flags(frame, [BROKEN, CONTINUED])


def _refuse_else(frame: Frame, node: ast.While | ast.For) -> None:
    if node.orelse:
        frame.fail(
            node.orelse[0],
            "the else of a loop cannot be scripted",
            "a variable that is set before break, and an if after the loop",
        )


def _refuse_other_length(frame: Frame, node: ast.For) -> None:
    """The number of rounds is that at the start, so the list has to keep its length."""
    name = node.iter.id if isinstance(node.iter, ast.Name) else None
    for inner in ast.walk(node):
        if (
            isinstance(inner, ast.Attribute)
            and isinstance(inner.value, ast.Name)
            and inner.value.id == name
            and inner.attr in _CHANGE_LENGTH
        ):
            frame.fail(
                inner,
                f"the loop goes over {name}, whose length must not change meanwhile",
                f"for ... in {name}.copy()",
            )
