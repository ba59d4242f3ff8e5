"""Each operator of the core, called by a graph, does what its eager call does.

On the operators' own samples: with all arguments as inputs, and with all but tensors as constants.
"""

from __future__ import annotations

import inspect
import json
from typing import Any

import numpy as np
import pytest

from opscope import tensor as ot
from opscope._tensor import Program, functions
from tests.graphs.graphs import program
from tests.tensor.samples import Sample, base_operators, call, outputs_of, samples_of

OPERATORS = base_operators()
UNDEFINED = {"core::empty", "core::empty_like"}


def type_of(value: Any) -> str:
    if isinstance(value, ot.Tensor):
        return "Tensor"
    if isinstance(value, list):
        return f"List[{type_of(value[0]) if value else 'int'}]"
    if isinstance(value, ot.dtype):
        return "Dtype"
    return "None" if value is None else type(value).__name__


def constant(value: Any) -> str | None:
    """The text of a constant; None: a graph has no constant of that type."""
    if isinstance(value, ot.dtype):
        return json.dumps(value.name)
    if "Tensor" in type_of(value):
        return None
    return json.dumps(value) if isinstance(value, str) else repr(value)


def in_order(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The arguments by the schema's order, up to the last that is given."""
    signature = inspect.signature(functions[name.partition("::")[2]])
    bound = signature.bind(*args, **kwargs)
    given = set(bound.arguments)
    bound.apply_defaults()
    names = list(bound.arguments)
    while names and names[-1] not in given:
        names.pop()
    values = [bound.arguments[name] for name in names]
    return [list(value) if isinstance(value, tuple) else value for value in values]


def built(name: str, values: list[Any], with_constants: bool) -> tuple[Program, list[Any]]:
    """The program of one node, and its inputs."""
    taken, nodes, uses, inputs = [], [], [], []
    for index, value in enumerate(values):
        text = constant(value) if with_constants else None
        uses.append(f"%a{index}")
        if text is None:
            taken.append(f"%a{index} : {type_of(value)}")
            inputs.append(value)
        else:
            nodes.append(f"  %a{index} : {type_of(value)} = prim::Constant[value={text}]()\n")
    arrow = ot.operators[name].schema.rpartition("->")[2].strip()
    made = ["List[Tensor]"] if arrow == "Tensor[]" else ["Tensor"] * arrow.count("Tensor")
    outputs = [f"%r{index}" for index in range(len(made))]
    defined = ", ".join(f"{name} : {type}" for name, type in zip(outputs, made, strict=True))
    nodes.append(f"  {defined} = {name}({', '.join(uses)})\n")
    text = f"graph({', '.join(taken)}):\n{''.join(nodes)}  return ({', '.join(outputs)})\n"
    return program(text), inputs


def facts(outputs: tuple[Any, ...]) -> list[Any]:
    return [
        (output.dtype.name, output.shape, output.detach().numpy().tobytes()) for output in outputs
    ]


def check(sample: Sample, name: str, with_constants: bool) -> None:
    def arguments() -> tuple[tuple[Any, ...], dict[str, Any]]:
        return sample.mapped(lambda array: ot.from_numpy(array.copy()))

    args, kwargs = arguments()
    ot.manual_seed(7)
    eager = outputs_of(call(name, *args, **kwargs))
    run, inputs = built(name, in_order(name, *arguments()), with_constants)
    for _ in range(2 if not name.endswith("_") else 1):
        ot.manual_seed(7)
        assert facts(outputs_of(run(*inputs))) == facts(eager)


@pytest.mark.parametrize("with_constants", [False, True], ids=["inputs", "constants"])
@pytest.mark.parametrize("name", sorted(set(OPERATORS) - UNDEFINED))
def test_a_graph_calls_the_operator_as_eager_code_does(name: str, with_constants: bool) -> None:
    for sample in samples_of(name, dtype=np.float32):
        check(sample, name, with_constants)


@pytest.mark.parametrize("name", [name for name in OPERATORS if name + "_" in ot.operators])
def test_a_graph_writes_in_place_as_eager_code_does(name: str) -> None:
    for sample in samples_of(name, dtype=np.float32)[:1]:
        check(sample, name + "_", with_constants=True)


def test_gradients_flow_through_a_graph() -> None:
    run = program(
        "graph(%x : Tensor):\n"
        '  %w : Tensor = prim::GetAttr[name="w"]()\n'
        "  %y : Tensor = core::mul(%x, %w)\n"
        "  %z : Tensor = core::sum(%y)\n"
        "  return (%z)\n",
        {"w": ot.tensor([2.0, 3.0], requires_grad=True)},
    )
    x = ot.tensor([1.0, 4.0], requires_grad=True)
    run(x).backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 3.0]


def test_an_int_is_taken_where_the_eager_call_takes_it() -> None:
    text = (
        "graph(%x : Tensor, %p : int):\n"
        "  %no : bool = prim::Constant[value=False]()\n"
        "  %y : Tensor = core::dropout(%x, %p, %no)\n"
        "  %z : Tensor = core::max_pool2d(%y, %p)\n"
        "  return (%z)\n"
    )
    x = ot.ones([1, 2, 2])
    assert program(text)(x, 1).tolist() == x.tolist()
