"""Optimizers take PyTorch's steps, keep PyTorch's state, and are one range each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import opscope
from opscope import tensor as ot
from opscope.tensor import nn, optim
from tests.tensor.ranges import ranges

OPTIONS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.2}),
    ("SGD", {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    ("Adam", {"lr": 0.01}),
    ("Adam", {"lr": 0.01, "weight_decay": 0.1, "betas": (0.8, 0.9), "eps": 1e-6}),
    ("Adam", {"lr": 0.3, "betas": (0.5, 0.6), "amsgrad": True}),
    ("AdamW", {"lr": 0.01}),
    ("AdamW", {"lr": 0.3, "betas": (0.5, 0.6), "amsgrad": True}),
    ("AdamW", {"lr": 0.01, "weight_decay": 0.3}),
]


class Pair:
    """The same network in opscope and in PyTorch, on the same numbers."""

    def __init__(self) -> None:
        random = np.random.default_rng(0)
        self.inputs = random.normal(size=(16, 4)).astype(np.float32)
        self.targets = random.normal(size=(16, 2)).astype(np.float32)
        torch.manual_seed(0)
        self.own, self.their = (
            lib.Sequential(lib.Linear(4, 8), lib.Tanh(), lib.Linear(8, 2, bias=False))
            for lib in (nn, torch.nn)
        )
        self.own.load_state_dict(self.their.state_dict())

    def step(self, own: Any, their: Any) -> None:
        """One step of both; the losses are equal."""
        losses = []
        for model, optimizer, tensor in (
            (self.own, own, ot.tensor),
            (self.their, their, torch.tensor),
        ):
            loss = ((model(tensor(self.inputs)) - tensor(self.targets)) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[0] == pytest.approx(losses[1], abs=1e-5)


@pytest.mark.parametrize(("name", "options"), OPTIONS)
def test_losses_are_pytorchs_step_by_step(name: str, options: dict[str, Any]) -> None:
    pair = Pair()
    own = getattr(optim, name)(pair.own.parameters(), **options)
    their = getattr(torch.optim, name)(pair.their.parameters(), **options)
    for _ in range(20):
        pair.step(own, their)


def test_groups_have_options_of_their_own_that_may_change() -> None:
    pair = Pair()

    def make(lib: Any, model: Any) -> Any:
        groups = [{"params": model[0].parameters(), "lr": 0.5}, {"params": [model[2].weight]}]
        return lib.SGD(groups, lr=0.1, momentum=0.5)

    own, their = make(optim, pair.own), make(torch.optim, pair.their)
    for step in range(10):
        for optimizer in (own, their):
            optimizer.param_groups[1]["lr"] = 0.1 / (step + 1)
        pair.step(own, their)
    assert [group["lr"] for group in own.param_groups] == [0.5, 0.01]


@pytest.mark.parametrize(("name", "options"), OPTIONS)
def test_a_saved_state_goes_on_where_it_was(name: str, options: dict[str, Any]) -> None:
    pair = Pair()
    own = getattr(optim, name)(pair.own.parameters(), **options)
    their = getattr(torch.optim, name)(pair.their.parameters(), **options)
    for _ in range(3):
        pair.step(own, their)
    again = getattr(optim, name)(pair.own.parameters(), **{**options, "lr": 9.0})
    again.load_state_dict(own.state_dict())
    assert again.param_groups[0]["lr"] == options["lr"]
    for _ in range(3):
        pair.step(again, their)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_the_state_has_pytorchs_form(name: str) -> None:
    pair = Pair()
    options = {"momentum": 0.9} if name == "SGD" else {}
    own = getattr(optim, name)(pair.own.parameters(), lr=0.1, **options)
    their = getattr(torch.optim, name)(pair.their.parameters(), lr=0.1, **options)
    pair.step(own, their)
    mine, expected = own.state_dict(), their.state_dict()
    assert mine["param_groups"][0]["params"] == expected["param_groups"][0]["params"]
    assert mine["param_groups"][0].items() <= expected["param_groups"][0].items()
    for place, state in expected["state"].items():
        assert mine["state"][place].keys() == state.keys()
        for key, value in state.items():
            found = mine["state"][place][key]
            found = found.numpy() if isinstance(found, ot.Tensor) else found
            np.testing.assert_allclose(found, value.numpy(), atol=1e-6)


def test_a_step_is_one_range_around_its_operators() -> None:
    weight = nn.Parameter(ot.tensor([1.0]))
    (weight * weight).backward()
    optimizer = optim.SGD([weight], lr=0.5)
    with ranges() as seen:
        optimizer.step()
    assert [name for name, _ in seen] == ["core::SGD.step", "core::add_"]
    assert seen[0][1] is opscope.RecordScope.USER_SCOPE
    assert weight.tolist() == [0]


def test_a_closure_computes_the_gradients_of_the_step() -> None:
    weight = nn.Parameter(ot.tensor([3.0]))
    optimizer = optim.SGD([weight], lr=0.5)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (weight * weight).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 9
    assert weight.tolist() == [0]


def test_parameters_without_a_gradient_stay() -> None:
    moved, kept = nn.Parameter(ot.tensor([1.0])), nn.Parameter(ot.tensor([1.0]))
    optimizer = optim.Adam([moved, kept], lr=0.1)
    moved.sum().backward()
    optimizer.step()
    assert kept.tolist() == [1]
    assert moved.tolist() != [1]
    assert list(optimizer.state_dict()["state"]) == [0]


def test_gradients_are_forgotten_or_made_zero() -> None:
    weight = nn.Parameter(ot.tensor([1.0]))
    optimizer = optim.SGD([weight], lr=0.1)
    weight.sum().backward()
    optimizer.zero_grad(set_to_none=False)
    assert weight.grad is not None
    assert weight.grad.tolist() == [0]
    optimizer.zero_grad()
    assert weight.grad is None


WEIGHT = nn.Parameter(ot.tensor([1.0]))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: optim.SGD([]), "no parameters"),
        (lambda: optim.SGD([WEIGHT], lr=-1), "lr cannot be -1"),
        (lambda: optim.SGD([WEIGHT], lr=float("nan")), "lr cannot be nan"),
        (lambda: optim.SGD([WEIGHT], nesterov=True), "nesterov needs a momentum"),
        (lambda: optim.Adam([WEIGHT], betas=(0.9, 1.0)), "betas"),
        (lambda: optim.SGD([WEIGHT, WEIGHT]), "given twice"),
        (lambda: optim.SGD([WEIGHT * 2]), "not a leaf"),
        (lambda: optim.SGD([{"params": [WEIGHT], "rate": 1}]), "unknown options: rate"),
        (
            lambda: optim.SGD([WEIGHT]).load_state_dict({"param_groups": [], "state": {}}),
            r"have \[1\] parameters",
        ),
    ],
)
def test_bad_options_are_refused_with_the_reason(make: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        make()


def test_repr_shows_the_options_of_each_group() -> None:
    text = repr(optim.SGD([WEIGHT], lr=0.5))
    assert text.startswith("SGD (\nParameter Group 0\n")
    assert "    lr: 0.5\n" in text
