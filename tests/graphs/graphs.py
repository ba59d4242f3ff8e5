"""Graphs for tests, written shortly."""

from __future__ import annotations

from collections.abc import Sequence

from opscope._tensor import Graph, Program, Tensor


def program(text: str, attributes: dict[str, Tensor] | None = None, **functions: str) -> Program:
    """The program of a graph named forward, and of those that it calls."""
    texts = {"forward": text, **functions}
    return Program({name: Graph(text) for name, text in texts.items()}, attributes or {})


def of_node(kind: str, inputs: Sequence[str], outputs: Sequence[str], location: str = "") -> str:
    """The graph of one node, by its types, that returns what the node produces."""
    names = [f"%i{index}" for index in range(len(inputs))]
    results = [f"%o{index}" for index in range(len(outputs))]
    taken = ", ".join(f"{name} : {type}" for name, type in zip(names, inputs, strict=True))
    made = ", ".join(f"{name} : {type}" for name, type in zip(results, outputs, strict=True))
    node = f"{made}{' = ' if made else ''}{kind}({', '.join(names)})"
    return (
        f"graph({taken}):\n  {node}{f' # {location}' if location else ''}\n"
        f"  return ({', '.join(results)})\n"
    )


def of_change(kind: str, inputs: Sequence[str], output: str = "") -> str:
    """The graph of one node that changes its first input: returns it, and what else there is."""
    text = of_node(kind, inputs, [output] if output else [])
    head, _, _ = text.rpartition("  return")
    return f"{head}  return (%i0{', %o0' if output else ''})\n"
