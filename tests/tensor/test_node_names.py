"""Names of nodes on the tape: each name belongs to one node or one operator."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch

import opscope
from opscope import tensor as ot
from tests.tensor.ranges import ranges
from tests.tensor.samples import outputs_of, samples_of

BACKWARD = opscope.RecordScope.BACKWARD_FUNCTION
WITH_A_NODE = sorted(name for name, op in ot.operators.items() if op.node_name is not None)

# Calls of PyTorch's that leave a node of the operator's own name.
AS_IN_PYTORCH: dict[str, Any] = {
    "relu": (),
    "log1p": (),
    "exp2": (),
    "expm1": (),
    "t": (),
    "log_softmax": (1,),
    "addmm": (torch.ones(3, 3), torch.ones(3, 3)),
    "index_select": (0, torch.tensor([0])),
    "add_": (1,),
    "relu_": (),
}


def nodes_behind(output: ot.Tensor) -> Counter[str]:
    """The names of the nodes behind it, each node once."""
    found: Counter[str] = Counter()
    front = [output.grad_fn]
    while front:
        node = front.pop()
        if node is not None:
            found[node.name()] += 1
            front.extend(node.next_functions)
    return found


def test_no_node_is_called_as_an_operator() -> None:
    assert len(WITH_A_NODE) > 100
    for name in WITH_A_NODE:
        node = ot.operators[name].node_name
        assert node is not None and node not in ot.operators
        assert node.startswith("core::") and node.endswith("Backward")
    assert not any(name.endswith("Backward") for name in ot.operators)


def test_each_operator_has_a_node_of_its_own_shared_with_its_in_place_form_alone() -> None:
    operators: dict[str, set[str]] = {}
    for name in WITH_A_NODE:
        node = ot.operators[name].node_name
        assert node is not None
        operators.setdefault(node, set()).add(name.removesuffix("_"))
    assert all(len(names) == 1 for names in operators.values())


@pytest.mark.parametrize("name", AS_IN_PYTORCH)
def test_nodes_are_called_as_in_pytorch(name: str) -> None:
    theirs = getattr(torch.ones(3, 3, requires_grad=True) * 1, name)(*AS_IN_PYTORCH[name])
    assert f"core::{theirs.grad_fn.name()}" == f"{ot.operators[f'core::{name}'].node_name}0"


@pytest.mark.parametrize("name", [name for name in WITH_A_NODE if not name.endswith("_")])
def test_backward_counts_each_node_once_and_no_operator_as_one(name: str) -> None:
    operator = ot.operators[name]
    for sample in samples_of(name):
        args, kwargs = sample.mapped(
            lambda array: ot.tensor(array).requires_grad_(array.dtype.kind == "f")
        )
        outputs = [
            output for output in outputs_of(operator(*args, **kwargs)) if output.requires_grad
        ]
        if not operator.is_differentiable or not outputs:
            continue
        output = outputs[0]
        assert nodes_behind(output) == {operator.node_name: 1}
        with ranges() as seen:
            output.backward(ot.ones_like(output))
        assert Counter(range for range, scope in seen if scope is BACKWARD) == nodes_behind(output)
        called = Counter(range for range, scope in seen if scope is not BACKWARD)
        assert set(called) <= set(ot.operators)


def test_a_node_and_the_operator_of_its_formula_are_counted_apart() -> None:
    x = ot.tensor([1.0, -2.0], requires_grad=True)
    y = (x * 2).relu_().neg().relu().sum()
    with ranges() as seen:
        y.backward()
    called = Counter(name for name, _ in seen)
    assert called["core::ReluBackward"] == called["core::relu_backward"] == 2
    assert called["core::SumBackward"] == 1
