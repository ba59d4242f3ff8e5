"""The type Graph: text to graph and back, copies, passes, and what a graph tells about itself."""

from __future__ import annotations

import re

import pytest

from opscope._tensor import Graph

TEXT = """graph(%x : Tensor, %1 : Optional[List[Dtype]]):
  %w : Tensor = prim::GetAttr[name="fc.weight"]()
  %flag : bool = prim::Constant[value=True]()
  %spare : List[List[int]] = prim::Constant[value=[[1, 2], []]]() # net.py:3:4
  %y : Tensor = prim::If(%flag)
    block0():
      %z : Tensor = core::add(%x, %w), scope: net.head # net.py:4:4
      -> (%z)
    block1():
      %q : Tensor = prim::CallFunction[name="fc.forward"](%x)
      %p : Tensor = prim::GetAttr[name="fc.weight"]()
      -> (%q)
  return (%y)
"""


def test_a_graph_is_printed_as_it_was_written() -> None:
    assert str(Graph(TEXT)) == TEXT


def test_a_graph_tells_what_it_has() -> None:
    graph = Graph(TEXT)
    assert graph.inputs == [("x", "Tensor"), ("1", "Optional[List[Dtype]]")]
    assert graph.outputs == [("y", "Tensor")]
    assert graph.operators()["prim::GetAttr"] == 2
    assert graph.attributes() == ["fc.weight"]
    assert graph.callees() == ["fc.forward"]
    graph.verify()


def test_a_copy_is_a_graph_of_its_own() -> None:
    graph = Graph(TEXT)
    copy = graph.copy()
    assert str(copy) == TEXT
    assert copy.run_pass("dead_code") == 2
    assert "%spare" not in str(copy)
    assert str(graph) == TEXT


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("graph(%x : Foo):\n  return (%x)\n", 'line 1, column 12: no type is named "Foo"'),
        ("graph():\n  return (%x)\n", "line 2, column 12: %x is not defined before"),
        (
            "graph(%x : int):\n  prim::If(%x)\n    block0():\n      -> ()\n    block1():\n"
            "      -> ()\n  return ()\n",
            "prim::If(%x): its input is not one bool",
        ),
    ],
)
def test_a_wrong_text_is_refused_with_its_place(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason) + "$"):
        Graph(text)


def test_an_unknown_pass_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(
        ValueError, match='no pass is named "x": dead_code, fold_constants, fuse_elementwise'
    ):
        Graph(TEXT).run_pass("x")
