"""Gradients of gradients from the tape, against finite differences of the gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opscope import tensor as ot
from tests.tensor.samples import (
    Array,
    Constant,
    Sample,
    base_operators,
    call,
    outputs_of,
    samples_of,
)

# Probabilities above 1 are invalid.
STEPLESS = {"core::bernoulli"}
DIFFERENTIABLE = [
    name
    for name in base_operators()
    if ot.operators[name].is_differentiable and name not in STEPLESS
]


def first_gradients(sample: Sample, arrays: list[Array], weights: list[Array]) -> Any:
    """The leaves of one call, its inputs and the weights of its outputs; and the gradients of the
    weighted sum of these, on the tape. `weights` is filled where it is empty.
    """
    leaves: list[ot.Tensor] = []
    left = iter(arrays)

    def leaf(like: Array) -> ot.Tensor:
        tensor = ot.tensor(next(left))
        if is_varied(like):
            leaves.append(tensor.requires_grad_())
        return tensor

    args, kwargs = sample.mapped(leaf)
    outputs = outputs_of(call(sample.operator, *args, **kwargs))
    roots = [output for output in outputs if output.requires_grad]
    if not weights:
        weights += random_arrays(roots, seed=0)
    cotangents = [ot.tensor(weight).requires_grad_() for weight in weights]
    gradients = ot.grad(roots, leaves, cotangents, create_graph=True, allow_unused=True)
    return [*leaves, *cotangents], [each for each in gradients if each is not None]


def is_varied(array: Array) -> bool:
    return array.dtype.kind == "f" and not isinstance(array, Constant)


def random_arrays(like: list[ot.Tensor], seed: int) -> list[Array]:
    random = np.random.default_rng(seed)
    return [np.asarray(random.normal(size=each.shape)) for each in like]


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradient_of_the_gradient_equals_finite_differences(name: str) -> None:
    for sample in samples_of(name, positive=True):
        arrays, weights = [array.copy() for array in sample.arrays()], list[Array]()
        wanted, gradients = first_gradients(sample, arrays, weights)
        on_tape = [each for each in gradients if each.requires_grad]
        if not on_tape:
            continue
        cotangents = random_arrays(on_tape, seed=1)
        second = ot.grad(
            on_tape, wanted, [ot.tensor(each) for each in cotangents], allow_unused=True
        )

        def value(sample: Sample = sample, inputs: Any = (arrays, weights, cotangents)) -> float:
            _, found = first_gradients(sample, inputs[0], inputs[1])
            kept = [each.detach().numpy() for each in found if each.requires_grad]
            return sum(
                float((each * cotangent).sum())
                for each, cotangent in zip(kept, inputs[2], strict=True)
            )

        targets = [array for array in arrays if is_varied(array)] + weights
        for target, actual in zip(targets, second, strict=True):
            expected = np.zeros_like(target)
            for index in np.ndindex(*target.shape):
                kept = target[index]
                step = 1e-6 * max(1.0, abs(kept))
                target[index] = kept + step
                above = value()
                target[index] = kept - step
                expected[index] = (above - value()) / (2 * step)
                target[index] = kept
            given = np.zeros(target.shape) if actual is None else actual.detach().numpy()
            np.testing.assert_allclose(given, expected, rtol=1e-4, atol=1e-6, err_msg=sample.line)
