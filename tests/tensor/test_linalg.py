"""opscope.tensor.linalg: results are PyTorch's up to signs, gradients are those of differences."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from opscope import tensor as ot
from tests.tensor.ranges import ranges

RANDOM = np.random.default_rng(2)
TALL, WIDE = RANDOM.normal(size=(5, 3)), RANDOM.normal(size=(3, 5))
SQUARE = RANDOM.normal(size=(4, 4)) + 3 * np.eye(4)
BATCH = RANDOM.normal(size=(2, 4, 4)) + 3 * np.eye(4)
POSITIVE = BATCH @ BATCH.transpose(0, 2, 1)
RIGHT = RANDOM.normal(size=(4, 2))

Run = Callable[..., Any]

# What does not depend on the signs of vectors.
CASES: dict[str, tuple[Any, ...]] = {
    "svdvals": (lambda lib, a: lib.linalg.svdvals(a), BATCH),
    "svd of a tall matrix": (
        lambda lib, a: (lambda u, s, v: (u * s.sqrt()) @ v)(*lib.linalg.svd(a, False)),
        TALL,
    ),
    "svd of a wide matrix": (
        lambda lib, a: (lambda u, s, v: (u * s.sqrt()) @ v)(*lib.linalg.svd(a, False)),
        WIDE,
    ),
    "eigh": (
        lambda lib, a: (lambda w, v: (v * w.sqrt().unsqueeze(-2)) @ v.mT)(*lib.linalg.eigh(a)),
        POSITIVE,
    ),
    "eigvalsh": (lambda lib, a: lib.linalg.eigvalsh(a, UPLO="U"), POSITIVE),
    "qr": (lambda lib, a: (lambda q, r: q.abs().sum() + (r * r).sum())(*lib.linalg.qr(a)), TALL),
    "cholesky": (lambda lib, a: lib.linalg.cholesky(a), POSITIVE),
    "cholesky upper": (lambda lib, a: lib.linalg.cholesky(a, upper=True), POSITIVE[0]),
    "solve": (lambda lib, a, b: lib.linalg.solve(a, b), BATCH, RIGHT),
    "solve a vector": (lambda lib, a, b: lib.linalg.solve(a, b[:, 0]), SQUARE, RIGHT),
    "solve from the right": (
        lambda lib, a, b: lib.linalg.solve(a, b.mT, left=False),
        SQUARE,
        RIGHT,
    ),
    "inv": (lambda lib, a: lib.linalg.inv(a), BATCH),
    "det": (lambda lib, a: lib.linalg.det(a), BATCH),
    "slogdet": (lambda lib, a: lib.linalg.slogdet(a)[1], BATCH),
    "pinv": (lambda lib, a: lib.linalg.pinv(a), WIDE),
    "cond": (lambda lib, a: lib.linalg.cond(a), SQUARE),
    "lstsq": (
        lambda lib, a, b: lib.linalg.lstsq(a.detach(), b[:, :2].detach())[0],
        TALL,
        RANDOM.normal(size=(5, 3)),
    ),
    "matrix_rank": (lambda lib, a: lib.linalg.matrix_rank(a), BATCH),
    "matrix_power": (lambda lib, a: lib.linalg.matrix_power(a, 5), SQUARE),
    "matrix_power -2": (lambda lib, a: lib.linalg.matrix_power(a, -2), SQUARE),
    "multi_dot": (lambda lib, a, b: lib.linalg.multi_dot([a, a, b]), SQUARE, RIGHT),
    "cross": (lambda lib, a: lib.linalg.cross(a, a + 1), TALL),
    "vecdot": (lambda lib, a: lib.linalg.vecdot(a, a + 1, dim=0), TALL),
    "vector_norm": (lambda lib, a: lib.linalg.vector_norm(a, 3, dim=(0, 1)), TALL),
    "norm": (lambda lib, a: lib.linalg.norm(a), TALL),
    "diagonal": (lambda lib, a: lib.linalg.diagonal(a), BATCH),
}
for order in ("fro", "nuc", 2, -2, 1, -1, math.inf, -math.inf):
    CASES[f"matrix_norm {order}"] = (
        lambda lib, a, order=order: lib.linalg.matrix_norm(a, order, keepdim=True),
        BATCH,
    )


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_pytorchs(name: str) -> None:
    run, *arrays = CASES[name]
    ours = [ot.tensor(array, requires_grad=True) for array in arrays]
    theirs = [torch.tensor(array, requires_grad=True) for array in arrays]
    found, expected = run(ot, *ours), run(torch, *theirs)
    np.testing.assert_allclose(
        found.detach().numpy(), expected.detach().numpy(), atol=1e-9, rtol=1e-9
    )
    if not expected.requires_grad:
        return
    weights = RANDOM.normal(size=tuple(expected.shape))
    (found * ot.tensor(weights)).sum().backward()
    (expected * torch.tensor(weights)).sum().backward()
    for own, their in zip(ours, theirs, strict=True):
        if their.grad is not None:
            assert own.grad is not None
            np.testing.assert_allclose(own.grad.numpy(), their.grad.numpy(), atol=1e-7, rtol=1e-7)


@pytest.mark.parametrize("dtype", [ot.float32, ot.float64])
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 4, 3), (0, 3), (2, 0, 0), (0, 2, 2)])
def test_parts_multiply_to_the_matrix(shape: Any, dtype: Any) -> None:
    a = ot.randn(shape, dtype=dtype)
    for full in (False, True):
        u, s, vh = ot.linalg.svd(a, full)
        whole = (u[..., : s.shape[-1]] * s.unsqueeze(-2)) @ vh[..., : s.shape[-1], :]
        assert tuple(u.shape[:-1]) == shape[:-1]
        assert whole.shape == a.shape
        np.testing.assert_allclose(whole.numpy(), a.numpy(), atol=2e-5)
        q, r = ot.linalg.qr(a, "complete" if full else "reduced")
        their = torch.linalg.qr(torch.tensor(a.numpy()), "complete" if full else "reduced")
        assert (tuple(q.shape), tuple(r.shape)) == (tuple(their.Q.shape), tuple(their.R.shape))
        np.testing.assert_allclose((q @ r).numpy(), a.numpy(), atol=2e-5)


def test_what_has_no_solution_is_refused() -> None:
    linalg = ot.linalg
    with pytest.raises(RuntimeError, match="singular"):
        linalg.solve(ot.ones(2, 2), ot.ones(2))
    with pytest.raises(RuntimeError, match=r"not positive-definite"):
        linalg.cholesky(-ot.eye(2))
    with pytest.raises(RuntimeError, match="square matrices expected, not shape"):
        linalg.inv(ot.ones(2, 3))
    with pytest.raises(RuntimeError, match="float32 or float64"):
        linalg.svd(ot.ones(2, 2, dtype=ot.int64))


def test_a_decomposition_is_one_range() -> None:
    with ranges() as seen:
        ot.linalg.svd(ot.eye(2))
    assert "linalg::svd" in str(seen)
