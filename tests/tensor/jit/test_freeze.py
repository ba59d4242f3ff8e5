"""Frozen models: constants, folded and without what nothing uses."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opscope import tensor as ops
from opscope.tensor import jit, nn
from tests.tensor.jit.models import digits_model, digits_net


def _trained_norm(norm: nn.Module, *shape: int) -> None:
    norm.train()
    for _ in range(3):
        norm(ops.randn(shape) * 2 + 1)
    norm.eval()


def test_a_batch_norm_is_folded_into_its_convolution() -> None:
    net = digits_net()
    _trained_norm(net[1], 8, 4, 8, 8)
    with ops.no_grad():
        for parameter in net[1].parameters():
            parameter.uniform_(0.5, 2.0)
    model = jit.trace(net, ops.randn(2, 1, 8, 8))
    frozen = jit.freeze(model)
    assert "core::batch_norm" not in frozen.graph.operators()
    assert sorted(frozen.attributes) == ["5.bias", "5.weight", "folded.0", "folded.1"]
    x = ops.randn(3, 1, 8, 8)
    assert ops.allclose(frozen(x), model(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("affine", [False, True])
def test_folding_needs_neither_bias_nor_weights_of_the_norm(bias: bool, affine: bool) -> None:
    net = nn.Sequential(nn.Conv2d(2, 4, 3, groups=2, bias=bias), nn.BatchNorm2d(4, affine=affine))
    _trained_norm(net[1], 8, 4, 5, 5)
    frozen = jit.freeze(jit.trace(net.eval(), ops.randn(1, 2, 5, 5)))
    assert "core::batch_norm" not in frozen.graph.operators()
    x = ops.randn(3, 2, 6, 6)
    assert ops.allclose(frozen(x), net(x), rtol=1e-4, atol=1e-5)


def test_a_scripted_model_is_inlined_and_folded() -> None:
    net = digits_net()
    _trained_norm(net[1], 8, 4, 8, 8)
    model = jit.script(net)
    frozen = jit.freeze(model)
    assert list(frozen.parts.functions) == ["forward"]
    assert "core::batch_norm" not in frozen.graph.operators()
    x = ops.randn(3, 1, 8, 8)
    assert ops.allclose(frozen(x), model(x), rtol=1e-4, atol=1e-5)


def test_questions_for_the_shape_do_not_prevent_folding() -> None:
    text = """\
graph(%x : Tensor):
  %weight : Tensor = prim::GetAttr[name="weight"]()
  %mean : Tensor = prim::GetAttr[name="mean"]()
  %variance : Tensor = prim::GetAttr[name="variance"]()
  %none : None = prim::Constant[value=None]()
  %y : Tensor = core::conv2d(%x, %weight, %none)
  %dim : int = py::dim(%y)
  %z : Tensor = core::batch_norm(%y, %none, %none, %mean, %variance)
  %r : Tuple[Tensor, int] = prim::TupleConstruct(%z, %dim)
  return (%r)
"""
    tensors = {
        "weight": ops.full([1, 1, 1, 1], 4.0),
        "mean": ops.ones(1),
        "variance": ops.full([1], 4.0 - 1e-5),
    }
    frozen = jit.freeze(jit.CompiledModel({"forward": text}, tensors))
    assert "core::batch_norm" not in frozen.graph.operators()
    result, dims = frozen(ops.ones(1, 1, 1, 2))
    assert dims == 4
    assert ops.allclose(result, ops.full([1, 1, 1, 2], 1.5))


class _UsesTwice(nn.Module):
    def __init__(self) -> None:
        self.conv, self.norm = nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2)

    def forward(self, x: ops.Tensor) -> Any:
        y = self.conv(x)
        return self.norm(y) + y


class _WritesTheWeight(_UsesTwice):
    def forward(self, x: ops.Tensor) -> Any:
        with ops.no_grad():
            self.conv.weight[0].mul_(2)
        return self.norm(self.conv(x))


class _TakesTheWeight(_UsesTwice):
    def forward(self, x: ops.Tensor) -> Any:
        return self.norm(ops.conv2d(x, x[:, :1, :1, :1]))


@pytest.mark.parametrize("make", [_UsesTwice, _WritesTheWeight, _TakesTheWeight])
def test_what_is_not_constant_is_not_folded(make: Callable[[], _UsesTwice]) -> None:
    net = make().eval()
    example = ops.randn(2, 1, 3, 3)
    frozen = jit.freeze(jit.trace(net, example))
    assert frozen.graph.operators()["core::batch_norm"] == 1
    assert not [name for name in frozen.attributes if name.startswith("folded")]


def test_statistics_of_the_batch_are_not_folded() -> None:
    net = nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2))
    frozen = jit.freeze(jit.trace(net, ops.randn(2, 1, 3, 3)))
    assert frozen.graph.operators()["core::batch_norm"] == 1
    x = ops.randn(4, 1, 3, 3)
    assert ops.equal(frozen(x), net(x))


def test_a_frozen_model_is_not_trained() -> None:
    frozen = jit.freeze(digits_model())
    assert list(frozen.parameters()) == []
    assert not frozen(ops.randn(1, 1, 8, 8)).requires_grad


def test_the_model_itself_stays_as_it_is() -> None:
    model = digits_model()
    text, names = str(model.graph), list(model.attributes)
    jit.freeze(model)
    assert (str(model.graph), list(model.attributes)) == (text, names)
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_nodes_and_attributes_without_use_go() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            self.used, self.unused = nn.Linear(2, 2), nn.Linear(2, 2)

        def forward(self, x: ops.Tensor) -> Any:
            self.unused(x)
            return self.used(x) + self.used(x)

    frozen = jit.freeze(jit.trace(Net(), ops.ones(1, 2)))
    assert list(frozen.attributes) == ["used.weight", "used.bias"]
    assert frozen.graph.operators()["core::linear"] == 1


def test_a_frozen_model_is_saved(tmp_path: Path) -> None:
    frozen, x = jit.freeze(digits_model()), ops.randn(2, 1, 8, 8)
    jit.save(frozen, tmp_path / "model.pt")
    assert ops.equal(jit.load(tmp_path / "model.pt")(x), frozen(x))
    assert ops.equal(jit.freeze(jit.load(tmp_path / "model.pt"))(x), frozen(x))
