"""Containers, hooks, buffers and other things that modules of PyTorch's programs rely on."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

from opscope import tensor as ot
from opscope.tensor import nn


def test_module_dict_names_its_modules() -> None:
    def make(lib: Any) -> Any:
        made = lib.ModuleDict({"a": lib.Linear(2, 3)})
        made["b"] = lib.ReLU()
        return made

    own, their = make(nn), make(torch.nn)
    assert repr(own) == repr(their)
    assert list(own.state_dict()) == list(their.state_dict())
    assert list(own) == list(own.keys()) == ["a", "b"]
    assert own["a"] is next(iter(own.values()))
    assert "b" in own
    own.pop("b")
    assert len(own) == 1
    with pytest.raises(KeyError):
        own["b"]


def test_parameter_lists_and_dicts_are_trained() -> None:
    def make(lib: Any, zeros: Any) -> Any:
        module = lib.Module()
        module.list = lib.ParameterList([zeros(2), zeros(3)])
        module.dict = lib.ParameterDict({"x": zeros(1)})
        return module

    own, their = make(nn, ot.zeros), make(torch.nn, torch.zeros)
    names = [name for name, _ in their.named_parameters()]
    assert [name for name, _ in own.named_parameters()] == names
    assert [len(each) for each in own.list] == [2, 3]


def test_a_buffer_is_state_and_not_trained() -> None:
    class Holder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.kept = nn.Buffer(ot.ones(2))
            self.passing = nn.Buffer(ot.ones(2), persistent=False)

    holder = Holder()
    assert list(holder.state_dict()) == ["kept"]
    assert [name for name, _ in holder.named_buffers()] == ["kept", "passing"]
    assert list(holder.parameters()) == []
    assert holder.get_buffer("kept") is holder.kept


def test_hooks_run_in_order_and_may_replace_arguments_and_results() -> None:
    def run(lib: Any, tensor: Any) -> list[Any]:
        module = lib.Identity()
        seen: list[Any] = []
        before = module.register_forward_pre_hook(lambda m, args: (args[0] + 1,))
        module.register_forward_hook(lambda m, args, out: seen.append(("a", out.item())))
        module.register_forward_hook(lambda m, args, out: out * 10, prepend=True)
        module.register_forward_hook(
            lambda m, args, kwargs, out: seen.append(("k", kwargs)), with_kwargs=True
        )
        seen.append(module(tensor(1.0)).item())
        before.remove()
        before.remove()
        seen.append(module(tensor(1.0)).item())
        return seen

    assert run(nn, ot.tensor) == run(torch.nn, torch.tensor)


def test_sequential_takes_names_slices_and_replacements() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))
    assert len(model[:2]) == 2
    model[1] = nn.Tanh()
    assert "Tanh" in repr(model)
    model.add_module("last", nn.Sigmoid())
    assert model(ot.zeros(1, 2)).shape == (1, 1)
    assert isinstance(model[-1], nn.Sigmoid)
    assert [name for name, _ in copy.deepcopy(model).named_children()] == ["0", "1", "2", "last"]


def test_modules_convert_as_pytorchs_programs_ask() -> None:
    model = nn.Linear(2, 2)
    assert model.to("cpu") is model.to(ot.device("cpu")) is model.cpu() is model
    assert model.to("cpu", ot.float64).weight.dtype is ot.float64
    assert model.to(ot.zeros(1)).weight.dtype is ot.float32
    assert model.half().weight.dtype is ot.float16
    with pytest.raises(RuntimeError, match="on the cpu"):
        model.cuda()
    assert (
        str(model.float().load_state_dict(model.state_dict())) == "<All keys matched successfully>"
    )
    assert list(model.state_dict(prefix="net.")) == ["net.weight", "net.bias"]
    assert model.get_parameter("weight") is model.weight
    assert nn.Parameter().shape == (0,)


def test_names_that_are_not_there_point_to_the_nearest() -> None:
    with pytest.raises(AttributeError, match="nearest spelling is 'Conv2d'"):
        _ = nn.Conv2D
    assert nn.functional.relu(ot.tensor(-1.0)).item() == 0
    assert nn.init.ones_(ot.zeros(2)).tolist() == [1, 1]
    assert nn.utils.clip_grad_norm_([], 1.0).item() == 0
    assert nn.parameter.Parameter is nn.Parameter
