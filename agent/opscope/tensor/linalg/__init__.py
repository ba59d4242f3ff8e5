"""torch.linalg: decompositions (LAPACK's, of the OpenBLAS that the core uses), norms, products.

Each decomposition is one range, `linalg::svd` and so on, and has a gradient.
"""

from __future__ import annotations

import math
from typing import Any

from opscope._tensor import Tensor, functions
from opscope.tensor.composed import reductions
from opscope.tensor.composed.linear import cross as _cross
from opscope.tensor.composed.shapes import diagonal as _diagonal
from opscope.tensor.linalg.decompositions import cholesky, eigh, qr, slogdet, solve, svd

matmul = functions["matmul"]

__all__ = [
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "vecdot",
    "vector_norm",
]


def svdvals(A: Tensor) -> Tensor:  # noqa: N803 - PyTorch's names
    """The singular values, in descending order."""
    return svd(A, full_matrices=False).S


def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:  # noqa: N803
    """The eigenvalues of symmetric matrices, in ascending order."""
    return eigh(A, UPLO).eigenvalues


def inv(A: Tensor) -> Tensor:  # noqa: N803
    """The inverse. RuntimeError for a singular matrix."""
    return solve(A, functions["eye"](A.shape[-1], dtype=A.dtype))


def det(A: Tensor) -> Tensor:  # noqa: N803
    """The determinant."""
    sign, logarithm = slogdet(A)
    return sign * logarithm.exp()


def pinv(A: Tensor, *, rtol: Any = None) -> Tensor:  # noqa: N803
    """The pseudoinverse: singular values up to rtol times the largest count as zero."""
    u, s, vh = svd(A, full_matrices=False)
    small = s <= _tolerance(A, s, None, rtol)
    inverse = s.masked_fill(small, 1.0).reciprocal().masked_fill(small, 0.0)
    return vh.mT @ (inverse.unsqueeze(-1) * u.mT)


def _tolerance(A: Tensor, s: Tensor, atol: Any, rtol: Any) -> Any:  # noqa: N803
    from opscope.tensor.limits import finfo

    if rtol is None:
        rtol = max(A.shape[-2:]) * finfo(A.dtype).eps if atol is None else 0.0
    if isinstance(rtol, Tensor):
        rtol = rtol.unsqueeze(-1)
    largest = s[..., :1] if s.shape[-1] else functions["zeros"]((1,), dtype=s.dtype)
    return (largest * rtol).clamp(min=atol or 0.0)


def matrix_rank(A: Tensor, *, atol: Any = None, rtol: Any = None) -> Tensor:  # noqa: N803
    """The number of singular values above the larger of atol and rtol times the largest."""
    s = svdvals(A.detach())
    return (s > _tolerance(A, s, atol, rtol)).sum(-1)  # type: ignore[no-any-return]


def cond(A: Tensor, p: Any = None) -> Tensor:  # noqa: N803
    """The largest singular value over the smallest; with `p`, the product of the norms of A and of
    its inverse."""
    if p in (None, 2):
        s = svdvals(A)
        return s[..., 0] / s[..., -1]
    return matrix_norm(A, p) * matrix_norm(inv(A), p)


def lstsq(A: Tensor, B: Tensor) -> Any:  # noqa: N803
    """A tuple whose first item, `solution`, is the X of least norm that minimizes |A X - B|."""
    from collections import namedtuple

    right = B.unsqueeze(-1) if B.ndim == 1 else B
    made = pinv(A) @ right
    return namedtuple("lstsq", ("solution",))(made.squeeze(-1) if B.ndim == 1 else made)


def vector_norm(
    x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """The p-norm over dim, or over all elements."""
    return reductions.norm(x, ord, dim, keepdim, dtype=dtype)


def matrix_norm(
    A: Tensor,  # noqa: N803
    ord: Any = "fro",
    dim: Any = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Tensor:
    """A norm of matrices: "fro", "nuc", inf and -inf (sums of rows), 1 and -1 (sums of columns), 2
    and -2 (singular values)."""
    A = A if dtype is None else A.to(dtype)  # noqa: N806
    if ord == "fro":
        return reductions.norm(A, 2, tuple(dim), keepdim)
    rest = A.movedim(tuple(dim), (-2, -1))
    if ord in ("nuc", 2, -2):
        s = svdvals(rest)
        made = s.sum(-1) if ord == "nuc" else s.amax(-1) if ord == 2 else s.amin(-1)
    elif ord in (1, -1, math.inf, -math.inf):
        sums = rest.abs().sum(-2 if abs(ord) == 1 else -1)
        made = sums.amax(-1) if ord > 0 else sums.amin(-1)
    else:
        raise RuntimeError(f"linalg.matrix_norm: no norm {ord!r}")
    if keepdim:
        for place in sorted(each % A.ndim for each in dim):
            made = made.unsqueeze(place)
    return made


def norm(
    A: Tensor,  # noqa: N803
    ord: Any = None,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Tensor:
    """vector_norm of one dimension, or without `ord` of all; matrix_norm of two."""
    if ord is not None and (isinstance(dim, (tuple, list)) and len(dim) == 2):
        return matrix_norm(A, ord, dim, keepdim, dtype=dtype)
    if ord is not None and dim is None and A.ndim == 2:
        return matrix_norm(A, ord, (0, 1), keepdim, dtype=dtype)
    return vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


def matrix_power(A: Tensor, n: int) -> Tensor:  # noqa: N803
    """A times itself, n times; negative n: of the inverse."""
    if n < 0:
        return matrix_power(inv(A), -n)
    eye = functions["eye"](A.shape[-1], dtype=A.dtype)
    made: Any = eye.expand(A.shape).clone() if n == 0 else None
    while n:
        if n & 1:
            made = A if made is None else made @ A
        n >>= 1
        A = A @ A if n else A  # noqa: N806
    return made  # type: ignore[no-any-return]


def multi_dot(tensors: Any) -> Tensor:
    """The product of all, from left to right."""
    made: Tensor = tensors[0]
    for each in tensors[1:]:
        made = made @ each
    return made


def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """The cross product of vectors along dim."""
    whole = input + other * 0, other + input * 0  # of one shape
    return _cross(*whole, dim)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:  # noqa: N803
    """A view of the diagonals of matrices."""
    return _diagonal(A, offset, dim1, dim2)


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The sums of products along dim."""
    return (x * y).sum(dim)


def __getattr__(name: str) -> object:
    from opscope.tensor.nearest import missing

    raise missing(__name__, name, __all__)
