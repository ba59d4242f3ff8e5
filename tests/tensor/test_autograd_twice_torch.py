"""Gradients of gradients against PyTorch's, in cases that finite differences miss: at zeros, over
settings, repeated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from opscope import tensor as ot

Array = Any


def numbers(*sizes: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=sizes)


def with_zeros(*sizes: int, places: tuple[int, ...]) -> Array:
    array = numbers(*sizes)
    array.reshape(-1)[list(places)] = 0
    return array


class Case:
    """A function of arrays, by the names that both have."""

    def __init__(self, name: str, arrays: list[Array], *args: Any, **kwargs: Any) -> None:
        self.name, self.arrays, self.args, self.kwargs = name, arrays, args, kwargs

    def of(self, library: Any, leaves: list[Any]) -> Any:
        functional = torch.nn.functional
        where = functional if library is torch and hasattr(functional, self.name) else library
        return getattr(where, self.name)(*leaves, *self.args, **self.kwargs)


def derivatives(library: Any, case: Case) -> tuple[list[Array], list[Array], list[Array]]:
    """The first, second and third gradients, each of a weighted sum of the previous ones."""
    grad = ot.grad if library is ot else torch.autograd.grad
    leaves = [library.tensor(array).requires_grad_() for array in case.arrays]
    found: list[list[Array]] = []
    seed = 10
    outputs = [case.of(library, leaves)]
    for _ in range(3):
        total = None
        for output in outputs:
            seed += 1
            part = (output * library.tensor(numbers(*output.shape, seed=seed))).sum()
            total = part if total is None else total + part
        assert total is not None
        given = grad(total, leaves, create_graph=True, allow_unused=True)
        pairs = zip(given, leaves, strict=True)
        outputs = [leaf * 0 if each is None else each for each, leaf in pairs]
        found.append([each.detach().numpy() for each in outputs])
        outputs = [each + leaf * 0 for each, leaf in zip(outputs, leaves, strict=True)]
    return found[0], found[1], found[2]


ONE, TWO = (3,), (0, 2)
CASES = {
    "prod": Case("prod", [numbers(4)]),
    "prod of a zero": Case("prod", [with_zeros(4, places=ONE)]),
    "prod of two zeros": Case("prod", [with_zeros(4, places=TWO)]),
    "prod of three zeros": Case("prod", [with_zeros(4, places=(0, 1, 3))]),
    "prod over a dimension": Case("prod", [with_zeros(3, 4, places=(0, 1, 4))], 1),
    "prod that keeps it": Case("prod", [with_zeros(3, 4, places=(0, 1, 4))], 0, True),
    "prod of one number": Case("prod", [np.array(0.0)]),
    "cumprod": Case("cumprod", [numbers(3, 4)], 1),
    "cumprod of a zero": Case("cumprod", [with_zeros(5, places=ONE)], 0),
    "cumprod of two zeros": Case("cumprod", [with_zeros(4, 3, places=(0, 3, 7, 4))], 0),
    "cumprod of one number": Case("cumprod", [np.array(0.0)], 0),
    "conv2d": Case(
        "conv2d", [numbers(2, 4, 5, 6), numbers(6, 2, 3, 2), numbers(6)], [2, 1], 1, [1, 2], 2
    ),
    "conv2d of one image": Case("conv2d", [numbers(2, 5, 6), numbers(3, 2, 3, 2)]),
    "max_pool2d": Case("max_pool2d", [numbers(2, 3, 7, 6)], 3, 2, 1, 2, True),
    "max_pool2d of one image": Case("max_pool2d", [numbers(3, 7, 6)], 2),
    "avg_pool2d": Case("avg_pool2d", [numbers(2, 3, 7, 6)], 3, 2, 1, True, False),
    "adaptive_avg_pool2d": Case("adaptive_avg_pool2d", [numbers(2, 3, 7, 6)], (3, 5)),
}


@pytest.mark.parametrize("name", CASES)
def test_up_to_the_third_derivative(name: str) -> None:
    ours, theirs = derivatives(ot, CASES[name]), derivatives(torch, CASES[name])
    for order, (own, expected) in enumerate(zip(ours, theirs, strict=True), 1):
        for one, other in zip(own, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11, err_msg=f"order {order}")


class Norm(Case):
    """batch_norm, whose arguments have another order in PyTorch, or layer_norm."""

    def of(self, library: Any, leaves: list[Any]) -> Any:
        functional: Any = ot if library is ot else torch.nn.functional
        x, weight, bias = leaves
        if self.name == "layer_norm":
            return functional.layer_norm(x, list(x.shape[1:]), weight, bias, 1e-3)
        running = [library.tensor(numbers(3, seed=seed) ** 2 + 0.5) for seed in (3, 4)]
        if library is ot:
            return ot.batch_norm(x, weight, bias, *running, *self.args)
        return functional.batch_norm(x, *running, weight, bias, *self.args)


def norm(name: str, sizes: tuple[int, ...], *args: Any) -> Norm:
    like = sizes[1:] if name == "layer_norm" else (3,)
    return Norm(name, [numbers(*sizes), numbers(*like, seed=1), numbers(*like, seed=2)], *args)


NORMS = {
    **{f"batch_norm {n}": norm("batch_norm", (5, 3, 2, 4)[:n], True) for n in (2, 3, 4)},
    "batch_norm of running ones": norm("batch_norm", (5, 3, 2), False),
    "layer_norm": norm("layer_norm", (3, 5)),
    "layer_norm over two": norm("layer_norm", (2, 3, 4)),
}


@pytest.mark.parametrize("name", NORMS)
def test_of_norms_up_to_the_second(name: str) -> None:
    ours, theirs = derivatives(ot, NORMS[name]), derivatives(torch, NORMS[name])
    for own, expected in zip(ours[:2], theirs[:2], strict=True):
        for one, other in zip(own, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", NORMS)
def test_of_norms_the_third_is_that_of_finite_differences(name: str) -> None:
    # PyTorch 2.13 treats means and deviations as constants there.
    case = NORMS[name]
    array, step = case.arrays[0], 1e-5
    (actual, *_), expected = derivatives(ot, case)[2], np.zeros_like(array)

    def value() -> float:
        second = derivatives(ot, case)[1]
        seeds = range(11 + 1 + len(second), 11 + 1 + 2 * len(second))
        weights = (
            numbers(*each.shape, seed=seed) for each, seed in zip(second, seeds, strict=True)
        )
        return sum(float((a * b).sum()) for a, b in zip(second, weights, strict=True))

    for index in np.ndindex(*array.shape):
        kept = array[index]
        array[index] = kept + step
        above = value()
        array[index] = kept - step
        expected[index] = (above - value()) / (2 * step)
        array[index] = kept
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-6)


def test_what_has_no_gradient_of_its_gradient_says_so() -> None:
    grad, x = ot.ones([3, 5], dtype=ot.float64).requires_grad_(), ot.tensor(numbers(3, 5))
    found = ot.operators["core::layer_norm_backward"](
        grad, x, ot.ones(3, dtype=ot.float64), ot.ones(3, dtype=ot.float64), None, [5]
    )
    with pytest.raises(RuntimeError, match="gradients of gradients cannot be taken through it"):
        found[0].sum().backward()
