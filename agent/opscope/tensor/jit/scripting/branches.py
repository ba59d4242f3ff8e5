"""Script `if` as prim::If: both branches, and the variables that they leave."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from opscope.tensor.jit.scripting.convert import convert
from opscope.tensor.jit.scripting.frame import Frame
from opscope.tensor.jit.scripting.graph import Block, GraphValue
from opscope.tensor.jit.scripting.types import NONE, Type, join, optional
from opscope.tensor.jit.scripting.values import (
    AttributeTensor,
    Constant,
    FunctionValue,
    Items,
    ModuleValue,
    Object,
    Value,
    describe,
    type_of,
)
from opscope.tensor.jit.scripting.variables import FLAGS, Bound, Unbound, Variables


@dataclass
class Branch:
    """A block, and how the function stands at its end."""

    block: Block
    variables: Variables
    is_dead: bool = False
    is_leaving: bool = False

    @property
    def has_left(self) -> bool:
        """Whether a return, break, continue or raise has certainly run."""
        return self.is_dead or self.is_leaving

    @property
    def has_stayed(self) -> bool:
        """Whether certainly none of them has run."""
        return not self.is_dead and {self._flag(name) for name in FLAGS} == {False}

    def _flag(self, name: str) -> bool | None:
        """Whether it is set; None if that depends on values."""
        variable = self.variables[name]
        assert isinstance(variable, Bound)
        return bool(variable.value.value) if isinstance(variable.value, Constant) else None


def same(one: Value, other: Value) -> bool:
    """Whether both are known to be the same."""
    if one is other:
        return True
    if isinstance(one, Constant):
        return one.equals(other)
    if isinstance(one, AttributeTensor) and isinstance(other, AttributeTensor):
        return one.name == other.name
    if isinstance(one, ModuleValue) and isinstance(other, ModuleValue):
        return one.module is other.module
    if isinstance(one, FunctionValue) and isinstance(other, FunctionValue):
        return one.function is other.function and one.bound_to is other.bound_to
    return isinstance(one, Object) and isinstance(other, Object) and one.object is other.object


def run_branch(frame: Frame, work: Callable[[], None]) -> Branch:
    """What the work writes, in a block of its own; the frame is as before."""
    branch = Branch(Block(frame.block), dict(frame.variables))
    continue_branch(frame, branch, work)
    return branch


def continue_branch(frame: Frame, branch: Branch, work: Callable[[], None]) -> None:
    """More work at the end of a branch."""
    before = frame.variables, frame.is_dead, frame.is_leaving
    frame.variables, frame.is_dead = branch.variables, branch.is_dead
    frame.is_leaving = branch.is_leaving
    with frame.inside(branch.block):
        work()
    branch.variables, branch.is_dead = frame.variables, frame.is_dead
    branch.is_leaving = frame.is_leaving
    frame.variables, frame.is_dead, frame.is_leaving = before


@dataclass
class _Merge:
    """What two branches return, and what the prim::If produces of it."""

    frame: Frame
    then: Branch
    other: Branch
    at: ast.AST
    produced: list[GraphValue] = field(default_factory=list)

    def produce(self, one: GraphValue, other: GraphValue, type_: Type) -> GraphValue:
        self.then.block.outputs.append(one)
        self.other.block.outputs.append(other)
        self.produced.append(GraphValue(type_, self.frame.block))
        return self.produced[-1]

    def in_block(self, branch: Branch, value: Value, type_: Type) -> GraphValue:
        with self.frame.inside(branch.block):
            found = convert(self.frame, value, type_, self.at)
        assert found is not None
        return found

    def both(self, one: Value, other: Value) -> Value | None:
        """The value after both branches, if there is one."""
        if same(one, other):
            return one
        if isinstance(one, Items) and isinstance(other, Items) and one.is_like(other):
            merged = [self.both(*pair) for pair in zip(one.items, other.items, strict=True)]
            found = [item for item in merged if item is not None]
            if len(found) < len(merged):
                return None
            return Items(tuple(found), one.names, one.is_list)
        types = type_of(one), type_of(other)
        if types[0] is None or types[1] is None:
            return None
        joined = join(types[0], types[1])
        if joined is None:
            return None
        return self.produce(
            self.in_block(self.then, one, joined), self.in_block(self.other, other, joined), joined
        )

    def only(self, branch: Branch, value: Value) -> Value:
        """The value after a branch whose other has raised."""
        if isinstance(value, Items):
            items = tuple(self.only(branch, item) for item in value.items)
            return Items(items, value.names, value.is_list)
        if not isinstance(value, GraphValue) or self.frame.block.sees(value):
            return value
        dead = self.other if branch is self.then else self.then
        with self.frame.inside(dead.block):
            never = self.frame.never(value.type, self.at)
        pair = (value, never) if branch is self.then else (never, value)
        return self.produce(*pair, value.type)

    def unless_left(self, branch: Branch, variable: Bound) -> Bound | Unbound:
        """A variable that only this branch assigns, where the other one has left: None there."""
        type_ = type_of(variable.value)
        if type_ is None:
            return variable
        value = self.in_block(branch, variable.value, type_)
        dead = self.other if branch is self.then else self.then
        with self.frame.inside(dead.block):
            none = self.frame.constant(None, NONE, self.at)
        pair = (value, none) if branch is self.then else (none, value)
        made = self.produce(*pair, optional(type_))
        return Bound(made, variable.line, variable.declared, variable.excludes_none)

    def variable(self, name: str) -> Bound | Unbound:
        one, other = self.then.variables.get(name), self.other.variables.get(name)
        for branch, there in ((self.then, one), (self.other, other)):
            left = self.other if branch is self.then else self.then
            is_alone = isinstance(there, Bound) and not isinstance(left.variables.get(name), Bound)
            if is_alone and left.has_left and not branch.has_left:
                assert isinstance(there, Bound)
                return self.unless_left(branch, there)
        for each in (one, other):
            if isinstance(each, Unbound):
                return each
        if one is None or other is None:
            there = one or other
            assert isinstance(there, Bound)
            return Unbound(
                f"has a value on one branch only: line {there.line} assigns it, and the other "
                f"branch of the if at line {self.frame.source.line(self.at)} does not",
                f"{name} = ... on both branches, or before the if",
            )
        assert isinstance(one, Bound) and isinstance(other, Bound)
        value = self.both(one.value, other.value)
        if value is None:
            return Unbound(
                f"has different types on two branches: {describe(one.value)} at line {one.line}, "
                f"{describe(other.value)} at line {other.line}",
                "values of one type on both, or two names",
            )
        declared = one.declared or other.declared
        line = max(one.line, other.line)
        return Bound(value, line, declared, one.excludes_none and other.excludes_none)

    def all_variables(self) -> Variables:
        if self.then.is_dead or self.other.is_dead:
            alive = self.other if self.then.is_dead else self.then
            if alive.is_dead:
                return alive.variables
            return {
                name: replace(each, value=self.only(alive, each.value))
                if isinstance(each, Bound)
                else each
                for name, each in alive.variables.items()
                if self.frame.is_read_after(name, self.at)
            }
        names = dict.fromkeys([*self.then.variables, *self.other.variables])
        return {
            name: self.variable(name) for name in names if self.frame.is_read_after(name, self.at)
        }


def merge(frame: Frame, condition: GraphValue, then: Branch, other: Branch, at: ast.AST) -> None:
    """Write the prim::If of two branches; the frame goes on after it."""
    merging = _Merge(frame, then, other, at)
    frame.variables = merging.all_variables()
    frame.is_dead = then.is_dead and other.is_dead
    frame.is_leaving = then.has_left and other.has_left and not frame.is_dead
    blocks = [then.block, other.block]
    frame.append("prim::If", [condition], merging.produced, at, blocks=blocks)
    for name, each in frame.variables.items():
        if isinstance(each, Bound) and each.value in merging.produced:
            assert isinstance(each.value, GraphValue)
            received = frame.receive(each.value, at)
            frame.variables[name] = Bound(received, each.line, each.declared, each.is_not_none)


def choose(
    frame: Frame,
    condition: GraphValue,
    then: Callable[[], Value],
    other: Callable[[], Value],
    at: ast.AST,
) -> Value:
    """The value of an expression with two branches, neither of which assigns a variable."""

    def assign(work: Callable[[], Value]) -> Callable[[], None]:
        return lambda: frame.assign("<value>", work(), at)

    before = frame.variables
    merge(frame, condition, run_branch(frame, assign(then)), run_branch(frame, assign(other)), at)
    chosen = frame.variables["<value>"]
    frame.variables = before
    if isinstance(chosen, Unbound):
        frame.fail(at, f"the value {chosen.reason}", "values of one type")
    return chosen.value
