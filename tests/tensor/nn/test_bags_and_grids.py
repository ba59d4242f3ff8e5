"""embedding_bag, grid_sample and affine_grid: values and gradients are PyTorch's; errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from opscope import tensor as ot
from opscope.tensor import nn
from opscope.tensor.nn import functional
from tests.tensor.nn.twins import assert_close, both

theirs = torch.nn.functional
RANDOM = np.random.default_rng(0)


def drawn(*sizes: int) -> Any:
    return RANDOM.normal(size=sizes).astype(np.float32)


def compare(compute: Any, *arrays: Any) -> None:
    """Values and gradients of one function of both libraries."""
    pairs = [both(array) for array in arrays]
    found = compute(functional, *(own for own, _ in pairs))
    expected = compute(theirs, *(their for _, their in pairs))
    assert_close(found.detach(), expected.detach())
    weights = drawn(*expected.shape)
    (found * ot.tensor(weights)).sum().backward()
    (expected * torch.tensor(weights)).sum().backward()
    for own, their in pairs:
        if own.grad is None:  # where PyTorch gives zeros
            assert their.grad is None or not their.grad.any()
        else:
            np.testing.assert_allclose(own.grad.numpy(), their.grad.numpy(), 1e-4, 1e-4)


INDICES = np.array([1, 4, 4, 0, 3, 2, 1, 5])


@pytest.mark.parametrize("options", [{}, {"padding_idx": 4}])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags(mode: str, options: dict[str, Any]) -> None:
    table = drawn(6, 3)
    offsets = np.array([0, 3, 3, 5])
    compare(
        lambda f, i, w, o: f.embedding_bag(i, w, o, mode=mode, **options), INDICES, table, offsets
    )
    compare(
        lambda f, i, w: f.embedding_bag(i, w, mode=mode, **options), INDICES.reshape(2, 4), table
    )
    ends = np.array([0, 3, 8])
    compare(
        lambda f, i, w, o: f.embedding_bag(i, w, o, mode=mode, include_last_offset=True, **options),
        INDICES,
        table,
        ends,
    )


def test_weighted_bags_and_the_module() -> None:
    compare(
        lambda f, i, w, s: f.embedding_bag(i, w, mode="sum", per_sample_weights=s),
        INDICES.reshape(4, 2),
        drawn(6, 3),
        drawn(4, 2),
    )
    own, their = nn.EmbeddingBag(6, 3, mode="max"), torch.nn.EmbeddingBag(6, 3, mode="max")
    own.load_state_dict(their.state_dict())
    assert_close(
        own(ot.tensor(INDICES), ot.tensor([0, 2])).detach(),
        their(torch.tensor(INDICES), torch.tensor([0, 2])).detach(),
    )
    assert repr(own) == repr(their)
    assert own(ot.tensor(INDICES[:0]), ot.tensor([0, 0])).tolist() == [[0.0] * 3] * 2


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_images_sampled_at_places(mode: str, padding_mode: str, align_corners: bool) -> None:
    compare(
        lambda f, x, g: f.grid_sample(x, g, mode, padding_mode, align_corners),
        drawn(2, 3, 5, 7),
        drawn(2, 4, 6, 2) * 1.5,
    )


@pytest.mark.parametrize("align_corners", [False, True])
def test_grids_of_matrices(align_corners: bool) -> None:
    compare(lambda f, t: f.affine_grid(t, (2, 3, 4, 5), align_corners), drawn(2, 2, 3))
    if not align_corners:  # PyTorch warns of one row or column
        compare(lambda f, t: f.affine_grid(t, (1, 1, 1, 3), False), drawn(1, 2, 3))


def test_places_that_are_no_numbers_are_outside() -> None:
    places = ot.tensor([[[[float("nan"), 0.0], [float("inf"), 0.0]]]])
    assert functional.grid_sample(ot.ones(1, 1, 3, 3), places, "nearest").tolist() == [[[[0, 0]]]]


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: functional.embedding_bag(ot.tensor([1]), ot.ones(2, 2)), ValueError, "offsets"),
        (
            lambda: functional.embedding_bag(ot.tensor([1]), ot.ones(2, 2), ot.tensor([1])),
            ValueError,
            "offsets are \\[1\\]: from 0",
        ),
        (
            lambda: functional.embedding_bag(ot.tensor([[1]]), ot.ones(2, 2), mode="min"),
            ValueError,
            "mode is 'min'",
        ),
        (
            lambda: functional.grid_sample(ot.ones(1, 1, 2, 2), ot.ones(2, 1, 1, 2)),
            RuntimeError,
            "expected \\[N, C, H, W\\]",
        ),
        (
            lambda: functional.grid_sample(ot.ones(1, 1, 2, 2), ot.ones(1, 1, 1, 2), "bicubic"),
            ValueError,
            "mode is 'bicubic'",
        ),
        (
            lambda: functional.affine_grid(ot.ones(1, 3, 3), (1, 1, 2, 2)),
            RuntimeError,
            "expected \\[N, 2, 3\\]",
        ),
    ],
)
def test_what_does_not_fit_is_refused(call: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()
