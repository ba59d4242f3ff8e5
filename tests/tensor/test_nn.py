"""Modules and optimizers train as PyTorch's do from the same weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import opscope
from opscope import tensor as ot
from opscope.tensor import nn, optim
from tests.tensor.ranges import ranges


class Net(nn.Module):
    def __init__(self) -> None:
        self.first = nn.Linear(4, 8)
        self.second = nn.Linear(8, 2, bias=False)

    def forward(self, input: ot.Tensor) -> Any:
        return self.second(self.first(input).tanh())


def test_parameters_have_dotted_names_and_require_grad() -> None:
    parameters = dict(Net().named_parameters())
    assert {name: parameter.shape for name, parameter in parameters.items()} == {
        "first.weight": (8, 4),
        "first.bias": (8,),
        "second.weight": (2, 8),
    }
    assert all(
        type(parameter) is nn.Parameter and parameter.requires_grad and parameter.is_leaf
        for parameter in parameters.values()
    )


def test_state_goes_from_one_module_to_another() -> None:
    source, target = Net(), Net()
    target.load_state_dict(source.state_dict())
    for own, their in zip(source.parameters(), target.parameters(), strict=True):
        assert own.tolist() == their.tolist()
        assert own.data_ptr() != their.data_ptr()
    with pytest.raises(KeyError, match=r"second\.weight"):
        target.load_state_dict({"first.weight": ot.tensor(1.0)})
    state = source.state_dict()
    state["first.bias"] = ot.tensor([1.0])
    with pytest.raises(ValueError, match=r"first\.bias has shape \(8,\)"):
        target.load_state_dict(state)


def test_a_seed_makes_the_weights_repeatable() -> None:
    weights = []
    for seed in (1, 1, 2):
        ot.manual_seed(seed)
        weights.append(nn.Linear(3, 2).weight.tolist())
    assert weights[0] == weights[1] != weights[2]
    assert all(abs(weight) <= 3**-0.5 for row in weights[0] for weight in row)


def test_modes_reach_every_child() -> None:
    net = Net()
    assert net.eval() is net
    assert not net.second.training
    net.train()
    assert net.first.training


@pytest.mark.parametrize(
    ("own", "their"),
    [
        (
            lambda parameters: optim.SGD(parameters, lr=0.1),
            lambda parameters: torch.optim.SGD(parameters, lr=0.1),
        ),
        (
            lambda parameters: optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=0.01),
            lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=0.01),
        ),
        (
            lambda parameters: optim.Adam(parameters, lr=0.01, weight_decay=0.01),
            lambda parameters: torch.optim.Adam(parameters, lr=0.01, weight_decay=0.01),
        ),
    ],
)
def test_losses_are_pytorchs_step_by_step(own: Any, their: Any) -> None:
    random = np.random.default_rng(0)
    inputs = random.normal(size=(16, 4)).astype(np.float32)
    targets = random.normal(size=(16, 2)).astype(np.float32)
    net = Net()
    twin = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2, bias=False)
    )
    with torch.no_grad():
        for parameter, value in zip(twin.parameters(), net.parameters(), strict=True):
            parameter.copy_(torch.from_numpy(value.detach().numpy()))
    own, their = own(net.parameters()), their(twin.parameters())
    for _ in range(20):
        difference = net(ot.from_numpy(inputs)) - ot.from_numpy(targets)
        loss = (difference * difference).mean()
        own.zero_grad()
        loss.backward()
        own.step()
        their_loss = ((twin(torch.from_numpy(inputs)) - torch.from_numpy(targets)) ** 2).mean()
        their.zero_grad()
        their_loss.backward()
        their.step()
        assert loss.item() == pytest.approx(their_loss.item(), abs=1e-5)


def test_optimizer_step_is_one_range_around_its_operators() -> None:
    weight = nn.Parameter(ot.tensor([1.0]))
    (weight * weight).backward()
    optimizer = optim.SGD([weight], lr=0.5)
    with ranges() as seen:
        optimizer.step()
    assert [name for name, _ in seen] == ["Optimizer.step#SGD.step", "core::add_"]
    assert seen[0][1] is opscope.RecordScope.USER_SCOPE
    assert weight.tolist() == [0]


def test_optimizer_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no parameters"):
        optim.SGD([])
