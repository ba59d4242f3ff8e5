"""Write a function's graph: nodes in nested blocks, and their text.

`native/model/GRAPHS.md` says what the nodes mean, `native/model/graph/text.h` how the text is read.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from opscope.tensor.jit.scripting.types import Type


@dataclass(eq=False)
class GraphValue:
    """A value that a node produces or that a block takes."""

    type: Type
    block: Block
    """In which it is defined."""
    name: str = ""


@dataclass(eq=False)
class Node:
    """One operation."""

    kind: str
    attributes: str
    inputs: list[GraphValue]
    outputs: list[GraphValue]
    scope: str
    location: str
    blocks: list[Block] = field(default_factory=list)


@dataclass(eq=False)
class Block:
    """Nodes in order, what they start from and what they return."""

    parent: Block | None
    inputs: list[GraphValue] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    outputs: list[GraphValue] = field(default_factory=list)

    @property
    def depth(self) -> int:
        """How many blocks it is in."""
        return 0 if self.parent is None else self.parent.depth + 1

    def sees(self, value: GraphValue) -> bool:
        """Whether nodes of this block may use the value."""
        block: Block | None = self
        while block is not None and block is not value.block:
            block = block.parent
        return block is not None

    def take(self, type_: Type) -> GraphValue:
        """A further input."""
        self.inputs.append(GraphValue(type_, self))
        return self.inputs[-1]


def constant_text(value: object) -> str:
    """A constant as a graph's text has it."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


class _Writer:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.count = 0

    def definitions(self, values: Sequence[GraphValue]) -> str:
        for value in values:
            value.name = str(self.count)
            self.count += 1
        return ", ".join(f"%{value.name} : {value.type}" for value in values)

    def node(self, node: Node, indent: str) -> None:
        outputs = self.definitions(node.outputs)
        line = f"{outputs} = " if outputs else ""
        line += f"{node.kind}{node.attributes}({uses(node.inputs)})"
        line += f", scope: {node.scope}" if node.scope else ""
        self.lines.append(f"{indent}{line} # {node.location}")
        for place, block in enumerate(node.blocks):
            self.lines.append(f"{indent}  block{place}({self.definitions(block.inputs)}):")
            self.nodes(block, f"{indent}    ")
            self.lines.append(f"{indent}    -> ({uses(block.outputs)})")

    def nodes(self, block: Block, indent: str) -> None:
        for node in block.nodes:
            self.node(node, indent)


def uses(values: Sequence[GraphValue]) -> str:
    """Values as inputs."""
    return ", ".join(f"%{value.name}" for value in values)


def to_text(body: Block, names: Sequence[str]) -> str:
    """The graph whose body this is; `names` are those of its inputs."""
    writer = _Writer()
    inputs = []
    for name, value in zip(names, body.inputs, strict=True):
        value.name = name
        inputs.append(f"%{name} : {value.type}")
    writer.nodes(body, "  ")
    lines = [f"graph({', '.join(inputs)}):", *writer.lines, f"  return ({uses(body.outputs)})"]
    return "\n".join(lines) + "\n"
