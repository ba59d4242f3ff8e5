"""The extension `linalg` of the array API standard."""

from __future__ import annotations

from typing import Any

from opscope._tensor import Tensor, functions
from opscope.tensor import linalg as own
from opscope.tensor.array_api.arrays import matrix_transpose
from opscope.tensor.array_api.statistics import matmul, tensordot, vecdot
from opscope.tensor.composed.shapes import diagonal as _diagonal

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm",
    "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve",
    "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip

cholesky = own.cholesky
det, eigh, eigvalsh, inv = own.det, own.eigh, own.eigvalsh, own.inv
matrix_power, qr, slogdet = own.matrix_power, own.qr, own.slogdet
svd, svdvals = own.svd, own.svdvals


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """X with x1 X = x2; only an x2 of one axis is a vector."""
    if x2.ndim > 1 and x2.ndim + 1 == x1.ndim:
        x2 = x2.unsqueeze(0)
    return own.solve(x1, x2)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The cross product of vectors of 3 along an axis."""
    return own.cross(x1, x2, dim=axis)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """The diagonals of matrices."""
    return _diagonal(x, offset, -2, -1)


def trace(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sums of the diagonals of matrices."""
    return functions["sum"](diagonal(x, offset=offset), -1, dtype=dtype)  # type: ignore[no-any-return]


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The product of each two elements."""
    return x1.unsqueeze(-1) * x2.unsqueeze(0)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """A norm of matrices."""
    return own.matrix_norm(x, ord, (-2, -1), keepdims)


def vector_norm(x: Tensor, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Tensor:
    """The p-norm over axes."""
    return own.vector_norm(x, ord, axis, keepdims)


def matrix_rank(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The number of singular values above rtol times the largest."""
    return own.matrix_rank(x, rtol=rtol)


def pinv(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The pseudoinverse."""
    return own.pinv(x, rtol=rtol)
