"""Every operator of the table, on its own samples: values, gradients, layouts, ranges, docs.

A new operator file needs no line here. Other files test the peculiarities of single operators.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import opscope
from opscope import tensor as ot
from opscope._tensor import functions
from tests.tensor import oracle
from tests.tensor.ranges import ranges
from tests.tensor.samples import (
    Array,
    Constant,
    Sample,
    base_operators,
    call,
    outputs_of,
    samples_of,
)

OPERATORS = base_operators()
DIFFERENTIABLE = [name for name in OPERATORS if ot.operators[name].is_differentiable]
COMPOSITE = [name for name in OPERATORS if ot.operators[name].is_composite]
IN_PLACE = [name for name in OPERATORS if name + "_" in ot.operators]
TOLERANCE = {np.dtype("float32"): 2e-5, np.dtype("float64"): 1e-12}


def ours(sample: Sample, lay_out: Any = np.ndarray.copy) -> tuple[Any, ...]:
    args, kwargs = sample.mapped(lambda array: ot.from_numpy(lay_out(array)))
    return outputs_of(call(sample.operator, *args, **kwargs))


def theirs(sample: Sample) -> tuple[Any, ...]:
    args, kwargs = sample.mapped(oracle.convert)
    args = tuple(oracle.convert(arg) for arg in args)
    kwargs = {name: oracle.convert(value) for name, value in kwargs.items()}
    return outputs_of(oracle.function(sample.operator)(*args, **kwargs))


# The contents of their results are undefined; only these properties are checked.
UNDEFINED = {
    "core::empty",
    "core::empty_like",
    "core::rand",
    "core::rand_like",
    "core::randint",
    "core::randn",
    "core::randn_like",
    "core::randperm",
}


def assert_same(name: str, ours: tuple[Any, ...], theirs: tuple[Any, ...]) -> None:
    assert len(ours) == len(theirs)
    for own, their in zip(ours, theirs, strict=True):
        expected = their.detach().numpy()
        assert own.shape == expected.shape
        assert own.dtype.name == str(expected.dtype)
        if name in UNDEFINED:
            continue
        tolerance = TOLERANCE.get(expected.dtype, 0)
        np.testing.assert_allclose(
            own.detach().numpy(), expected, rtol=tolerance, atol=tolerance, strict=True
        )


def fortran(array: Array) -> Array:
    return np.array(array, order="F")


def stepped(array: Array) -> Array:
    wide = np.zeros([2 * size for size in array.shape], array.dtype)
    view = wide[(..., *(slice(None, None, 2),) * array.ndim)]
    view[...] = array
    return view


def backwards(array: Array) -> Array:
    key = (..., *(slice(None, None, -1),) * array.ndim)
    return array[key].copy()[key]


def inner(array: Array) -> Array:
    return np.pad(array, 1)[(..., *(slice(1, -1),) * array.ndim)]


LAYOUTS = [fortran, stepped, backwards, inner]


@pytest.mark.parametrize("name", OPERATORS)
def test_operator_has_samples_docs_and_a_signature(name: str) -> None:
    operator = ot.operators[name]
    assert operator.samples.strip()
    assert operator.doc.strip()
    function = functions[name.partition("::")[2]]
    assert tuple(inspect.signature(function).parameters) == operator.parameters


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", OPERATORS)
def test_operator_computes_what_pytorch_computes(name: str, dtype: str) -> None:
    for sample in samples_of(name, dtype=dtype):
        assert_same(name, ours(sample), theirs(sample))


@pytest.mark.parametrize("lay_out", LAYOUTS)
@pytest.mark.parametrize("name", OPERATORS)
def test_operator_does_not_depend_on_the_layout_of_its_inputs(name: str, lay_out: Any) -> None:
    for sample in samples_of(name):
        if name == "core::view":  # may reject a layout by design
            continue
        assert_same(name, ours(sample, lay_out), theirs(sample))


@pytest.mark.parametrize("name", OPERATORS)
def test_operator_call_is_one_range(name: str) -> None:
    for sample in samples_of(name):
        args, kwargs = sample.mapped(lambda array: ot.from_numpy(array))
        with ranges() as seen:
            call(name, *args, **kwargs)
        assert seen[0] == (name, opscope.RecordScope.FUNCTION)
        if not ot.operators[name].is_composite:
            assert len(seen) == 1


@pytest.mark.parametrize("name", COMPOSITE)
def test_composite_operator_leaves_the_nodes_of_what_it_calls(name: str) -> None:
    assert ot.operators[name].node_name is None
    nodes = {operator.node_name for operator in ot.operators.values()}
    for sample in samples_of(name):
        args, kwargs = sample.mapped(
            lambda array: ot.tensor(array).requires_grad_(array.dtype.kind == "f")
        )
        for output in outputs_of(call(name, *args, **kwargs)):
            assert output.grad_fn is None or output.grad_fn.name() in nodes


def numeric_gradient(sample: Sample, position: int, cotangents: list[Array]) -> Array:
    """The derivative of sum(output * cotangent), by central differences over each element of one
    array."""
    arrays = [array.copy() for array in sample.arrays()]
    target = arrays[position]
    gradient = np.zeros_like(target)

    def value() -> float:
        left = iter(arrays)
        args, kwargs = sample.mapped(lambda _: ot.from_numpy(next(left)))
        outputs = outputs_of(call(sample.operator, *args, **kwargs))
        return sum(
            float((output.numpy() * cotangent).sum())
            for output, cotangent in zip(outputs, cotangents, strict=True)
            if cotangent is not None
        )

    for index in np.ndindex(*target.shape):
        kept = target[index]
        step = 1e-6 * max(1.0, abs(kept))
        target[index] = kept + step
        above = value()
        target[index] = kept - step
        below = value()
        target[index] = kept
        gradient[index] = (above - below) / (2 * step)
    return gradient


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradient_equals_finite_differences(name: str) -> None:
    random = np.random.default_rng(0)
    for sample in samples_of(name, positive=True):
        leaves: list[ot.Tensor] = []

        def leaf(array: Array, leaves: list[ot.Tensor] = leaves) -> ot.Tensor:
            tensor = ot.tensor(array)
            wants_grad = tensor.is_floating_point() and not isinstance(array, Constant)
            leaves.append(tensor.requires_grad_(wants_grad))
            return tensor

        args, kwargs = sample.mapped(leaf)
        outputs = outputs_of(call(name, *args, **kwargs))
        cotangents = [
            random.normal(size=output.shape) if output.requires_grad else None for output in outputs
        ]
        roots = [output for output in outputs if output.requires_grad]
        if not roots:
            continue
        wanted = [tensor for tensor in leaves if tensor.requires_grad]
        gradients = ot.grad(
            roots,
            wanted,
            [ot.tensor(cotangent) for cotangent in cotangents if cotangent is not None],
            allow_unused=True,
        )
        found = iter(gradients)
        for position, tensor in enumerate(leaves):
            if not tensor.requires_grad:
                continue
            gradient = next(found)
            expected = numeric_gradient(sample, position, cotangents)
            actual = np.zeros(tensor.shape) if gradient is None else gradient.numpy()
            assert actual.shape == tensor.shape
            np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-7, err_msg=sample.line)


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place_form_writes_its_first_argument_and_returns_it(name: str) -> None:
    for sample in samples_of(name):
        expected = ours(sample)[0]
        args, kwargs = sample.mapped(lambda array: ot.tensor(array))
        if args[0].shape != expected.shape or args[0].dtype is not expected.dtype:
            continue
        before = args[0]._version
        returned = call(name + "_", *args, **kwargs)
        assert returned is args[0]
        assert returned._version == before + 1
        np.testing.assert_array_equal(returned.numpy(), expected.numpy())
