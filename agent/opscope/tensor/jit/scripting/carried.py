"""Find the variables that a prim::Loop carries from one iteration to the next.

A loop carries the variables that its body assigns and that have a value before it. To find their
types, the body is scripted until they no longer change: `best = None` becomes Optional[Tensor].
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from opscope.tensor.jit.scripting.branches import choose
from opscope.tensor.jit.scripting.convert import convert
from opscope.tensor.jit.scripting.frame import Frame
from opscope.tensor.jit.scripting.graph import Block, GraphValue
from opscope.tensor.jit.scripting.sequence import (
    Step,
    any_flag,
    clear_flags,
    flag,
    know_returned,
    run_steps,
)
from opscope.tensor.jit.scripting.types import INT, OptionalOf, Type, join, plain
from opscope.tensor.jit.scripting.values import Constant, Value, describe, type_of
from opscope.tensor.jit.scripting.variables import (
    BROKEN,
    RESULT,
    RETURNED,
    Bound,
    Unbound,
    Variables,
)

_OWN_NAMES = (ast.FunctionDef, ast.ListComp, ast.GeneratorExp)


def assigned_names(statements: Sequence[ast.stmt]) -> list[str]:
    """The variables that statements assign, in order; those of the result if they return."""
    names: dict[str, None] = {}

    def visit(node: ast.AST) -> None:
        if isinstance(node, _OWN_NAMES):
            return
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names[node.id] = None
        if isinstance(node, ast.Return):
            names.update({RETURNED: None, RESULT: None})
        for child in ast.iter_child_nodes(node):
            visit(child)

    for each in statements:
        visit(each)
    return list(names)


@dataclass
class _Pass:
    """One pass over the body: its block, and how the function stands at the end of a round."""

    block: Block
    variables: Variables
    is_broken: bool | GraphValue
    is_dead: bool


@dataclass
class Loop:
    """A loop that is being scripted."""

    frame: Frame
    at: ast.stmt
    count: GraphValue
    """The most rounds."""
    starts: GraphValue
    """Whether there is a first round."""
    steps: Callable[[GraphValue], list[Step]]
    """Those of the round with that number."""
    goes_on: Callable[[], Value]
    """Whether there is another round; called in the block."""
    carried: dict[str, GraphValue] = field(default_factory=dict)
    """The values before the loop."""
    types: dict[str, Type] = field(default_factory=dict)
    is_endless: bool = False
    """Whether only a break or return ends it."""
    lost: dict[str, Unbound] = field(default_factory=dict)
    """Variables that no one type holds."""

    def write(self, names: Sequence[str]) -> None:
        """Script the loop, which assigns these variables; the frame goes on after it."""
        self._enter(names)
        done = self._pass()
        while not self._is_settled(done):
            done = self._pass()
        self._leave(done, names)

    def _enter(self, names: Sequence[str]) -> None:
        frame = self.frame
        for name in names:
            variable = frame.variables.get(name)
            if not isinstance(variable, Bound):
                continue
            value, declared = frame.known(variable, self.at), variable.declared
            if isinstance(declared, OptionalOf) and variable.excludes_none:
                declared = declared.part  # Unless the body makes it None.
            if type_of(value) is None:
                self.lost[name] = Unbound(
                    f"is {describe(value)} before the loop at line {frame.source.line(self.at)}, "
                    "which assigns it",
                    "another name in the loop",
                )
                continue
            made = declared and convert(frame, value, declared, self.at)
            self.carried[name] = made or frame.graph_value(value, self.at)
            self.types[name] = plain(declared or self.carried[name].type)

    def _pass(self) -> _Pass:
        frame = self.frame
        before, was_dead, was_leaving = frame.variables, frame.is_dead, frame.is_leaving
        frame.variables = {**before, **self.lost}
        block = Block(frame.block)
        with frame.inside(block):
            place = block.take(INT)
            for name, type_ in self.types.items():
                known = before[name]
                assert isinstance(known, Bound)
                taken = frame.receive(block.take(type_), self.at)
                frame.variables[name] = Bound(taken, known.line, known.declared)
            clear_flags(frame)
            frame.loops.append(self.at.lineno)
            run_steps(frame, self.steps(place))
            frame.loops.pop()
            again = self._again()
            block.outputs.append(frame.graph_value(again, self.at))
            is_broken = not frame.is_dead and flag(frame, BROKEN)
            done = _Pass(block, frame.variables, is_broken, frame.is_dead)
        frame.variables, frame.is_dead, frame.is_leaving = before, was_dead, was_leaving
        return done

    def _again(self) -> Value:
        """Whether there is another round."""
        stops = any_flag(self.frame, (RETURNED, BROKEN), self.at)
        if isinstance(stops, GraphValue):
            return choose(self.frame, stops, lambda: Constant(False), self._goes_on, self.at)
        return Constant(False) if stops else self._goes_on()

    def _goes_on(self) -> Value:
        outcome = self.goes_on()
        self.is_endless = outcome == Constant(True)
        return outcome

    def _is_settled(self, done: _Pass) -> bool:
        """Whether all types at the end of a round are those at its start; else corrects them."""
        settled = True
        returned = done.variables[RETURNED]
        never = isinstance(returned, Bound) and returned.value == Constant(False)
        if RETURNED in self.types and never and not done.is_dead:
            for name in (RETURNED, RESULT):  # No return can run after all.
                del self.types[name], self.carried[name]
            settled = False
        for name, type_ in list(self.types.items()):
            end = done.variables.get(name) if not done.is_dead else self.frame.variables[name]
            start = self.frame.variables[name]
            assert isinstance(start, Bound)
            if isinstance(end, Bound):
                found = type_of(end.value)
                if isinstance(found, OptionalOf) and end.excludes_none:
                    found = found.part
                joined = found and join(type_, found)
                settled = settled and joined == type_
                if joined:
                    self.types[name] = joined
                    continue
                end = Unbound(
                    f"has different types: {describe(start.value)} at line {start.line}, before "
                    f"the loop, and {describe(end.value)} at line {end.line}, in it",
                    "values of one type, or two names",
                )
            assert isinstance(end, Unbound)
            self.lost[name] = end
            del self.types[name], self.carried[name]
            settled = False
        return settled

    def _leave(self, done: _Pass, names: Sequence[str]) -> None:
        frame, at = self.frame, self.at
        if done.is_dead:
            done.block.outputs += done.block.inputs[1:]
        else:
            with frame.inside(done.block):
                for name, type_ in self.types.items():
                    end = done.variables[name]
                    assert isinstance(end, Bound)
                    is_none_excluded = not isinstance(type_, OptionalOf)
                    value = frame.known(end, at) if is_none_excluded else end.value
                    made = convert(frame, value, type_, at)
                    assert made is not None
                    done.block.outputs.append(made)
        inputs = [self.count, self.starts, *self.carried.values()]
        types = list(self.types.values())
        made_values = frame.emit("prim::Loop", inputs, types, at, blocks=[done.block])
        frame.variables = {**frame.variables, **self.lost}
        for name, value in zip(self.types, made_values, strict=True):
            known, end = frame.variables[name], done.variables[name]
            assert isinstance(known, Bound) and isinstance(end, Bound)
            frame.variables[name] = Bound(frame.receive(value, at), end.line, known.declared)
        for name in names:
            if name not in frame.variables:
                frame.variables[name] = Unbound(
                    f"has a value only within the loop at line {frame.source.line(at)}, which may "
                    "run no round",
                    f"{name} = ... before the loop",
                )
        if self.is_endless and done.is_broken is False:
            if RETURNED in self.types:
                know_returned(frame, at)
            else:
                frame.is_dead = True
