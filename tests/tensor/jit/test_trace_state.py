"""What traced functions write, and what a trace leaves as it was."""

import types
from collections.abc import Callable
from typing import Any

import pytest

from opscope import tensor as ops
from opscope.tensor import jit, nn


def test_tracing_changes_neither_module_nor_examples() -> None:
    net = nn.Sequential(nn.BatchNorm1d(3))
    before = {name: value.clone() for name, value in net.state_dict().items()}
    x = ops.randn(4, 3)
    kept = x.clone()

    jit.trace(net, x)
    jit.trace(lambda x: x.mul_(2), x)
    assert ops.equal(x, kept)
    for name, value in net.state_dict().items():
        assert ops.equal(value, before[name])


def test_a_model_writes_its_inputs_as_the_function_did() -> None:
    def function(x: ops.Tensor) -> ops.Tensor:
        x[1:].add_(10)
        return x * 2

    model = jit.trace(function, ops.zeros(3))
    x = ops.zeros(3)
    assert model(x).tolist() == [0.0, 20.0, 20.0]
    assert x.tolist() == [0.0, 10.0, 10.0]


def test_a_model_updates_running_statistics_as_the_module_does() -> None:
    net = nn.BatchNorm1d(3)
    model = jit.trace(net, ops.randn(4, 3))
    x = ops.randn(6, 3)
    model(x)
    twin = nn.BatchNorm1d(3)
    twin(x)
    for name, value in twin.state_dict().items():
        assert ops.equal(model.attributes[name], value)


def test_results_written_by_out_are_traced() -> None:
    def function(x: ops.Tensor) -> ops.Tensor:
        buffer = ops.zeros(3)
        view = buffer[:]
        ops.mul(x, 2, out=buffer)
        return view + buffer

    model = jit.trace(function, ops.ones(3))
    assert model(ops.full([3], 2.0)).tolist() == [8.0, 8.0, 8.0]


def test_an_empty_out_takes_the_memory_of_the_result() -> None:
    def function(x: ops.Tensor) -> ops.Tensor:
        buffer, values, places = ops.empty(0), ops.empty(0), ops.empty(0, dtype=ops.int64)
        ops.mul(x, 2, out=buffer)
        ops.max(x.reshape(1, -1), 1, out=(values, places))
        return buffer + values + places

    model = jit.trace(function, ops.ones(3))
    assert model(ops.tensor([1.0, 5.0, 4.0])).tolist() == [8.0, 16.0, 14.0]


TOTAL = ops.zeros(3)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: TOTAL.add_(x),
        lambda x: TOTAL[:2].add_(x[:2]),
        lambda x: ops.add(TOTAL, x, out=TOTAL),
        lambda x: (TOTAL * 1, ops.mul(x, 2, out=TOTAL)),
    ],
)
def test_a_write_to_a_constant_is_refused(function: Callable[[ops.Tensor], Any]) -> None:
    with pytest.raises(jit.TraceError, match=r"core::\w+ at .* each run of the graph would write"):
        jit.trace(function, ops.ones(3))


def test_an_attribute_that_is_set_to_another_tensor_is_refused() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            self.register_buffer("count", ops.zeros(1))

        count: ops.Tensor

        def forward(self, x: ops.Tensor) -> Any:
            self.count = self.count + 1
            return x * self.count

    with pytest.raises(jit.TraceError, match="sets 'count' to another tensor"):
        jit.trace(Net(), ops.ones(2))


def test_an_attribute_with_other_memory_is_refused() -> None:
    net = nn.Linear(2, 2)

    def function(self: nn.Linear, x: ops.Tensor) -> Any:
        self.weight.data = self.weight * 2
        return self(x)

    with pytest.raises(jit.TraceError, match="replaces the memory of 'weight'"):
        jit.trace(types.MethodType(function, net), ops.ones(1, 2))


def test_an_operator_written_in_python_is_its_operators() -> None:
    @ops.op("mine::double")
    def double(x: ops.Tensor) -> Any:
        return x + x

    model = jit.trace(lambda x: double(x) * 2, ops.ones(2))
    assert [kind for kind in model.graph.operators() if "prim" not in kind] == [
        "core::add",
        "core::mul",
    ]


def test_a_write_to_a_parameter_is_undone() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            self.weight = nn.Parameter(ops.ones(2))

        def forward(self, x: ops.Tensor) -> Any:
            with ops.no_grad():
                self.weight.add_(1)
            return x * self.weight

    net = Net()
    model = jit.trace(net, ops.ones(2))
    assert net.weight.tolist() == [1.0, 1.0]
    assert model(ops.ones(2)).tolist() == [2.0, 2.0]
    assert net.weight.tolist() == [2.0, 2.0]


def test_memory_behind_data_is_detached() -> None:
    model = jit.trace(lambda x: x * (x * 2).data, ops.ones(2))
    x = ops.ones(2).requires_grad_()
    model(x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 2.0]
