"""The passes in their order. They lower the cost of a graph and keep its results."""

from __future__ import annotations

from opscope._tensor import Graph

PASSES = ("peephole", "merge_equal", "dead_code")
"""Names of passes in C (native/model/program/passes.h)."""


def run(graph: Graph) -> Graph:
    """Runs them on the graph, and returns it."""
    for name in PASSES:
        graph.run_pass(name)
    return graph
