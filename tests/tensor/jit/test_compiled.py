"""The class of compiled models."""

import inspect
import threading

import pytest

from opscope import tensor as ops
from opscope.tensor import jit

FORWARD = """\
graph(%x : Tensor, %scale : float):
  %1 : Tensor = prim::CallFunction[name="helpers.scaled"](%x, %scale)
  %2 : Tensor = prim::CallFunction[name="helpers.scaled"](%x, %scale)
  %3 : Tensor = core::add(%1, %2)
  return (%3)
"""
SCALED = """\
graph(%x : Tensor, %by : float):
  %unused : Tensor = core::neg(%x)
  %1 : Tensor = prim::GetAttr[name="weight"]()
  %2 : Tensor = core::mul(%x, %1)
  %3 : Tensor = core::mul(%2, %by)
  return (%3)
"""


def _model(**changes: object) -> jit.CompiledModel:
    arguments = {
        "functions": {"forward": FORWARD, "helpers.scaled": SCALED},
        "attributes": {"weight": ops.full([2], 3.0).requires_grad_()},
        "parameters": ["weight"],
        "signature": [("x",), ("scale", 2.0)],
    }
    return jit.CompiledModel(**{**arguments, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", jit.__all__)
def test_every_public_name_says_what_it_is(name: str) -> None:
    assert inspect.getdoc(getattr(jit, name))


def test_arguments_are_bound_as_python_binds_them() -> None:
    model, x = _model(), ops.ones(2)
    assert model(x).tolist() == model(x, 2.0).tolist() == model(scale=2.0, x=x).tolist()
    assert model(x).tolist() == [12.0, 12.0]
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        model()
    with pytest.raises(TypeError, match="too many positional arguments"):
        model(x, 2.0, 3.0)


def test_without_a_signature_names_are_those_of_the_graph() -> None:
    assert _model(signature=None)(x=ops.ones(2), scale=1.0).tolist() == [6.0, 6.0]


def test_the_graph_that_runs_is_inlined_and_optimized() -> None:
    model = _model()
    assert model.graph.callees() == ["helpers.scaled"]
    assert model.inlined_graph.callees() == []
    assert model.inlined_graph.operators()["core::mul"] == 4
    assert model.graph_for(ops.ones(2)).operators()["prim::Fused"] == 1
    with pytest.raises(TypeError, match="missing a required argument"):
        model.graph_for()


def test_the_graph_is_a_copy() -> None:
    model = _model(functions={"forward": SCALED})
    before = str(model.graph)
    model.graph.run_pass("dead_code")
    assert str(model.graph) == before


def test_parameters_are_listed_once_under_their_first_name() -> None:
    weight = ops.full([2], 3.0).requires_grad_()
    tensors = {"weight": weight, "tied": weight, "constants.0": ops.ones(1)}
    model = _model(attributes=tensors, parameters=["weight", "tied"])
    assert [name for name, _ in model.named_parameters()] == ["weight"]
    assert list(model.state_dict()) == ["weight", "tied"]
    assert model.attributes == tensors


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"entry": "backward"}, "the model has no function 'backward', which a call runs"),
        ({"parameters": ["bias", "weight"]}, "parameters are not among the attributes: bias$"),
        ({"functions": {"forward": "graph("}}, "function 'forward': line 1, column 7"),
        ({"functions": {"forward": FORWARD}}, "helpers.scaled"),
        ({"attributes": {}, "parameters": []}, "weight"),
        ({"signature": [("x",)]}, "1 parameters, but the function 'forward' takes 2 values"),
    ],
)
def test_what_cannot_run_is_refused(changes: dict[str, object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        _model(**changes)


def test_threads_trace_and_run_at_once() -> None:
    weights = [ops.full([2], float(number)) for number in range(2)]
    failures: list[BaseException] = []
    start = threading.Barrier(2)

    def work(weight: ops.Tensor) -> None:
        try:
            start.wait()
            for _ in range(50):
                model = jit.trace(lambda x: (x * weight)[x > 0] + 1, ops.ones(2))
                assert model(ops.ones(2)).tolist() == (weight + 1).tolist()
                assert model.graph.operators()["core::mul"] == 1
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(weight,)) for weight in weights]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
