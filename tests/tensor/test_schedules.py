"""Schedules of learning rates, and the optimizers that few programs use: step by step as
PyTorch's."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from opscope import tensor as ot
from opscope.tensor import optim

Make = Callable[[Any, Any], Any]

SCHEDULES: dict[str, Make] = {
    "LambdaLR": lambda lib, o: lib.LambdaLR(o, lambda step: 0.9**step),
    "LambdaLR each": lambda lib, o: lib.LambdaLR(o, [lambda n: 1 / (n + 1), lambda n: 1 + n]),
    "MultiplicativeLR": lambda lib, o: lib.MultiplicativeLR(o, lambda step: 0.9),
    "StepLR": lambda lib, o: lib.StepLR(o, 3, gamma=0.5),
    "MultiStepLR": lambda lib, o: lib.MultiStepLR(o, [2, 5, 5], gamma=0.5),
    "ConstantLR": lambda lib, o: lib.ConstantLR(o, 0.5, 4),
    "LinearLR": lambda lib, o: lib.LinearLR(o, 0.25, 0.75, total_iters=4),
    "ExponentialLR": lambda lib, o: lib.ExponentialLR(o, 0.8),
    "PolynomialLR": lambda lib, o: lib.PolynomialLR(o, 6, power=2.0),
    "CosineAnnealingLR": lambda lib, o: lib.CosineAnnealingLR(o, 5, eta_min=0.01),
    "CosineAnnealingWarmRestarts": lambda lib, o: lib.CosineAnnealingWarmRestarts(o, 3, 2),
    "OneCycleLR": lambda lib, o: lib.OneCycleLR(o, max_lr=0.5, total_steps=13),
    "OneCycleLR linear": lambda lib, o: lib.OneCycleLR(
        o, [0.5, 0.1], epochs=4, steps_per_epoch=4, anneal_strategy="linear", three_phase=True
    ),
    "SequentialLR": lambda lib, o: lib.SequentialLR(
        o, [lib.LinearLR(o, 0.1, total_iters=3), lib.ExponentialLR(o, 0.9)], milestones=[4]
    ),
    "ChainedScheduler": lambda lib, o: lib.ChainedScheduler(
        [lib.ConstantLR(o, 0.1, 3), lib.ExponentialLR(o, 0.9)]
    ),
}


def optimizers() -> tuple[Any, Any]:
    made = []
    for lib, optimizer in ((ot, optim.SGD), (torch, torch.optim.SGD)):
        groups = [{"params": [lib.zeros(2, requires_grad=True)], "lr": 0.3}]
        groups.append({"params": [lib.zeros(2, requires_grad=True)]})
        made.append(optimizer(groups, lr=0.1, momentum=0.9))
    return made[0], made[1]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SCHEDULES)
def test_rates_are_pytorchs_step_by_step(name: str) -> None:
    own, their = optimizers()
    ours = SCHEDULES[name](optim.lr_scheduler, own)
    theirs = SCHEDULES[name](torch.optim.lr_scheduler, their)
    for step in range(12):
        rates = [group["lr"] for group in their.param_groups]
        assert [group["lr"] for group in own.param_groups] == pytest.approx(rates, rel=1e-9), step
        assert ours.get_last_lr() == pytest.approx(theirs.get_last_lr(), rel=1e-9)
        momenta = [group["momentum"] for group in their.param_groups]
        assert [group["momentum"] for group in own.param_groups] == pytest.approx(momenta)
        own.step()
        their.step()
        ours.step()
        theirs.step()


@pytest.mark.parametrize("options", [{}, {"mode": "max", "cooldown": 1, "threshold_mode": "abs"}])
def test_plateaus_are_pytorchs(options: Any) -> None:
    own, their = optimizers()
    ours = optim.lr_scheduler.ReduceLROnPlateau(own, patience=1, min_lr=0.02, **options)
    theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(their, patience=1, min_lr=0.02, **options)
    for metric in (3.0, 2.0, 2.0, 2.0, 2.1, 1.0, 1.5, 1.6, 1.7, 1.8, 4.0):
        ours.step(metric)
        theirs.step(metric)
        rates = [group["lr"] for group in their.param_groups]
        assert [group["lr"] for group in own.param_groups] == pytest.approx(rates)


def test_a_schedule_goes_on_from_its_state() -> None:
    first, _ = optimizers()
    schedule = optim.lr_scheduler.StepLR(first, 2)
    schedule.step()
    other, _ = optimizers()
    again = optim.lr_scheduler.StepLR(other, 2)
    again.load_state_dict(schedule.state_dict())
    other.load_state_dict(first.state_dict())
    schedule.step()
    again.step()
    assert other.param_groups[0]["lr"] == first.param_groups[0]["lr"] == pytest.approx(0.03)


OPTIMIZERS: list[tuple[str, dict[str, Any]]] = [
    ("RMSprop", {}),
    ("RMSprop", {"momentum": 0.5, "centered": True, "weight_decay": 0.1}),
    ("Adagrad", {"lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.1}),
    ("Adadelta", {"weight_decay": 0.1}),
    ("Adamax", {"weight_decay": 0.1}),
    ("NAdam", {"weight_decay": 0.1}),
    ("NAdam", {"decoupled_weight_decay": True, "weight_decay": 0.1}),
    ("RAdam", {"weight_decay": 0.1, "betas": (0.8, 0.9)}),
    ("SGD", {"lr": 0.1, "maximize": True}),
    ("AdamW", {"maximize": True, "fused": False}),
]


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
def test_steps_are_pytorchs(name: str, options: dict[str, Any]) -> None:
    array = np.random.default_rng(0).normal(size=(4, 3))
    values = []
    for lib, kind in ((ot, getattr(optim, name)), (torch, getattr(torch.optim, name))):
        param = lib.tensor(array, requires_grad=True)
        optimizer = kind([param], **options)
        for step in range(8):
            optimizer.zero_grad()
            ((param - step) ** 2).sum().backward()
            optimizer.step()
        values.append(param.detach().numpy())
    np.testing.assert_allclose(values[0], values[1], atol=1e-9)


@pytest.mark.parametrize("name", sorted({name for name, _ in OPTIMIZERS}))
def test_optimizers_take_pytorchs_options_and_no_others(name: str) -> None:
    ours, theirs = getattr(optim, name), getattr(torch.optim, name)
    names = set(inspect.signature(ours).parameters)
    assert names == set(inspect.signature(theirs).parameters)
    with pytest.raises(TypeError, match="learning_rate"):
        ours([ot.ones(2)], learning_rate=0.1)


@pytest.mark.parametrize("norm_type", [1, 2, 3, float("inf")])
def test_gradients_are_clipped_as_by_pytorch(norm_type: float) -> None:
    found = []
    for lib in (ot, torch):
        nn = lib.nn
        leaves = [lib.tensor([3.0, 4.0], requires_grad=True), lib.tensor(2.0, requires_grad=True)]
        for leaf in leaves:
            (leaf * leaf).sum().backward()
        total = nn.utils.clip_grad_norm_(leaves, 1.5, norm_type=norm_type)
        nn.utils.clip_grad_value_(leaves[0], 0.5)
        vector = nn.utils.parameters_to_vector(leaves)
        found.append([total.item(), *vector.tolist(), *(leaf.grad.tolist() for leaf in leaves)])
    assert found[0][-2] == pytest.approx(found[1][-2])
    assert found[0][:4] == pytest.approx(found[1][:4])


def test_initial_weights_have_pytorchs_deviations() -> None:
    from opscope.tensor.nn import init

    torch.manual_seed(0)
    ot.manual_seed(0)
    cases: list[tuple[str, dict[str, Any]]] = [
        ("xavier_uniform_", {"gain": 2.0}),
        ("xavier_normal_", {}),
        ("kaiming_uniform_", {"a": 1.0}),
        ("kaiming_normal_", {"mode": "fan_out", "nonlinearity": "relu"}),
        ("uniform_", {"a": -2.0, "b": 3.0}),
        ("normal_", {"std": 3.0}),
        ("trunc_normal_", {"std": 2.0}),
        ("orthogonal_", {"gain": 2.0}),
        ("sparse_", {"sparsity": 0.5}),
        ("eye_", {}),
        ("constant_", {"val": 3.0}),
    ]
    for name, options in cases:
        own = getattr(init, name)(ot.zeros(60, 40), **options)
        their = getattr(torch.nn.init, name)(torch.zeros(60, 40), **options)
        assert own.std().item() == pytest.approx(their.std().item(), rel=0.08, abs=1e-9), name
        assert own.abs().max().item() <= their.abs().max().item() * 1.3
    q = init.orthogonal_(ot.zeros(3, 5))
    np.testing.assert_allclose((q @ q.T).numpy(), np.eye(3), atol=1e-5)
