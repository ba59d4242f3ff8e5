"""A result takes the memory of an operand that nothing needs any more, and of no other."""

from __future__ import annotations

import numpy as np
import pytest

from opscope import tensor as ot
from opscope._tensor import Graph, Program

SIZE = 100_000
BYTES = 4 * SIZE


def program(text: str, attributes: dict[str, ot.Tensor] | None = None) -> Program:
    """As it is written, except for the memory."""
    return Program({"forward": Graph(text)}, attributes or {}, optimize=False)


def peak_of(run: Program, *inputs: ot.Tensor) -> int:
    """Bytes that were alive at once, beyond the inputs."""
    before = ot.memory_allocated()
    ot.reset_peak_memory_stats()
    run(*inputs)
    return ot.max_memory_allocated() - before


CHAIN = """graph(%x : Tensor, %y : Tensor):
  %a : Tensor = core::mul(%x, %y)
  %b : Tensor = core::tanh(%a)
  %c : Tensor = core::sub(%y, %b)
  %d : Tensor = core::abs(%c)
  return (%d)
"""


def test_a_chain_needs_the_memory_of_one_result() -> None:
    x, y = ot.randn([SIZE]), ot.randn([SIZE])
    kept = Program({"forward": Graph(CHAIN)}, {}, optimize=False, reuse_memory=False)
    assert peak_of(kept, x, y) == 2 * BYTES
    assert peak_of(program(CHAIN), x, y) == BYTES
    assert program(CHAIN)(x, y).numpy().tobytes() == kept(x, y).numpy().tobytes()


def test_a_fused_node_takes_the_memory_of_an_operand() -> None:
    text = """graph(%x : Tensor, %w : Tensor):
  %a : Tensor = core::matmul(%x, %w)
  %b : Tensor = core::tanh(%a)
  %c : Tensor = core::mul(%b, %b)
  %d : Tensor = core::add(%c, %a)
  return (%d)
"""
    x, w = ot.randn([300, 300]), ot.randn([300, 300])
    fused = Program({"forward": Graph(text)}, {})
    assert "prim::Fused" in str(fused.graph)
    kept = Program({"forward": Graph(text)}, {}, optimize=False, reuse_memory=False)
    assert peak_of(fused, x, w) == 4 * 300 * 300
    assert fused(x, w).numpy().tobytes() == kept(x, w).numpy().tobytes()


@pytest.mark.parametrize("optimize", [False, True])
def test_inputs_and_attributes_stay(optimize: bool) -> None:
    text = """graph(%x : Tensor):
  %w : Tensor = prim::GetAttr[name="w"]()
  %a : Tensor = core::neg(%x)
  %b : Tensor = core::neg(%w)
  %c : Tensor = core::add(%a, %b)
  return (%c)
"""
    x, w = ot.ones([SIZE]), ot.ones([SIZE])
    run = Program({"forward": Graph(text)}, {"w": w}, optimize=optimize)
    for _ in range(2):
        assert run(x).tolist() == [-2.0] * SIZE
    assert x.tolist() == w.tolist() == [1.0] * SIZE


STAYS = [
    (
        "a view holds the memory",
        """  %v : Tensor = core::unsqueeze(%a, %zero)
  %b : Tensor = core::neg(%a)
  return (%v, %b)
""",
    ),
    (
        "a list holds the tensor",
        """  %l : List[Tensor] = prim::ListConstruct(%a)
  %b : Tensor = core::neg(%a)
  %v : Tensor = py::getitem(%l, %zero)
  return (%v, %b)
""",
    ),
    (
        "it is used again",
        """  %b : Tensor = core::neg(%a)
  return (%a, %b)
""",
    ),
    (
        "it is used again in the next round",
        """  %yes : bool = prim::Constant[value=True]()
  %most : int = prim::Constant[value=3]()
  %b : Tensor = prim::Loop(%most, %yes, %x)
    block0(%round : int, %last : Tensor):
      %c : Tensor = core::neg(%a)
      -> (%yes, %c)
  return (%a, %b)
""",
    ),
]


@pytest.mark.parametrize(("why", "text"), STAYS, ids=[why for why, _ in STAYS])
def test_an_operand_stays(why: str, text: str) -> None:
    head = """graph(%x : Tensor):
  %zero : int = prim::Constant[value=0]()
  %a : Tensor = core::mul(%x, %x)
"""
    first, second = program(head + text)(ot.ones([5]) * 3)
    assert first.reshape([-1]).tolist() == [9.0] * 5, why
    assert second.tolist() == [-9.0] * 5, why


def test_an_expanded_operand_stays() -> None:
    """Its elements are one in memory."""
    text = """graph(%x : Tensor, %y : Tensor, %sizes : List[int]):
  %a : Tensor = core::neg(%x)
  %b : Tensor = core::expand(%a, %sizes)
  %c : Tensor = core::add(%b, %y)
  return (%c)
"""
    result = program(text)(ot.ones([1]), ot.arange(4).float(), [4])
    assert result.tolist() == [-1.0, 0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("x", "operator", "y", "wanted"),
    [
        (ot.ones([3]), "add", ot.ones([2, 3]), [[0.0] * 3] * 2),
        (ot.tensor([1, 2]), "mul", ot.tensor([0.5, 0.5]), [-0.5, -1.0]),
        (ot.ones([2]), "lt", ot.zeros([2]), [True, True]),
    ],
    ids=["sizes", "dtype", "comparison"],
)
def test_a_result_of_other_sizes_or_dtype_has_memory_of_its_own(
    x: ot.Tensor, operator: str, y: ot.Tensor, wanted: list[object]
) -> None:
    text = f"""graph(%x : Tensor, %y : Tensor):
  %a : Tensor = core::neg(%x)
  %b : Tensor = core::{operator}(%a, %y)
  return (%b)
"""
    result = program(text)(x, y)
    assert result.tolist() == wanted


def test_memory_that_backward_reads_stays() -> None:
    """tanh saves its result, mul its operands, one of which needs no gradient itself."""
    text = """graph(%x : Tensor, %y : Tensor):
  %a : Tensor = core::tanh(%x)
  %b : Tensor = core::exp(%y)
  %c : Tensor = core::mul(%a, %b)
  %d : Tensor = core::neg(%c)
  return (%d)
"""
    x, y = ot.randn([7]).requires_grad_(), ot.randn([7])
    program(text)(x, y).sum().backward()
    expected = -(1 - np.tanh(x.detach().numpy()) ** 2) * np.exp(y.numpy())
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-5)


def test_a_result_that_numpy_reads_stays() -> None:
    text = """graph(%x : Tensor):
  %a : Tensor = core::neg(%x)
  return (%a)
"""
    run = program(text)
    first = run(ot.ones([SIZE]))
    seen = first.numpy()
    del first
    run(ot.zeros([SIZE]))
    assert seen.tolist() == [-1.0] * SIZE
