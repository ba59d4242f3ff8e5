"""The state of scripting one function: its variables, its current block and its nodes."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from opscope._tensor import dtype
from opscope.tensor.jit.scripting.context import Context
from opscope.tensor.jit.scripting.graph import Block, GraphValue, Node, constant_text
from opscope.tensor.jit.scripting.source import Source
from opscope.tensor.jit.scripting.types import (
    NONE,
    STR,
    TENSOR,
    ListOf,
    OptionalOf,
    TupleOf,
    Type,
    optional,
    plain,
)
from opscope.tensor.jit.scripting.values import (
    AttributeTensor,
    Constant,
    Items,
    Value,
    describe,
    type_of,
)
from opscope.tensor.jit.scripting.variables import Bound, Unbound, Variables

DEPTH_LIMIT = 60
"""Of blocks in blocks; a graph has 64 levels."""


@dataclass
class Frame:
    """The state of scripting one function."""

    context: Context
    function: Callable[..., Any]
    source: Source
    scope: str
    """The path of the module whose method it is."""
    owner: type | None = None
    """The class whose method it is."""
    body: Block = field(default_factory=lambda: Block(None))
    variables: Variables = field(default_factory=dict)
    results: list[tuple[Type, int]] = field(default_factory=list)
    """The type and line of each return so far."""
    is_dead: bool = False
    """Whether what comes next never runs, because an exception was raised."""
    is_leaving: bool = False
    """Whether a return, break or continue has certainly run."""
    loops: list[int] = field(default_factory=list)
    """First lines of the loops around what is being scripted."""

    def __post_init__(self) -> None:
        self.block = self.body
        self._constants: dict[tuple[str, str], GraphValue] = {}
        self._prologue = 0
        self._last_reads: dict[str, int] = {}
        for node in ast.walk(self.source.tree):
            if isinstance(node, ast.Name):
                line = max(node.lineno, self._last_reads.get(node.id, 0))
                self._last_reads[node.id] = line
        closure = self.function.__closure__ or ()
        names = self.function.__code__.co_freevars
        self._closure = dict(zip(names, closure, strict=True))

    # ---- errors -------------------------------------------------------------------------------

    def fail(self, node: ast.AST, problem: str, remedy: str) -> NoReturn:
        """Raise a ScriptError at the place of the node."""
        self.source.fail(node, problem, remedy)

    # ---- nodes --------------------------------------------------------------------------------

    def emit(
        self,
        kind: str,
        inputs: Sequence[GraphValue],
        outputs: Sequence[Type],
        at: ast.AST,
        attributes: str = "",
        blocks: Sequence[Block] = (),
    ) -> list[GraphValue]:
        """Append a node to the block."""
        made = [GraphValue(type_, self.block) for type_ in outputs]
        return self.append(kind, inputs, made, at, attributes, blocks)

    def append(
        self,
        kind: str,
        inputs: Sequence[GraphValue],
        made: list[GraphValue],
        at: ast.AST,
        attributes: str = "",
        blocks: Sequence[Block] = (),
    ) -> list[GraphValue]:
        """Append a node whose outputs exist already."""
        location = self.source.location(at)
        node = Node(kind, attributes, list(inputs), made, self.scope, location, list(blocks))
        self.block.nodes.append(node)
        return made

    def emit_one(
        self,
        kind: str,
        inputs: Sequence[GraphValue],
        output: Type,
        at: ast.AST,
        attributes: str = "",
    ) -> GraphValue:
        """Append a node that produces one value."""
        return self.emit(kind, inputs, [output], at, attributes)[0]

    def _first(self, kind: str, attributes: str, type_: Type, at: ast.AST) -> GraphValue:
        """A node before all others: once, however often its value is used."""
        key = (kind + attributes, str(type_))
        if key not in self._constants:
            made = GraphValue(type_, self.body)
            location = self.source.location(at)
            node = Node(kind, attributes, [], [made], self.scope, location)
            self.body.nodes.insert(self._prologue, node)
            self._prologue += 1
            self._constants[key] = made
        return self._constants[key]

    def constant(self, value: object, type_: Type, at: ast.AST) -> GraphValue:
        """A constant in the graph."""
        if isinstance(value, dtype):
            value = value.name
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            self.fail(at, f"{value} does not fit into 64 bits", "a float")
        return self._first("prim::Constant", f"[value={constant_text(value)}]", type_, at)

    def never(self, type_: Type, at: ast.AST) -> GraphValue:
        """A value of that type in a block that has raised, where nothing runs any more."""
        if isinstance(type_, OptionalOf) or type_ == NONE:
            return self.constant(None, type_, at)
        nothing = self.constant(None, optional(type_), at)
        return self.emit_one("prim::Unwrap", [nothing], type_, at)

    @contextmanager
    def inside(self, block: Block) -> Iterator[Block]:
        """Append to that block meanwhile."""
        if block.depth > DEPTH_LIMIT:
            self.fail(
                self.source.tree,
                f"{self.source.tree.name} has more than {DEPTH_LIMIT} branches and loops in each "
                "other; those after a return count as within its if",
                "functions for parts of it",
            )
        before, self.block = self.block, block
        try:
            yield block
        finally:
            self.block = before

    # ---- values -------------------------------------------------------------------------------

    def graph_value(self, value: Value, at: ast.AST) -> GraphValue:
        """The value in the graph."""
        if isinstance(value, GraphValue):
            return value
        type_ = type_of(value)
        if type_ is None:
            if isinstance(value, Items):
                wrong = next(item for item in value.items if type_of(item) is None)
                return self.graph_value(wrong, at)
            self.fail(
                at,
                f"{describe(value)} is not a value of a graph",
                "a call of it, or a Tensor, number, str, list or tuple",
            )
        if isinstance(value, AttributeTensor):
            name = constant_text(value.name)
            return self._first("prim::GetAttr", f"[name={name}]", TENSOR, at)
        if isinstance(value, Constant):
            return self.constant(value.value, type_, at)
        assert isinstance(value, Items)
        items = [self.graph_value(item, at) for item in value.items]
        if not value.is_list:
            return self.emit_one("prim::TupleConstruct", items, type_, at)
        return self.list_of(items, at)

    def list_of(self, items: Sequence[GraphValue], at: ast.AST) -> GraphValue:
        """A new list of items of one type."""
        if not items:
            self.fail(at, "the type of the items of an empty list is unknown", "xs: list[int] = []")
        part = items[0].type
        for item in items:
            if plain(item.type) != plain(part):
                self.fail(
                    at,
                    f"a list contains items of one type, and this one {part} and {item.type}",
                    "a tuple, or items of one type",
                )
        return self.emit_one("prim::ListConstruct", items, ListOf(part), at)

    def receive(self, value: GraphValue, at: ast.AST) -> Value:
        """A value that a node has produced: of a tuple, its items."""
        type_ = plain(value.type)
        if type_ == NONE:
            return Constant(None)
        if not isinstance(type_, TupleOf):
            return value
        parts = self.emit("prim::TupleUnpack", [value], type_.parts, at)
        return Items(tuple(self.receive(part, at) for part in parts))

    # ---- variables ----------------------------------------------------------------------------

    def is_read_after(self, name: str, at: ast.AST) -> bool:
        """Whether anything may read the variable after that statement, by the lines of its uses."""
        if name.startswith("<"):
            return True
        line = self.loops[0] if self.loops else getattr(at, "end_lineno", 0)
        return self._last_reads.get(name, 0) >= line

    def assign(self, name: str, value: Value, at: ast.AST) -> None:
        """Give a variable a value."""
        before = self.variables.get(name)
        declared = before.declared if isinstance(before, Bound) else None
        self.variables[name] = Bound(value, self.source.line(at), declared)

    def read(self, name: str, at: ast.AST) -> Value:
        """The value of a name: a variable, or what the function's module has."""
        found = self.variables.get(name)
        if isinstance(found, Unbound):
            self.fail(at, f"{name} {found.reason}", found.remedy)
        if isinstance(found, Bound):
            return self.known(found, at)
        if name in self.function.__code__.co_varnames:
            self.fail(at, f"{name} is used before it is assigned", f"{name} = ... before this line")
        return self.context.value_of(self.python_object(name, at))

    def known(self, variable: Bound, at: ast.AST) -> Value:
        """A variable's value, without the None that a test has excluded."""
        value = variable.value
        if not variable.is_not_none or not isinstance(value, GraphValue):
            return value
        type_ = plain(value.type)
        if not isinstance(type_, OptionalOf):
            return value
        return self.receive(self.emit_one("prim::Unwrap", [value], type_.part, at), at)

    def python_object(self, name: str, at: ast.AST) -> Any:
        """What a name means outside the function."""
        if name in self._closure:
            try:
                return self._closure[name].cell_contents
            except ValueError:
                self.fail(at, f"{name} has no value yet", "a script() after its assignment")
        if name in self.function.__globals__:
            return self.function.__globals__[name]
        if hasattr(builtins, name):
            return getattr(builtins, name)
        self.fail(at, f"the name {name} is not defined", "an import or a definition of it")

    def exclude_none(self, names: frozenset[str]) -> None:
        """Record what a test has shown."""
        for name in names:
            variable = self.variables.get(name)
            if isinstance(variable, Bound):
                self.variables[name] = replace(variable, is_not_none=True)

    def text_constant(self, text: str, at: ast.AST) -> GraphValue:
        """A str in the graph."""
        return self.constant(text, STR, at)
