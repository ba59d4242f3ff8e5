"""Scripted modules: all of opscope.tensor.nn, modules of one's own, training."""

# The functions to script have the annotations that scripting needs, and no others.
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opscope import tensor as ot
from opscope.tensor import Tensor, jit, nn, optim
from tests.tensor.jit.scripting.same import equal

ot.manual_seed(1)
X = ot.randn((2, 3, 4))
IMAGES = ot.randn((2, 3, 8, 8))
TOKENS = ot.randint(0, 10, (2, 5))
CLASSES = ot.tensor([0, 2])
LAYERS: list[tuple[Callable[[], nn.Module], tuple[Tensor, ...]]] = [
    (lambda: nn.Linear(4, 5), (X,)),
    (lambda: nn.Linear(4, 5, bias=False), (X,)),
    (nn.Identity, (X,)),
    (nn.ReLU, (X,)),
    (lambda: nn.ReLU(inplace=True), (X.clone(),)),
    (nn.GELU, (X,)),
    (lambda: nn.GELU("tanh"), (X,)),
    (nn.Tanh, (X,)),
    (nn.Sigmoid, (X,)),
    (lambda: nn.Softmax(-1), (X,)),
    (lambda: nn.LogSoftmax(1), (X,)),
    (lambda: nn.Dropout(0.5), (X,)),
    (nn.Flatten, (X,)),
    (lambda: nn.Flatten(0, -2), (X,)),
    (lambda: nn.Conv2d(3, 4, 3, padding=1), (IMAGES,)),
    (lambda: nn.MaxPool2d(2), (IMAGES,)),
    (lambda: nn.AvgPool2d(2), (IMAGES,)),
    (lambda: nn.AdaptiveAvgPool2d(2), (IMAGES,)),
    (lambda: nn.BatchNorm2d(3), (IMAGES,)),
    (lambda: nn.BatchNorm1d(3, momentum=None), (X,)),
    (lambda: nn.BatchNorm1d(3, affine=False, track_running_stats=False), (X,)),
    (lambda: nn.LayerNorm(4), (X,)),
    (lambda: nn.Embedding(10, 4), (TOKENS,)),
    (nn.MSELoss, (X, X * 2)),
    (lambda: nn.L1Loss("none"), (X, X * 2)),
    (lambda: nn.NLLLoss(ot.ones(3)), (X[:, :, 0], CLASSES)),
    (nn.CrossEntropyLoss, (X[:, :, 0], CLASSES)),
    (lambda: nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 2)), (X,)),
    (lambda: nn.MultiheadAttention(4, 2), (X, X, X)),
    (lambda: nn.MultiheadAttention(4, 2, batch_first=True), (X, X + 1, X - 1)),
    (lambda: nn.TransformerEncoderLayer(4, 2, 8), (X,)),
    (lambda: nn.TransformerEncoderLayer(4, 2, 8, norm_first=True, activation="gelu"), (X,)),
]


@pytest.mark.parametrize("is_training", [True, False])
@pytest.mark.parametrize("place", range(len(LAYERS)))
def test_a_layer_is_scripted_from_its_source(place: int, is_training: bool) -> None:
    make, inputs = LAYERS[place]
    results = []
    for is_scripted in (False, True):
        ot.manual_seed(place)
        module = make()
        for each in module.modules():
            each.training = is_training
        run: Callable[..., Any] = jit.script(module) if is_scripted else module
        ot.manual_seed(place)
        results.append(
            (run(*[each.clone() for each in inputs]), list(module.state_dict().values()))
        )
    assert equal(*results)


def test_errors_of_layers_are_those_of_their_source() -> None:
    with pytest.raises(ValueError, match=r"BatchNorm2d: .* 4 dimensions, not 2: shape \(2, 3\)"):
        jit.script(nn.BatchNorm2d(3))(ot.zeros((2, 3)))
    with pytest.raises(IndexError, match="the input has 2 dimensions"):
        jit.script(nn.Flatten(3))(ot.zeros((2, 3)))


class Block(nn.Module):
    """A module of one's own: submodules, a buffer, constants, a method."""

    def __init__(self, width: int, depth: int) -> None:
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.head = nn.Linear(width, 2)
        self.scale = 0.5
        self.sizes = (1, 2, 3)
        self.register_buffer("steps", ot.tensor(0))

    steps: Tensor

    def activate(self, x, place: int):
        return x.relu() if place % 2 == 0 else x.tanh() * self.scale

    def forward(self, x, limit: int = 10):
        if self.training:
            self.steps += 1
        for place, layer in enumerate(self.layers):
            if place >= limit:
                break
            x = self.activate(layer(x), place)
        return self.head(x) + sum(self.sizes)


def test_a_module_of_modules() -> None:
    module = Block(4, 3)
    scripted = jit.script(module)
    for limit in range(5):
        assert equal(scripted(X, limit), module(X, limit))
    assert equal(scripted(X, limit=1), module(X, limit=1))
    assert equal(scripted(X), module(X))
    assert module.steps.item() == 14
    functions = set(scripted.parts.functions)
    layers = {f"layers.{place}.forward" for place in range(3)}
    assert functions == {"forward", "activate", "head.forward", *layers}
    assert set(scripted.state_dict()) == set(module.state_dict())
    assert "scope: layers.0" in scripted.parts.functions["layers.0.forward"]
    assert "# test_modules.py:" in str(scripted.graph)


def test_a_scripted_module_is_saved_loaded_and_frozen(tmp_path: Path) -> None:
    scripted = jit.script(Block(4, 3))
    jit.save(scripted, tmp_path / "block.pt")
    wanted = scripted(X, 2)
    assert equal(jit.load(tmp_path / "block.pt")(X, 2), wanted)
    module = Block(4, 2)
    module.training = False
    assert equal(jit.freeze(jit.script(module))(X, 2), module(X, 2))


class Configuration:
    """An object of a class of one's own."""

    width = 4

    def scale(self, n: int) -> int:
        return n * self.width


class Attributes(nn.Module):
    """Everything that a module may refer to."""

    def __init__(self) -> None:
        self.configuration = Configuration()
        self.extra = ot.ones(4)
        self.table = {"k": 3}
        self.names = ["a", "b"]
        self.layer = nn.Linear(4, 4)
        self.layers = nn.Sequential(self.layer, nn.ReLU(), self.layer)

    @property
    def twice(self) -> int:
        return self.configuration.width * 2

    @staticmethod
    def times(x, k: int = 2):
        return x * k

    def forward(self, x, flag: bool | None = None):
        if flag is not None and flag:
            x = x + self.twice
        x = self.times(x, k=self.table["k"]) + self.extra
        for place, name in enumerate(self.names):
            if name == "b":
                x = x + place
        x = self.layers[-1](self.layers(x)) if len(self.layers) > 2 else x
        if hasattr(self, "missing"):
            x = x + self.missing  # pyright: ignore[reportAttributeAccessIssue]
        return x + self.configuration.scale(len(self.names)), type(self).__name__


def test_attributes_of_all_kinds() -> None:
    module = Attributes()
    scripted = jit.script(module)
    for flag in (None, True, False):
        assert equal(scripted(X, flag), module(X, flag))
    assert "twice" in scripted.parts.functions
    assert {"extra", "layer.weight", "layer.bias"} == set(scripted.attributes)


class Base(nn.Module):
    def __init__(self) -> None:
        self.weight = nn.Parameter(ot.ones(4))

    def forward(self, x):
        return x * self.weight


class Derived(Base):
    def forward(self, x):
        return super().forward(x) + 1


def test_a_method_of_the_base_class() -> None:
    module = Derived()
    assert equal(jit.script(module)(X), module(X))


def train(model: Any, parameters: Any) -> list[float]:
    """The losses of a few steps."""
    ot.manual_seed(2)
    optimizer = optim.SGD(parameters, lr=0.1)
    losses = []
    for _ in range(5):
        x = ot.randn((8, 4))
        loss = ((model(x) - x[:, :2]) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_training_through_a_scripted_module_equals_eager_training() -> None:
    losses = []
    for is_scripted in (False, True):
        ot.manual_seed(4)
        module = Block(4, 3)
        model: Any = jit.script(module) if is_scripted else module
        losses.append(train(model, list(model.parameters())))
    assert losses[0] == losses[1]
    assert losses[0][-1] < losses[0][0]
