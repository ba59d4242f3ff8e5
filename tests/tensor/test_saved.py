"""Nodes save only what backward reads, so that all else may be written in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from opscope import tensor as ot

FACTORS = {
    "mul": ((3, 4), (3, 4)),
    "mm": ((3, 4), (4, 5)),
    "bmm": ((2, 3, 4), (2, 4, 5)),
    "matmul": ((2, 3, 4), (4, 5)),
}


def leaf(shape: tuple[int, ...], seed: int) -> ot.Tensor:
    numbers = np.random.default_rng(seed).normal(size=shape)
    return ot.tensor(numbers, requires_grad=True)


@pytest.mark.parametrize("name", FACTORS)
@pytest.mark.parametrize("constant", [0, 1])
def test_a_factor_of_a_constant_may_be_written_after(name: str, constant: int) -> None:
    operator: Callable[..., Any] = getattr(ot, name)
    leaves = [leaf(shape, seed) for seed, shape in enumerate(FACTORS[name])]
    factors = [each * 1 for each in leaves]
    factors[constant] = factors[constant].detach()
    product = operator(*factors)
    factors[1 - constant].add_(1)
    product.sum().backward()
    gradient = leaves[1 - constant].grad
    leaves[1 - constant].grad = None
    operator(
        *[each if i != constant else each.detach() for i, each in enumerate(leaves)]
    ).sum().backward()
    expected = leaves[1 - constant].grad
    assert gradient is not None and expected is not None
    np.testing.assert_allclose(gradient.numpy(), expected.numpy(), rtol=1e-12)


@pytest.mark.parametrize("name", FACTORS)
@pytest.mark.parametrize("written", [0, 1])
def test_a_factor_that_the_other_ones_gradient_reads_may_not(name: str, written: int) -> None:
    factors = [leaf(shape, seed) * 1 for seed, shape in enumerate(FACTORS[name])]
    product = getattr(ot, name)(*factors)
    factors[written].add_(1)
    with pytest.raises(
        RuntimeError, match="changed in place since: it is at version 1, expected 0"
    ):
        product.sum().backward()


def test_what_a_number_scales_may_be_written_after() -> None:
    x = leaf((4,), 0)
    y = x * 1
    parts = [y * 2, y / 3, 3 * y]
    y.zero_()
    ot.stack(parts).sum().backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), 2 + 1 / 3 + 3)
    # The divisor is saved for its own gradient.
    y = x * 1
    ratio = 1 / y
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"core::DivBackward.*changed in place"):
        ratio.sum().backward()


def test_layers_of_a_constant_weight_keep_no_input() -> None:
    x = leaf((2, 3, 6, 6), 0)
    y = x * 1
    images = ot.conv2d(y, leaf((4, 3, 3, 3), 1).detach())
    rows = ot.linear(y, leaf((5, 6), 2).detach())
    sums = ot.addmm(leaf((5,), 3), y[0, 0], leaf((6, 5), 4).detach())
    y.zero_()
    (images.sum() + rows.sum() + sums.sum()).backward()
    assert x.grad is not None


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((4,), (4,)),
        ((3, 4), (4,)),
        ((4,), (4, 5)),
        ((2, 3, 4), (4,)),
        ((4,), (2, 4, 5)),
        ((2, 1, 3, 4), (5, 4, 2)),
    ],
)
@pytest.mark.parametrize("constant", [None, 0, 1])
def test_gradients_of_matmul_with_lists_and_constants(
    left: tuple[int, ...], right: tuple[int, ...], constant: int | None
) -> None:
    own = [leaf(left, 0), leaf(right, 1)]
    theirs = [torch.tensor(each.detach().numpy(), requires_grad=True) for each in own]
    sides: tuple[Any, Any] = (own, theirs)
    for factors in sides:
        if constant is not None:
            factors[constant].requires_grad = False
        product = factors[0] @ factors[1]
        (product * product).sum().backward()
    for found, expected in zip(own, theirs, strict=True):
        assert (found.grad is None) == (expected.grad is None)
        if found.grad is not None and expected.grad is not None:
            assert found.grad.shape == tuple(expected.grad.shape)
            np.testing.assert_allclose(found.grad.numpy(), expected.grad.numpy(), rtol=1e-11)
