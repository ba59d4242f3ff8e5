"""Find the attributes that a model writes when it runs."""

from __future__ import annotations

from collections.abc import Mapping

from opscope._tensor import Tensor
from opscope.tensor.jit.nodes import Block, Node


def written_attributes(bodies: Mapping[str, Block], attributes: Mapping[str, Tensor]) -> set[str]:
    """Names of the attributes that a node may write, directly or through a view or a list.

    `bodies`: by name, graphs that call no functions, but may run each other as tasks.
    """
    tasks = {name: _task_attributes(bodies, name) for name in bodies}
    written = {
        _memory(attributes[name])
        for body in bodies.values()
        for name in _written_names(body, tasks)
    }
    return {name for name, tensor in attributes.items() if _memory(tensor) in written}


def _task_attributes(bodies: Mapping[str, Block], name: str) -> set[str]:
    """The attributes that a task reads, itself or in tasks of its own."""
    read: set[str] = set()
    seen: set[str] = set()
    pending = [name]
    while pending:
        function = pending.pop()
        if function not in seen:
            seen.add(function)
            nodes = list(bodies[function].all_nodes())
            read |= {n.attributes["name"] for n in nodes if n.kind == "prim::GetAttr"}
            pending += [n.attributes["name"] for n in nodes if n.kind == "prim::Fork"]
    return read


def _written_names(body: Block, tasks: Mapping[str, set[str]]) -> set[str]:
    reached = _Reached(body, tasks)
    nodes = list(body.all_nodes())
    false = {
        node.output
        for node in nodes
        if node.kind == "prim::Constant" and node.attributes["value"] is False
    }
    return {name for node in nodes for value in _targets(node, false) for name in reached.by(value)}


def _memory(tensor: Tensor) -> int:
    """The same number for tensors that share memory."""
    return tensor._storage_data_ptr() if tensor.numel() > 0 else -id(tensor)


def _targets(node: Node, false: set[str]) -> list[str]:
    """The inputs that a node may write. An operator of a library, or a task, may write all.
    `false`: values that are the constant False."""
    if node.kind == "core::batch_norm":
        is_training = len(node.inputs) > 5 and node.inputs[5] not in false
        return node.inputs[3:5] if is_training else []
    if node.kind.endswith("_"):
        return node.inputs[:1]
    if node.kind == "prim::Fork":
        return node.inputs
    return [] if node.kind.startswith(("core::", "prim::", "py::")) else node.inputs


class _Reached:
    """For each value of a graph, the attributes that it may share memory with: those of all
    inputs of the node that produces it, and for what a block takes or returns, those of all values
    of its node. A task may return each attribute that it reads."""

    def __init__(self, body: Block, tasks: Mapping[str, set[str]]) -> None:
        self._tasks = tasks
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
            elif node.kind == "prim::Fork":
                found |= self._tasks[node.attributes["name"]]
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
