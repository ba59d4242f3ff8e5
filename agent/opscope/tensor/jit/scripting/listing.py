"""Script comprehensions, and lists made of iterables."""

from __future__ import annotations

import ast
from collections.abc import Callable

from opscope.tensor.jit.scripting.assign import assign_target
from opscope.tensor.jit.scripting.branches import merge, run_branch
from opscope.tensor.jit.scripting.conditions import condition
from opscope.tensor.jit.scripting.convert import convert, need
from opscope.tensor.jit.scripting.dispatch import expression, scripts
from opscope.tensor.jit.scripting.frame import Frame
from opscope.tensor.jit.scripting.graph import Block, GraphValue
from opscope.tensor.jit.scripting.iteration import loopable
from opscope.tensor.jit.scripting.types import BOOL, FLOAT, INT, ListOf, Unknown, plain
from opscope.tensor.jit.scripting.values import Items, Loopable, Value, type_of


def new_list(frame: Frame, items: tuple[Value, ...], at: ast.AST) -> GraphValue:
    """A list of these items; what an empty one contains is found later."""
    if not items:
        return frame.emit_one("prim::ListConstruct", [], ListOf(Unknown()), at)
    types = {type_of(each) for each in items}
    first = type_of(items[0])
    if types == {INT, FLOAT}:
        frame.fail(
            at, "a list of ints and floats cannot be scripted", "floats only, such as 1.0 for 1"
        )
    if first is not None:
        made = convert(frame, Items(items), ListOf(plain(first)), at)
        if made is not None:
            return made
    return frame.list_of([frame.graph_value(each, at) for each in items], at)


def to_list(frame: Frame, value: Value, at: ast.AST) -> GraphValue:
    """The list itself, or a new list of what a loop over the value meets."""
    found = type_of(value)
    if isinstance(value, GraphValue) and isinstance(found and plain(found), ListOf):
        return value
    rounds = loopable(frame, value, at)
    if isinstance(rounds, Items):
        return new_list(frame, rounds.items, at)
    made = new_list(frame, (), at)
    _loop(frame, rounds, lambda item: _append(frame, made, item, at), at)
    return made


def _append(frame: Frame, listed: GraphValue, item: Value, at: ast.AST) -> None:
    type_ = plain(listed.type)
    assert isinstance(type_, ListOf)
    frame.emit(
        "py::append", [listed, need(frame, item, type_.part, at, "an item of the list")], [], at
    )


def _loop(frame: Frame, rounds: Loopable, each: Callable[[Value], None], at: ast.AST) -> None:
    """A loop that assigns no variable of the function."""
    count = frame.graph_value(rounds.count(), at)
    true = frame.constant(True, BOOL, at)
    block = Block(frame.block)
    place = block.take(INT)
    with frame.inside(block):
        each(rounds.item(place))
        block.outputs.append(true)
    frame.emit("prim::Loop", [count, true], [], at, blocks=[block])


@scripts(ast.ListComp, ast.GeneratorExp)
def _comprehension(frame: Frame, node: ast.ListComp | ast.GeneratorExp) -> Value:
    if len(node.generators) > 1:
        frame.fail(node, "only one for in a comprehension can be scripted", "loops and append")
    [generator] = node.generators
    rounds = loopable(frame, expression(frame, generator.iter), generator.iter)
    before = frame.variables
    frame.variables = dict(before)
    frame.loops.append(node.lineno)
    made = _collect(frame, node, rounds)
    frame.loops.pop()
    frame.variables = before
    return made


def _collect(
    frame: Frame, node: ast.ListComp | ast.GeneratorExp, rounds: Items | Loopable
) -> Value:
    [generator] = node.generators
    if isinstance(rounds, Items) and not generator.ifs:
        items = []
        for item in rounds.items:
            assign_target(frame, generator.target, item)
            items.append(expression(frame, node.elt))
        if isinstance(node, ast.GeneratorExp):
            return Items(tuple(items))
        return new_list(frame, tuple(items), node)
    made = new_list(frame, (), node)

    def one(item: Value) -> None:
        assign_target(frame, generator.target, item)
        _append_if(frame, made, node, generator.ifs)

    if isinstance(rounds, Items):
        for item in rounds.items:
            one(item)
    else:
        _loop(frame, rounds, one, node)
    return made


def _append_if(
    frame: Frame,
    made: GraphValue,
    node: ast.ListComp | ast.GeneratorExp,
    tests: list[ast.expr],
) -> None:
    """Append the item if all tests hold."""
    if not tests:
        _append(frame, made, expression(frame, node.elt), node)
        return
    test = condition(frame, tests[0])

    def then() -> None:
        frame.exclude_none(test.if_true)
        _append_if(frame, made, node, tests[1:])

    if isinstance(test.value, GraphValue):
        merge(frame, test.value, run_branch(frame, then), run_branch(frame, lambda: None), tests[0])
    elif test.value:
        then()
