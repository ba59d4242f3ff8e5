"""Every operator of the table, on its own samples: traced, run as a graph and as Python code."""

import itertools
import math
import warnings
from typing import Any

import pytest

from opscope import tensor as ops
from opscope.tensor import jit
from tests.tensor.samples import Sample, call, outputs_of, samples_of


def _function(sample: Sample) -> Any:
    """The sample call as a function of its tensors."""

    def run(*tensors: ops.Tensor) -> Any:
        rest = iter(tensors)
        args, kwargs = sample.mapped(lambda _: next(rest))
        return call(sample.operator, *args, **kwargs)

    return run


def _tensors(sample: Sample, *, with_grad: bool) -> list[ops.Tensor]:
    """The sample's tensors, those of floats on the tape if `with_grad`."""
    made = [ops.tensor(array) for array in sample.arrays()]
    is_inplace = sample.operator.endswith("_")
    for tensor in made:
        tensor.requires_grad = with_grad and tensor.is_floating_point() and not is_inplace
    return made


def _gradients(run: Any, tensors: list[ops.Tensor]) -> list[Any]:
    results = [each for each in outputs_of(run(*tensors)) if each.requires_grad]
    if results:
        total = ops.stack([each.sum() for each in results]).sum()
        total.backward()
    return [each.grad for each in tensors]


def _is_same(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    return one.shape == other.shape and one.dtype is other.dtype and _has_same_elements(one, other)


def _has_same_elements(one: ops.Tensor, other: ops.Tensor) -> bool:
    if one.is_floating_point():
        return ops.allclose(one.double(), other.double(), rtol=1e-9, atol=1e-9, equal_nan=True)
    return ops.equal(one, other)


def _is_possible(sample: Sample) -> bool:
    """Not so: writes in place that would have to broadcast the target."""
    args, kwargs = sample.mapped(ops.tensor)
    try:
        call(sample.operator, *args, **kwargs)
    except RuntimeError:
        return False
    return True


# The elements of empty tensors are undefined.
CASES = [
    (name, sample)
    for name in ops.operators
    if name.startswith("core::") and name not in ("core::empty", "core::empty_like")
    for sample in samples_of(name, positive=True)
    if _is_possible(sample)
]


@pytest.mark.parametrize(
    ("name", "sample"), CASES, ids=[f"{name}({sample.line})" for name, sample in CASES]
)
def test_the_graph_and_its_python_code_do_what_the_operator_does(name: str, sample: Sample) -> None:
    run = _function(sample)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = jit.trace(run, *_tensors(sample, with_grad=True))
    is_random = any("random numbers" in str(each.message) for each in caught)
    nodes = [kind for kind in model.graph.operators() if not kind.startswith("prim::")]
    assert nodes == [name]
    names: dict[str, Any] = {"tensor": ops, "math": math, "attributes": model.attributes}
    exec(model.code, names)
    expected = outputs_of(run(*_tensors(sample, with_grad=False)))
    for each in (model, names["forward"]):
        inputs = _tensors(sample, with_grad=False)
        for one, other in itertools.zip_longest(outputs_of(each(*inputs)), expected):
            assert (one.shape, one.dtype) == (other.shape, other.dtype)
            assert is_random or _is_same(one, other)
    if ops.operators[name].is_differentiable and not is_random:
        gradients = _gradients(run, _tensors(sample, with_grad=True))
        of_model = _gradients(model, _tensors(sample, with_grad=True))
        assert all(map(_is_same, of_model, gradients))
