"""Extreme arguments of operators, for which approximate formulas fail."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from opscope import tensor as ot

NAN, INF = math.nan, math.inf
EDGES = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 0.3, -0.7, 2.5]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floor_divide_rounds_the_exact_quotient_down(dtype: str) -> None:
    a = np.array([1.0, -1.0, 6.0, 0.7, *EDGES], dtype).reshape(-1, 1)
    b = np.array([0.1, -0.1, *EDGES], dtype)
    found = (ot.from_numpy(a) // ot.from_numpy(b)).numpy()
    expected = torch.from_numpy(a) // torch.from_numpy(b)
    np.testing.assert_array_equal(found, expected.numpy())
    assert (ot.tensor(1.0) // 0.1).item() == 9


def test_isclose_of_integers_does_not_overflow() -> None:
    least, most = -(2**31), 2**31 - 1
    a = ot.tensor([least, most, 5], dtype=ot.int32)
    b = ot.tensor([most, -1, 5], dtype=ot.int32)
    assert ot.isclose(a, b).tolist() == [False, False, True]
    assert ot.isclose(a > 0, b > 0).tolist() == [False, False, True]


@pytest.mark.parametrize("dtype", ["uint8", "int64", "bool"])
def test_logsumexp_of_integers_is_that_of_their_floats(dtype: str) -> None:
    numbers = ot.tensor([[1, 0, 3], [0, 1, 1]], dtype=ot.int64).to(getattr(ot, dtype))
    expected = torch.logsumexp(torch.tensor(numbers.tolist()).float(), 1)
    found = ot.logsumexp(numbers, 1)
    assert found.dtype is ot.float32
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool", "int64", "float64"])
def test_sum_has_the_dtype_that_was_asked_for(dtype: str) -> None:
    numbers = [[200, 100, 3], [0, 0, 0]]
    found = ot.tensor(numbers).sum(1, dtype=getattr(ot, dtype))
    expected = torch.tensor(numbers).sum(1, dtype=getattr(torch, dtype))
    assert found.dtype.name == dtype
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize(("least", "most"), [(NAN, None), (None, NAN), (NAN, 1.0), (0.0, NAN)])
def test_clamp_to_nan_is_nan(least: float | None, most: float | None) -> None:
    for numbers in (ot.tensor([1.0, -INF]), ot.tensor([1, 2])):
        assert np.isnan(ot.clamp(numbers, least, most).numpy()).all()


@pytest.mark.parametrize(
    "power",
    [
        lambda x, m: x**0,
        lambda x, m: x ** m.tensor([0.0, 0.0, 1.0, 2.0]),
        lambda x, m: 0**x,
        lambda x, m: m.tensor([0.0, 0.0, 2.0, 3.0]) ** x,
    ],
)
def test_gradients_of_powers_at_zero_are_numbers(power: Callable[..., Any]) -> None:
    numbers = [0.0, 2.0, 0.0, 1.0]
    found, expected = ot.tensor(numbers, requires_grad=True), torch.tensor(numbers)
    expected.requires_grad_()
    power(found, ot).sum().backward()
    power(expected, torch).sum().backward()
    assert found.grad is not None and expected.grad is not None
    np.testing.assert_allclose(found.grad.numpy(), expected.grad.numpy(), rtol=1e-6)


def test_integers_to_a_negative_power_are_refused() -> None:
    with pytest.raises(ValueError, match=r"core::pow: integers \(int64\).*use -1\.0"):
        ot.tensor([2]) ** -1
    assert (ot.tensor([2]) ** -1.0).tolist() == [0.5]


def test_relu_passes_gradients_where_it_is_nan() -> None:
    x = ot.tensor([NAN, 1.0, -1.0, 0.0], requires_grad=True)
    x.relu().sum().backward()
    assert x.grad is not None and x.grad.tolist() == [1, 1, 0, 0]


def test_gradient_of_cumsum_without_dimensions() -> None:
    x = ot.tensor(3.0, requires_grad=True)
    x.cumsum(0).backward()
    assert x.grad is not None and x.grad.item() == 1


def test_masked_fill_keeps_the_dtype() -> None:
    mask = ot.tensor([True, False])
    assert ot.tensor([False, False]).masked_fill(mask, 1).tolist() == [True, False]
    filled = ot.tensor([1, 2], dtype=ot.int32).masked_fill(mask, 7.9)
    assert filled.dtype is ot.int32 and filled.tolist() == [7, 2]


@pytest.mark.parametrize(
    ("dtype", "number"),
    [
        ("uint8", 256),
        ("uint8", -1),
        ("int32", 2**31),
        ("int64", NAN),
        ("int64", INF),
        ("int64", 2.0**63),
        ("float32", 1e39),
        ("float16", 65520),
    ],
)
def test_a_number_that_the_dtype_does_not_hold_is_refused(dtype: str, number: float) -> None:
    kind = getattr(ot, dtype)
    t = ot.zeros(3, dtype=kind)
    fits = pytest.raises(ValueError, match=rf"core::\w+: .* does not fit into {dtype}, which holds")
    with fits:
        t.fill_(number)
    with fits:
        t[0] = number
    with fits:
        t[ot.tensor([0, 1])] = number
    with fits:
        ot.full((2,), number, dtype=kind)
    if dtype != "float16":
        with fits:
            t.masked_fill(ot.tensor([True, False, False]), number)
        with fits:
            ot.scatter(t, 0, ot.tensor([0]), number)
    assert t.to(ot.float64).sum().item() == 0


@pytest.mark.parametrize(
    ("dtype", "number"),
    [
        ("uint8", 255),
        ("int32", -(2**31)),
        ("int64", 2**63 - 1),
        ("int64", -(2.0**63)),
        ("float32", 3.4028234663852886e38),
        ("float32", -INF),
        ("bool", 2.5),
    ],
)
def test_the_last_numbers_that_a_dtype_holds_are_taken(dtype: str, number: float) -> None:
    found = ot.full((1,), number, dtype=getattr(ot, dtype))
    assert found.item() == (number if dtype != "bool" else True)


def test_sign_of_bools_is_themselves() -> None:
    assert ot.sign(ot.tensor([True, False])).tolist() == [True, False]


def test_a_negative_standard_deviation_is_refused() -> None:
    with pytest.raises(ValueError, match="core::normal: std is -1"):
        ot.normal(0.0, -1.0, (2,))


def test_parts_are_gathered_from_nothing() -> None:
    parts = ot.zeros(0, requires_grad=True)
    rows = ot.ones(2, 3, requires_grad=True)
    whole = ot.cat([parts, rows, rows], 1)
    assert whole.shape == (2, 6)
    whole.sum().backward()
    assert parts.grad is not None and parts.grad.shape == (0,)
    assert rows.grad is not None and rows.grad.tolist() == [[2.0] * 3] * 2
    assert ot.cat([parts.detach(), parts.detach()]).shape == (0,)
