"""Modules name their parameters, keep their state and change their modes as PyTorch's do."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import torch

from opscope import tensor as ot
from opscope.tensor import nn


class Net(nn.Module):
    def __init__(self) -> None:
        self.first = nn.Linear(4, 8)
        self.norm = nn.BatchNorm1d(8)
        self.second = nn.Linear(8, 2, bias=False)

    def forward(self, input: ot.Tensor) -> Any:
        return self.second(self.norm(self.first(input)).tanh())


def test_parameters_and_buffers_have_dotted_names() -> None:
    net = Net()
    parameters = dict(net.named_parameters())
    assert {name: parameter.shape for name, parameter in parameters.items()} == {
        "first.weight": (8, 4),
        "first.bias": (8,),
        "norm.weight": (8,),
        "norm.bias": (8,),
        "second.weight": (2, 8),
    }
    assert all(
        type(parameter) is nn.Parameter and parameter.requires_grad and parameter.is_leaf
        for parameter in parameters.values()
    )
    buffers = [name for name, _ in net.named_buffers()]
    assert buffers == ["norm.running_mean", "norm.running_var", "norm.num_batches_tracked"]
    assert len(list(net.buffers())) == 3
    assert set(net.state_dict()) == {*parameters, *buffers}
    assert list(net.parameters(recurse=False)) == []


def test_modules_are_found_once_and_in_order() -> None:
    net = Net()
    net.again = net.first
    assert [name for name, _ in net.named_modules()] == ["", "first", "norm", "second"]
    assert list(net.children()) == [net.first, net.norm, net.second, net.first]
    assert next(iter(net.modules())) is net
    assert len(list(net.parameters())) == 5
    assert {"first.weight", "again.weight"} <= set(net.state_dict())


def test_state_goes_from_one_module_to_another() -> None:
    source, target = Net(), Net()
    source(ot.randn((4, 4)))
    loaded = target.load_state_dict(source.state_dict())
    assert loaded == ([], [])
    for (name, own), their in zip(
        target.state_dict().items(), source.state_dict().values(), strict=True
    ):
        assert own.tolist() == their.tolist(), name
        assert own.data_ptr() != their.data_ptr()
    assert target.norm.num_batches_tracked is not None
    assert target.norm.num_batches_tracked.item() == 1


def test_a_state_that_does_not_fit_is_refused_whole_naming_all_that_is_wrong() -> None:
    net = Net()
    before = net.second.weight.tolist()
    state: dict[str, Any] = net.state_dict()
    del state["first.bias"]
    state |= {"third.weight": ot.tensor(1.0), "norm.weight": ot.zeros((9,))}
    state["second.weight"] = ot.zeros((2, 8))
    with pytest.raises(RuntimeError) as caught:
        net.load_state_dict(state)
    for text in (
        "state is not that of a Net",
        "missing keys: first.bias",
        "unexpected keys: third.weight",
        "norm.weight has shape (8,) in the module, (9,) in the state",
    ):
        assert text in str(caught.value)
    assert net.second.weight.tolist() == before
    del state["norm.weight"]
    loaded = net.load_state_dict(state, strict=False)
    assert loaded.missing_keys == ["first.bias", "norm.weight"]
    assert loaded.unexpected_keys == ["third.weight"]
    assert net.second.weight.tolist() == [[0.0] * 8] * 2


@pytest.mark.parametrize("convert", [lambda t: t, lambda t: t.numpy(), lambda t: t.t().clone().t()])
def test_weights_of_pytorch_and_arrays_load(convert: Any) -> None:
    their = torch.nn.Linear(4, 3)
    own = nn.Linear(4, 3)
    own.load_state_dict({name: convert(each) for name, each in their.state_dict().items()})
    assert own.weight.tolist() == their.weight.tolist()


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
    assert not net.norm.training
    net.train()
    assert net.norm.training


def test_apply_visits_children_first() -> None:
    seen: list[str] = []
    Net().apply(lambda module: seen.append(type(module).__name__))
    assert seen == ["Linear", "BatchNorm1d", "Linear", "Net"]


def test_a_change_of_dtype_keeps_the_parameters_that_an_optimizer_holds() -> None:
    net = Net()
    before = list(net.parameters())
    (net(ot.randn((4, 4))) ** 2).sum().backward()
    assert net.to(ot.float64) is net
    assert all(own is held for own, held in zip(net.parameters(), before, strict=True))
    assert {parameter.dtype for parameter in before} == {ot.float64}
    assert {parameter.grad.dtype for parameter in before if parameter.grad is not None} == {
        ot.float64
    }
    assert net.norm.running_mean is not None
    assert net.norm.running_mean.dtype is ot.float64
    assert net.norm.num_batches_tracked is not None
    assert net.norm.num_batches_tracked.dtype is ot.int64
    assert net(ot.randn((4, 4), dtype=ot.float64)).dtype is ot.float64
    assert net.float().first.weight.dtype is ot.float32
    with pytest.raises(TypeError, match="int64"):
        net.to(ot.int64)


def test_gradients_are_forgotten_and_frozen() -> None:
    net = Net()
    net(ot.randn((4, 4))).sum().backward()
    net.zero_grad()
    assert all(parameter.grad is None for parameter in net.parameters())
    net.requires_grad_(False)
    assert not net(ot.randn((4, 4))).requires_grad


def test_a_parameter_is_not_replaced_by_a_plain_tensor() -> None:
    layer = nn.Linear(2, 2)
    with pytest.raises(TypeError, match=r"Linear\.weight is a parameter"):
        layer.weight = ot.zeros((2, 2))  # type: ignore[assignment]
    layer.bias = None
    assert list(layer.state_dict()) == ["weight"]


def test_lists_and_sequences_count_their_modules() -> None:
    layers = nn.ModuleList([nn.Linear(2, 2)]).append(nn.Tanh())
    assert [name for name, _ in layers.named_children()] == ["0", "1"]
    assert len(layers) == 2
    assert isinstance(layers[-1], nn.Tanh)
    assert len(layers[:1]) == 1
    steps = nn.Sequential(*layers, lambda input: input * 2)
    assert len(steps) == 3
    assert [type(step).__name__ for step in steps][:2] == ["Linear", "Tanh"]
    assert steps(ot.zeros((1, 2))).shape == (1, 2)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
def test_a_copied_module_has_parameters_of_its_own(duplicate: Any) -> None:
    net = Net()
    twin = duplicate(net)
    input = ot.randn((4, 4))
    assert twin(input).tolist() == net(input).tolist()
    assert all(type(parameter) is nn.Parameter for parameter in twin.parameters())
    with ot.no_grad():
        for parameter in twin.parameters():
            parameter.fill_(0)
    assert np.abs(net.first.weight.detach().numpy()).max() > 0


def test_nested_modules_read_as_pytorchs() -> None:
    def make(lib: Any) -> Any:
        return lib.Sequential(
            lib.Embedding(3, 4),
            lib.Sequential(lib.ReLU(), lib.ModuleList([lib.Linear(2, 3, bias=False)])),
            lib.CrossEntropyLoss(),
        )

    assert repr(make(nn)) == repr(make(torch.nn))
    assert repr(nn.Parameter(ot.tensor([1.0]))) == repr(torch.nn.Parameter(torch.tensor([1.0])))
