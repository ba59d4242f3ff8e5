"""Which attributes a model may write when it runs."""

from __future__ import annotations

from collections.abc import Mapping

from opscope._tensor import Tensor
from opscope.tensor.jit.nodes import Block, Node


def written_attributes(body: Block, attributes: Mapping[str, Tensor]) -> set[str]:
    """Names of the attributes that a node may write, directly or through a view or a list. The
    graph calls no functions."""
    reached = _Reached(body)
    nodes = list(body.all_nodes())
    false = {
        node.output
        for node in nodes
        if node.kind == "prim::Constant" and node.attributes["value"] is False
    }
    written = {
        _memory(attributes[name])
        for node in nodes
        for value in _targets(node, false)
        for name in reached.by(value)
    }
    return {name for name, tensor in attributes.items() if _memory(tensor) in written}


def _memory(tensor: Tensor) -> int:
    """The same number for tensors that share memory."""
    return tensor._storage_data_ptr() if tensor.numel() > 0 else -id(tensor)


def _targets(node: Node, false: set[str]) -> list[str]:
    """The inputs that a node may write. An operator of a library may write all. `false`: values
    that are the constant False."""
    if node.kind == "core::batch_norm":
        is_training = len(node.inputs) > 5 and node.inputs[5] not in false
        return node.inputs[3:5] if is_training else []
    if node.kind.endswith("_"):
        return node.inputs[:1]
    return [] if node.kind.startswith(("core::", "prim::", "py::")) else node.inputs


class _Reached:
    """For each value of a graph, the attributes that it may share memory with: those of all
    inputs of the node that produces it, and for what a block takes or returns, those of all values
    of its node."""

    def __init__(self, body: Block) -> None:
        self._names: dict[str, set[str]] = {}
        # A loop passes values backwards, so that the sets may grow in each round.
        while self._spread(body):
            pass

    def by(self, value: str) -> set[str]:
        return self._names.get(value, set())

    def _spread(self, block: Block) -> bool:
        has_grown = False
        for node in block.nodes:
            found = {name for value in node.inputs for name in self.by(value)}
            if node.kind == "prim::GetAttr":
                found.add(node.attributes["name"])
            for inner in node.blocks:
                has_grown |= self._grow([name for name, _ in inner.inputs], found)
                has_grown |= self._spread(inner)
                found |= {name for value in inner.results for name in self.by(value)}
            has_grown |= self._grow([name for name, _ in node.outputs], found)
        return has_grown

    def _grow(self, values: list[str], names: set[str]) -> bool:
        before = sum(len(self.by(value)) for value in values)
        for value in values:
            self._names.setdefault(value, set()).update(names)
        return sum(len(self.by(value)) for value in values) > before
