"""Graphs as Python objects, for code that makes or changes them: `Block`, `Node` and their text.

C has the grammar and the meaning (native/model/graph/text.h, native/model/GRAPHS.md).
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from opscope._tensor import read_graph

Value = tuple[str, str]
"""The name of a value, and its type."""


@dataclass
class Node:
    """An operator applied to values, which are given by their names."""

    kind: str
    inputs: list[str] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)
    scope: str | None = None
    """The path of the module that runs it."""
    location: str | None = None
    """Its source line, "net.py:3"."""

    @property
    def output(self) -> str:
        """The name of its only output."""
        ((name, _),) = self.outputs
        return name


@dataclass
class Block:
    """Nodes in order. The body of a graph is one, with the graph's inputs and results."""

    inputs: list[Value] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    results: list[str] = field(default_factory=list)

    def all_nodes(self) -> Iterator[Node]:
        """Its nodes and those of the blocks inside them, in the order of the text."""
        for node in self.nodes:
            yield node
            for block in node.blocks:
                yield from block.all_nodes()

    def uses(self) -> Counter[str]:
        """How often each value is used, in the blocks inside it too."""
        nodes = list(self.all_nodes())
        blocks = [self, *(block for node in nodes for block in node.blocks)]
        users = (*(node.inputs for node in nodes), *(block.results for block in blocks))
        return Counter(name for names in users for name in names)


def from_text(text: str) -> Block:
    """The body of a graph. ValueError names line and column of what is wrong."""
    return _block(read_graph(text))


def _block(tree: tuple[Any, Any, Any]) -> Block:
    inputs, nodes, results = tree
    return Block(list(inputs), [_node(*node) for node in nodes], list(results))


def _node(
    kind: str,
    inputs: tuple[str, ...],
    outputs: tuple[Value, ...],
    attributes: dict[str, Any],
    blocks: tuple[Any, ...],
    scope: str | None,
    location: str | None,
) -> Node:
    return Node(
        kind,
        list(inputs),
        list(outputs),
        attributes,
        [_block(each) for each in blocks],
        scope,
        location,
    )


def to_text(body: Block) -> str:
    """The text of the graph with that body."""
    lines = [f"graph({_defined(body.inputs)}):"]
    _write(body, "  ", lines)
    lines.append(f"  return ({_used(body.results)})")
    return "\n".join(lines) + "\n"


def _write(block: Block, indent: str, lines: list[str]) -> None:
    for node in block.nodes:
        outputs = f"{_defined(node.outputs)} = " if node.outputs else ""
        attributes = ", ".join(f"{name}={_literal(v)}" for name, v in node.attributes.items())
        line = f"{indent}{outputs}{node.kind}"
        line += f"[{attributes}]({_used(node.inputs)})" if attributes else f"({_used(node.inputs)})"
        line += f", scope: {node.scope}" if node.scope else ""
        line += f" # {node.location}" if node.location else ""
        lines.append(line)
        for number, inner in enumerate(node.blocks):
            lines.append(f"{indent}  block{number}({_defined(inner.inputs)}):")
            _write(inner, indent + "    ", lines)
            lines.append(f"{indent}    -> ({_used(inner.results)})")


def _defined(values: list[Value]) -> str:
    return ", ".join(f"%{name} : {type}" for name, type in values)


def _used(names: list[str]) -> str:
    return ", ".join(f"%{name}" for name in names)


def _literal(value: Any) -> str:
    """A constant as the text has it: floats always with '.', 'e', inf or nan."""
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_literal, value))}]"
    return repr(value)
