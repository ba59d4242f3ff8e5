"""Script a sequence of statements, some of which may return, break, continue or raise.

A graph has no jumps. A return, break or continue sets a flag. Where a flag depends on values, the
statements after it are in a prim::If. If one branch of an `if` always leaves, the other one has
them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import reduce
from typing import TypeAlias

from opscope.tensor.jit.scripting.branches import Branch, continue_branch, merge, run_branch
from opscope.tensor.jit.scripting.conditions import condition
from opscope.tensor.jit.scripting.dispatch import statement
from opscope.tensor.jit.scripting.frame import Frame
from opscope.tensor.jit.scripting.graph import GraphValue
from opscope.tensor.jit.scripting.types import BOOL, NONE, OptionalOf, Type, join, plain
from opscope.tensor.jit.scripting.values import Constant
from opscope.tensor.jit.scripting.variables import FLAGS, RESULT, RETURNED, Bound

Step: TypeAlias = ast.stmt | Callable[[], None]
"""A statement, or a function that emits several, such as a round of an unrolled loop."""


def flag(frame: Frame, name: str) -> bool | GraphValue:
    """Whether that statement has run: known, or a value."""
    variable = frame.variables[name]
    assert isinstance(variable, Bound)
    if isinstance(variable.value, GraphValue):
        return variable.value
    assert isinstance(variable.value, Constant)
    return bool(variable.value.value)


def set_flag(frame: Frame, name: str, value: bool) -> None:
    """Record it as known."""
    frame.variables[name] = Bound(Constant(value), 0)
    frame.is_leaving = frame.is_leaving or value


def clear_flags(frame: Frame, names: Sequence[str] = FLAGS) -> None:
    """Record that those have not run, or have no effect any more."""
    for name in names:
        set_flag(frame, name, False)
    frame.is_leaving = True in [flag(frame, name) for name in FLAGS]


def any_flag(frame: Frame, names: Sequence[str], at: ast.AST) -> bool | GraphValue:
    """Whether one of those has run."""
    if frame.is_dead:
        return True
    found = [flag(frame, name) for name in names]
    if True in [each for each in found if isinstance(each, bool)]:
        return True
    values = [each for each in found if isinstance(each, GraphValue)]
    if not values:
        return False
    return reduce(lambda one, other: frame.emit_one("py::or", [one, other], BOOL, at), values)


def result_type(frame: Frame) -> Type:
    """The type of all returns so far."""
    found: Type = NONE if not frame.results else frame.results[0][0]
    for type_, _ in frame.results[1:]:
        joined = join(found, type_)
        assert joined is not None
        found = joined
    return plain(found)


def know_returned(frame: Frame, at: ast.AST) -> None:
    """Where a return has certainly run, its result is there."""
    set_flag(frame, RETURNED, True)
    variable = frame.variables[RESULT]
    if not isinstance(variable, Bound) or not isinstance(variable.value, GraphValue):
        return
    type_ = plain(variable.value.type)
    if isinstance(type_, OptionalOf) and not isinstance(result_type(frame), OptionalOf):
        result = frame.emit_one("prim::Unwrap", [variable.value], type_.part, at)
        frame.variables[RESULT] = Bound(frame.receive(result, at), variable.line)


def run_steps(frame: Frame, steps: Sequence[Step]) -> None:
    """Script statements, each unless one before has left."""
    for place, step in enumerate(steps):
        rest = steps[place + 1 :]
        at = step if isinstance(step, ast.AST) else frame.source.tree
        if isinstance(step, ast.If):
            if _if(frame, step, rest):
                return
        elif isinstance(step, ast.stmt):
            statement(frame, step)
        else:
            assert not isinstance(step, ast.AST)
            step()
        if not rest or frame.is_dead or frame.is_leaving:
            return
        left = any_flag(frame, FLAGS, at)
        if isinstance(left, GraphValue):
            _run_unless(frame, left, rest, at)
        if left is not False:
            return


def _run_unless(frame: Frame, left: GraphValue, rest: Sequence[Step], at: ast.AST) -> None:
    """The other statements, where none of the flags is set."""
    others = [name for name in FLAGS[1:] if flag(frame, name) is not False]

    def know_left() -> None:
        if not others:
            know_returned(frame, at)

    def go_on() -> None:
        clear_flags(frame)
        frame.variables[RESULT] = Bound(Constant(None), 0)
        run_steps(frame, rest)

    last = next((each for each in reversed(rest) if isinstance(each, ast.stmt)), at)
    merge(frame, left, run_branch(frame, know_left), run_branch(frame, go_on), last)


def _if(frame: Frame, node: ast.If, rest: Sequence[Step]) -> bool:
    """Script an `if`; whether the statements after it are in one of its branches."""
    test = condition(frame, node.test)
    if not isinstance(test.value, GraphValue):
        frame.exclude_none(test.if_true if test.value else test.if_false)
        run_steps(frame, node.body if test.value else node.orelse)
        return False

    def branch(names: frozenset[str], body: list[ast.stmt]) -> Branch:
        def work() -> None:
            frame.exclude_none(names)
            run_steps(frame, body)

        return run_branch(frame, work)

    then = branch(test.if_true, node.body)
    other = branch(test.if_false, node.orelse)
    stays = [each for each in (then, other) if each.has_stayed]
    left = [each for each in (then, other) if each.has_left and not each.is_dead]
    into_branch = bool(rest) and len(stays) == len(left) == 1
    if into_branch:
        continue_branch(frame, stays[0], lambda: run_steps(frame, rest))
    merge(frame, test.value, then, other, node)
    return into_branch
