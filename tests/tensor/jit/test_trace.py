"""`trace`: the graph has each operator of the run, and does what the function does."""

import functools
from collections.abc import Callable
from typing import Any

import pytest

from opscope import tensor as ops
from opscope.tensor import jit, nn


def _net() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64, 10),
    )


GOLDEN = """\
graph(%input : Tensor):
  %1 : Tensor = prim::GetAttr[name="0.weight"]()
  %2 : Tensor = prim::GetAttr[name="0.bias"]()
  %3 : Tensor = core::linear(%input, %1, %2), scope: 0 # test_trace.py:LINE
  %4 : Tensor = core::relu(%3), scope: 1 # test_trace.py:LINE
  %5 : int = prim::Constant[value=1]()
  %6 : int = prim::Constant[value=-1]()
  %7 : Tensor = core::flatten(%4, %5, %6), scope: 2 # test_trace.py:LINE
  return (%7)
"""


def test_the_graph_has_each_outermost_operator_once() -> None:
    net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Flatten())
    line = test_the_graph_has_each_outermost_operator_once.__code__.co_firstlineno + 3
    text = str(jit.trace(net, ops.ones(2, 4)).graph)
    assert text == GOLDEN.replace("LINE", str(line))


@pytest.mark.parametrize("training", [False, True])
def test_a_convolutional_net_is_traced_in_its_mode(training: bool) -> None:
    net = _net().train(training)
    model = jit.trace(net, ops.randn(2, 1, 8, 8))
    other = ops.randn(5, 1, 8, 8)
    assert ops.allclose(model(other), net(other))
    assert ("core::add_" in model.graph.operators()) is training


def test_a_transformer_layer_is_traced() -> None:
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True).eval()
    model = jit.trace(layer, ops.randn(2, 5, 16))
    other = ops.randn(2, 5, 16)
    assert ops.allclose(model(other), layer(other))
    scopes = {
        line.split(", scope: ")[1].split(" ")[0]
        for line in str(model.graph).splitlines()
        if ", scope: " in line
    }
    assert {"self_attn", "self_attn.out_proj", "linear1", "norm2"} <= scopes


def _views(x: ops.Tensor) -> ops.Tensor:
    return x.T[1:, ::2].reshape(-1)[2:] * 2


def _writes(x: ops.Tensor) -> ops.Tensor:
    y = x.clone()
    y[1:, ::2] += 1
    y[0] = x[1]
    y[y > 0.5] = 0
    y.relu_()
    return y


def _indexes(x: ops.Tensor) -> tuple[ops.Tensor, ...]:
    rows = ops.tensor([0, 2])
    return x[rows, 1:3].sum(1), x[x > 0], x[[1, 0]], x[..., None, -1], x[-1, -2:]


def _several(x: ops.Tensor) -> tuple[Any, ...]:
    values, indices = x.max(1)
    first, second = x.split(2, dim=1)
    return values, [first, second], (indices, None)


def _scalars(x: ops.Tensor) -> ops.Tensor:
    return (2 - x).clamp(min=0.1).pow(2) / 3 + x.sum(dim=(0, 1), keepdim=True).to(ops.float64)


def _loop(x: ops.Tensor) -> ops.Tensor:
    total = ops.zeros_like(x[0])
    for row in x:
        total = total + row * len(x)
    return total


def _grad(leaf: ops.Tensor) -> ops.Tensor:
    assert leaf.grad is not None
    return leaf.grad


FUNCTIONS = [_views, _writes, _indexes, _several, _scalars, _loop]


def _flat(result: Any) -> list[Any]:
    if isinstance(result, list | tuple):
        return [each for item in result for each in _flat(item)]
    return [result]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__name__)
def test_the_model_does_what_the_function_does(function: Callable[..., Any]) -> None:
    model = jit.trace(function, ops.randn(3, 4))
    for _ in range(2):
        other = ops.randn(3, 4)
        expected, actual = function(other.clone()), model(other.clone())
        assert type(actual) is type(expected)
        for one, two in zip(_flat(expected), _flat(actual), strict=True):
            assert one is two is None or ops.equal(one, two)


@pytest.mark.parametrize("function", [_views, _writes, _scalars, _loop], ids=lambda f: f.__name__)
def test_gradients_are_those_of_the_function(function: Callable[..., Any]) -> None:
    model = jit.trace(function, ops.randn(3, 4))
    x = ops.randn(3, 4)
    found = []
    for run in (function, model):
        leaf = x.clone().requires_grad_()
        run(leaf).sum().backward()
        found.append(_grad(leaf))
    assert ops.equal(*found)


def test_training_the_model_trains_the_module() -> None:
    net = _net().eval()
    model = jit.trace(net, ops.randn(2, 1, 8, 8))
    x = ops.randn(3, 1, 8, 8)
    net(x).sum().backward()
    expected = [_grad(each) for each in net.parameters()]
    net.zero_grad()
    model(x).sum().backward()
    assert [id(each) for each in model.parameters()] == [id(each) for each in net.parameters()]
    for gradient, parameter in zip(expected, net.parameters(), strict=True):
        assert ops.allclose(gradient, _grad(parameter))


def test_a_block_without_grad_mode_takes_no_part_in_gradients() -> None:
    weight = nn.Parameter(ops.ones(3))

    def function(x: ops.Tensor) -> ops.Tensor:
        with ops.no_grad():
            scale = (x * weight).sum()
        return x * scale

    model = jit.trace(function, ops.arange(3.0), check=True)
    found = []
    for run in (function, model):
        leaf = ops.arange(3.0).requires_grad_()
        run(leaf).sum().backward()
        found.append(_grad(leaf))
    assert ops.equal(*found)
    assert weight.grad is None


def test_examples_are_lists_and_tuples_of_tensors_too() -> None:
    def function(pair: Any, items: Any) -> Any:
        return pair[0] + pair[1][0] * items[2]

    a, b, c, d, e = (ops.randn(2) for _ in range(5))
    model = jit.trace(function, (a, (b,)), [c, d, e])
    assert ops.equal(model((b, (c,)), [a, a, d]), b + c * d)


def test_parameters_are_called_as_those_of_the_function() -> None:
    def function(first: ops.Tensor, second: ops.Tensor, scale: float = 2.0) -> ops.Tensor:
        return first - second * scale

    model = jit.trace(functools.partial(function, scale=3.0), ops.ones(2), ops.ones(2))
    assert model(second=ops.ones(2), first=ops.zeros(2)).tolist() == [-3.0, -3.0]
    with pytest.raises(TypeError, match="second"):
        model(ops.ones(2))


def test_a_method_of_a_module_has_the_modules_attributes() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            self.weight = nn.Parameter(ops.ones(3))
            self.register_buffer("offset", ops.zeros(3), persistent=False)

        offset: ops.Tensor

        def encode(self, x: ops.Tensor) -> Any:
            return x * self.weight + self.offset

    model = jit.trace(Net().encode, ops.ones(3))
    assert list(model.attributes) == ["weight", "offset"]
    assert [name for name, _ in model.named_parameters()] == ["weight"]
    assert model.name == "encode"


def test_other_tensors_are_constants() -> None:
    table = ops.arange(4.0)
    model = jit.trace(lambda x: x + table + ops.tensor([1.0]), ops.ones(4))
    assert list(model.attributes) == ["constants.0", "constants.1"]
    assert model.attributes["constants.0"] is table
    assert model.state_dict() == {}


def test_a_constant_takes_no_name_of_the_module() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            self.constants = nn.Module()
            self.constants.register_parameter("0", nn.Parameter(ops.ones(1)))

        def forward(self, x: ops.Tensor) -> Any:
            return x * getattr(self.constants, "0") + ops.tensor([5.0])

    model = jit.trace(Net(), ops.ones(1))
    assert list(model.attributes) == ["constants.0", "constants.1"]
    assert list(model.state_dict()) == ["constants.0"]
    assert model(ops.ones(1)).item() == 6.0


def test_a_list_longer_than_callbacks_show_is_whole() -> None:
    parts = [ops.tensor([float(number)]) for number in range(100)]
    model = jit.trace(lambda x: ops.cat([x, *parts]), ops.ones(1))
    assert model(ops.zeros(1)).shape == (101,)


def test_a_traced_model_inside_a_function_becomes_its_operators() -> None:
    inner = jit.trace(nn.Linear(3, 2), ops.ones(1, 3))
    outer = jit.trace(lambda x: inner(x).relu(), ops.ones(1, 3))
    assert outer.graph.operators()["core::linear"] == 1


def test_calls_have_the_models_label() -> None:
    import opscope

    model = jit.trace(lambda x: x + 1, ops.ones(1), name="adder")
    x, seen = ops.ones(1), []
    handle = opscope.add_thread_local_callback(lambda fn: seen.append(fn.debug_info))
    try:
        model(x)
    finally:
        opscope.remove_callback(handle)
    assert {each["model_id"] for each in seen} == {"adder"}
