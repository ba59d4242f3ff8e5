"""Reductions and operators on rows in special cases of PyTorch's rules: ties, zeros, NaN, empty."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch

from opscope import tensor as ot

NAN, INF = float("nan"), float("inf")
ODD_ROWS = [
    [-INF] * 5,
    [INF, 1.0, 2.0],
    [2.0, NAN, 3.0, NAN],
    [-INF, 1.0, 2.0],
    [-INF] * 3000 + [1.0] * 3000,
    [1.0] * 3000 + [NAN] + [2.0] * 10,
    [-1000.0] * 5000 + [1000.0] * 3,
]


def gradients(library: Any, call: Any, *arrays: Any) -> list[Any]:
    """Of the sum of what `call(library, *leaves)` gives, for each leaf."""
    leaves = [library.tensor(array) for array in arrays]
    for leaf in leaves:
        leaf.requires_grad_()
    call(library, *leaves).sum().backward()
    return [leaf.grad.numpy() for leaf in leaves]


@pytest.mark.parametrize("row", ODD_ROWS, ids=range(len(ODD_ROWS)))
@pytest.mark.parametrize(
    "name", ["softmax", "log_softmax", "amax", "amin", "argmax", "argmin", "sum"]
)
def test_nan_and_infinities_go_through_as_in_pytorch(name: str, row: list[float]) -> None:
    array = np.array([row, row[::-1]], np.float32)
    for dim in (0, 1):
        found = getattr(ot.tensor(array), name)(dim)
        wanted = getattr(torch.from_numpy(array), name)(dim)
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=2e-6)


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_equal_elements_share_the_gradient(name: str) -> None:
    pair = np.array([1.0, 2.0, 3.0, NAN]), np.array([2.0, 2.0, 2.0, 2.0])

    def call(library: Any, a: Any, b: Any) -> Any:
        return getattr(library, name)(a, b) * library.tensor([1.0, 10.0, 100.0, 1000.0])

    for found, wanted in zip(
        gradients(ot, call, *pair), gradients(torch, call, *pair), strict=True
    ):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("zeros", list(itertools.product([0, 1, 2], [0, 1, 3])))
def test_gradient_of_a_product_with_zeros_is_pytorchs(zeros: tuple[int, int]) -> None:
    array = np.arange(1.0, 7.0).reshape(2, 3)
    for row, count in zip(array, zeros, strict=True):
        row[:count] = 0
    for dim in (None, 0, 1):

        def call(library: Any, a: Any, dim: int | None = dim) -> Any:
            return a.prod() if dim is None else a.prod(dim) * library.tensor([1.0, 2.0, 3.0])[dim:]

        (found,), (wanted,) = gradients(ot, call, array), gradients(torch, call, array)
        np.testing.assert_allclose(found, wanted)


def test_nothing_has_no_extreme_but_no_rows_have_none() -> None:
    nothing = ot.zeros([0, 3])
    for name in ("amax", "amin", "argmax", "argmin"):
        with pytest.raises(RuntimeError, match=f"core::{name}.*\\[0, 3\\]"):
            getattr(nothing, name)(0)
        assert tuple(getattr(nothing, name)(1).shape) == (0,)


@pytest.mark.parametrize("count", [1000, 100_000, 1_000_003])
def test_float32_sum_is_as_exact_as_that_of_numpy(count: int) -> None:
    random = np.random.default_rng(count)
    for array in (np.full(count, 0.1), random.random(count), random.normal(size=count)):
        narrow = array.astype(np.float32)
        exact, scale = narrow.sum(dtype=np.float64), np.abs(narrow).sum(dtype=np.float64)
        error = abs(ot.tensor(narrow).sum().item() - exact) / scale
        assert error <= max(abs(float(narrow.sum()) - exact) / scale, 2**-23)


@pytest.mark.parametrize("length", [1, 31, 33, 63, 65, 255, 257, 511, 513, 2049, 9_000])
@pytest.mark.parametrize("rows", [1, 7, 8, 9, 17])
def test_rows_fold_alone_wherever_runs_blocks_and_stretches_end(rows: int, length: int) -> None:
    random = np.random.default_rng(rows * length)
    wide = random.normal(size=(2, rows, length + 3)).astype(np.float32)
    for array in (wide[:, :, :length], wide[:, ::-1, length:0:-1], wide[:, :, 3:].swapaxes(1, 2)):
        axis = 1 if array.strides[1] == 4 else 2
        own = ot.from_numpy(array)
        scale = np.abs(array).sum(axis, dtype=np.float64)
        exact = array.sum(axis, dtype=np.float64)
        assert np.all(np.abs(own.sum(axis).numpy() - exact) <= 2**-22 * scale)
        assert np.array_equal(own.amax(axis).numpy(), array.max(axis))
        assert np.array_equal(own.argmin(axis).numpy(), array.argmin(axis))
        bytes_ = (np.abs(array) * 60).astype(np.uint8)
        own = ot.from_numpy(bytes_)
        assert np.array_equal(own.sum(axis).numpy(), bytes_.sum(axis, dtype=np.int64))
        assert np.array_equal(own.amin(axis).numpy(), bytes_.min(axis))
        assert np.array_equal(own.all(axis).numpy(), bytes_.all(axis))
