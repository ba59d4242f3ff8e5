"""The nodes of the graph that a translation writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from opscope.tensor.jit.nodes import Block, Node
from opscope.tensor.jit.schemas import schema_of
from opscope.tensor.jit.torchscript.values import Symbol, Value, is_constant, type_of

_NODE_LIMIT = 200_000


class Writer:
    """`scope` and `location` are those of the nodes to come."""

    def __init__(self) -> None:
        self.body = Block()
        self.scope: str | None = None
        self.location: str | None = None
        self._block = self.body
        self._count = 0
        self._attributes: dict[str, Symbol] = {}

    def new(self, type: str) -> Symbol:
        self._count += 1
        return Symbol(str(self._count), type)

    def add(
        self,
        kind: str,
        inputs: Sequence[Value],
        types: Sequence[str],
        attributes: dict[str, object] | None = None,
    ) -> list[Symbol]:
        """A node; its results. Constants among the inputs become nodes of their own."""
        names = [self.symbol(each).name for each in inputs]
        outputs = [self.new(type) for type in types]
        self._append(
            Node(kind, names, [(each.name, each.type) for each in outputs], attributes or {})
        )
        return outputs

    def one(self, kind: str, inputs: Sequence[Value], type: str = "Tensor") -> Symbol:
        return self.add(kind, inputs, [type])[0]

    def core(self, name: str, *inputs: Value) -> Value:
        """A call of an operator of the core: a Tensor, a list as one value, or a tuple."""
        schema = schema_of(f"core::{name.removesuffix('_')}")
        if schema.is_list:
            return self.one(f"core::{name}", inputs, "List[Tensor]")
        found = self.add(f"core::{name}", inputs, ["Tensor"] * len(schema.results))
        return found[0] if len(found) == 1 else tuple(found)

    def dtype(self, name: str) -> Symbol:
        """A dtype as a value."""
        made = self.new("Dtype")
        self._append(Node("prim::Constant", [], [(made.name, made.type)], {"value": name}))
        return made

    @property
    def here(self) -> Block:
        """The block that is written now."""
        return self._block

    def attribute(self, name: str) -> Symbol:
        """The tensor of that name, read once, where the graph begins."""
        if name not in self._attributes:
            made = self.new("Tensor")
            self.body.nodes.insert(
                len(self._attributes),
                Node("prim::GetAttr", [], [(made.name, made.type)], {"name": name}),
            )
            self._attributes[name] = made
        return self._attributes[name]

    def symbol(self, value: Value) -> Symbol:
        """The value as one of the graph."""
        if isinstance(value, Symbol):
            return value
        if is_constant(value) and not isinstance(value, tuple):
            made = self.new(type_of(value))
            self._append(Node("prim::Constant", [], [(made.name, made.type)], {"value": value}))
            return made
        kind = "prim::ListConstruct" if isinstance(value, list) else "prim::TupleConstruct"
        return self.one(kind, value, type_of(value))

    @contextmanager
    def inside(self, block: Block) -> Iterator[None]:
        """What is written meanwhile goes to the end of that block."""
        before, self._block = self._block, block
        try:
            yield
        finally:
            self._block = before

    @contextmanager
    def block(self) -> Iterator[Block]:
        """What is written meanwhile goes into a block of its own."""
        made = Block()
        with self.inside(made):
            yield made

    def _append(self, node: Node) -> None:
        node.scope, node.location = self.scope, self.location
        self._block.nodes.append(node)
        if self._count > _NODE_LIMIT:
            raise ValueError(f"more than {_NODE_LIMIT} values")

    def loop(self, inputs: Sequence[Value], block: Block, types: Sequence[str]) -> list[Symbol]:
        """A Loop: of the most rounds, the condition and what is carried, which has these types."""
        names = [self.symbol(each).name for each in inputs]
        outputs = [self.new(each) for each in types]
        pairs = [(each.name, each.type) for each in outputs]
        self._append(Node("prim::Loop", names, pairs, blocks=[block]))
        return outputs

    def conditional(
        self, condition: Symbol, blocks: tuple[Block, Block], type: list[str]
    ) -> list[Symbol]:
        """An If whose blocks return values of these types."""
        outputs = [self.new(each) for each in type]
        pairs = [(each.name, each.type) for each in outputs]
        self._append(Node("prim::If", [condition.name], pairs, blocks=list(blocks)))
        return outputs
