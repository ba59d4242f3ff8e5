"""LAPACK of the OpenBLAS that the core uses, called for one matrix at a time.

LAPACK has columns first: a matrix is passed as the contiguous transpose. Nothing here is on the
tape.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from opscope import _tensor
from opscope._tensor import Tensor, functions
from opscope.tensor import blas

_LETTERS = {_tensor.float32: "s", _tensor.float64: "d"}


@functools.cache
def _library() -> tuple[Any, str, str, Any]:
    found = blas.found()
    if found is None:
        raise RuntimeError("linalg: LAPACK is missing; install opscope[tensor], which brings it")
    path, prefix, suffix = found
    integer = ctypes.c_int64 if suffix else ctypes.c_int32
    return ctypes.CDLL(path), prefix, suffix, integer


@functools.cache
def _routine(name: str) -> Any:
    library, prefix, suffix, _ = _library()
    routine = getattr(library, f"{prefix}{name}_{suffix}")
    routine.restype = None
    return routine


def check(matrix: Tensor, name: str, square: bool = False) -> None:
    """RuntimeError unless it is a matrix, or a batch of them, of float32 or float64."""
    if matrix.dtype not in _LETTERS:
        raise RuntimeError(f"linalg.{name}: float32 or float64 expected, not {matrix.dtype.name}")
    if matrix.ndim < 2 or (square and matrix.shape[-1] != matrix.shape[-2]):
        kind = "square matrices" if square else "matrices"
        raise RuntimeError(f"linalg.{name}: {kind} expected, not shape {tuple(matrix.shape)}")


def empty(like: Tensor, *shape: int) -> Tensor:
    """An unfilled tensor of that dtype."""
    return functions["empty"](shape, dtype=like.dtype)  # type: ignore[no-any-return]


def columns(matrix: Tensor) -> Tensor:
    """A copy of the matrix as LAPACK reads it: its transpose, contiguous."""
    return _tensor.tensor(matrix.detach().T)


class Work:
    """Work space of the size that a routine asks for: passed as an argument."""

    def __init__(self, like: Tensor) -> None:
        self.space = empty(like, 1)
        self.count = -1

    def grow(self, like: Tensor) -> None:
        """The size that the routine wrote into the first element."""
        self.count = max(int(self.space.item()), 1)
        self.space = empty(like, self.count)


def call(name: str, like: Tensor, arguments: Sequence[Any]) -> int:
    """Calls routine `name` for the dtype of `like`; returns its info.

    `arguments`: ints, letters, and tensors, whose memory it reads and writes; the class Work stands
    for work space and its size, for which a first call asks.
    """
    routine = _routine(_LETTERS[like.dtype] + name)
    integer = _library()[3]
    work = Work(like)
    rounds = 1 + any(each is Work for each in arguments)
    info = integer(0)
    for _ in range(rounds):
        passed: list[Any] = []
        for each in arguments:
            if each is Work:
                passed += [
                    ctypes.c_void_p(work.space.data_ptr()),
                    ctypes.byref(integer(work.count)),
                ]
            elif isinstance(each, Tensor):
                passed.append(ctypes.c_void_p(each.data_ptr()))
            elif isinstance(each, bytes):
                passed.append(ctypes.c_char_p(each))
            elif isinstance(each, int):
                passed.append(ctypes.byref(integer(each)))
            else:
                passed.append(each)
        routine(*passed, ctypes.byref(info))
        if rounds == 2 and work.count == -1:
            work.grow(like)
    if info.value < 0:
        raise RuntimeError(f"linalg: argument {-info.value} of {name} was refused")
    return int(info.value)


def integers(count: int) -> Any:
    """An array of LAPACK's integers."""
    return (_library()[3] * max(count, 1))()


def batched(run: Callable[..., tuple[Tensor, ...]], *inputs: Tensor) -> tuple[Tensor, ...]:
    """`run` for each matrix of batches of one shape; its results as batches."""
    if inputs[0].ndim == 2:
        return run(*inputs)
    batch = tuple(inputs[0].shape[:-2])
    count = math.prod(batch)
    flat = [each.reshape((count, *each.shape[-2:])) for each in inputs]
    if count == 0:
        single = run(*(functions["eye"](*each.shape[-2:], dtype=each.dtype) for each in inputs))
        return tuple(empty(each, *batch, *each.shape) for each in single)
    results = [run(*(each[place] for each in flat)) for place in range(count)]
    whole = (functions["stack"](parts, 0) for parts in zip(*results, strict=True))
    return tuple(each.reshape((*batch, *each.shape[1:])) for each in whole)


# ---- one matrix ---------------------------------------------------------------------------


def svd(matrix: Tensor, full: bool) -> tuple[Tensor, Tensor, Tensor]:
    """U, S and Vᴴ by gesdd."""
    rows, width = matrix.shape
    least = min(rows, width)
    if least == 0:
        eye = functions["eye"]
        sides = (rows, width) if full else (0, 0)
        u = eye(rows, sides[0], dtype=matrix.dtype)
        return u, empty(matrix, 0), eye(sides[1], width, dtype=matrix.dtype)
    own, s = columns(matrix), empty(matrix, least)
    u = empty(matrix, rows if full else least, rows)
    vh = empty(matrix, width, width if full else least)
    info = call(
        "gesdd",
        matrix,
        [
            *(b"A" if full else b"S", rows, width, own, rows, s, u, rows),
            *(vh, vh.shape[1], Work, integers(8 * least)),
        ],
    )
    if info:
        raise RuntimeError("linalg.svd: it did not converge; the matrix may have NaN or infinity")
    return u.T, s, vh.T


def eigh(matrix: Tensor, lower: bool) -> tuple[Tensor, Tensor]:
    """Eigenvalues in ascending order, and eigenvectors in columns, by syevd."""
    size = matrix.shape[0]
    own, values = columns(matrix), empty(matrix, size)
    if size == 0:
        return values, own
    triangle = b"L" if lower else b"U"
    counts = [1 + 6 * size + 2 * size * size, 3 + 5 * size]
    space, more = empty(matrix, counts[0]), integers(counts[1])
    info = call(
        "syevd",
        matrix,
        [b"V", triangle, size, own, size, values, space, counts[0], more, counts[1]],
    )
    if info:
        raise RuntimeError("linalg.eigh: it did not converge; the matrix may have NaN or infinity")
    return values, own.T


def qr(matrix: Tensor, full: bool) -> tuple[Tensor, Tensor]:
    """Q and R by geqrf and orgqr."""
    rows, width = matrix.shape
    least = min(rows, width)
    side = rows if full else least
    if least == 0:
        return (
            functions["eye"](rows, side, dtype=matrix.dtype),
            functions["zeros"]((side, width), dtype=matrix.dtype),
        )
    own, scales = columns(matrix), empty(matrix, least)
    call("geqrf", matrix, [rows, width, own, rows, scales, Work])
    r = own.T[:side].triu()
    q = functions["zeros"]((side, rows), dtype=matrix.dtype)
    q[:least].copy_(own[:least])
    call("orgqr", matrix, [rows, side, least, q, rows, scales, Work])
    return q.T, r


def cholesky(matrix: Tensor) -> tuple[Tensor, int]:
    """L with L Lᵀ = matrix, by potrf; and 0, or the order of a minor that is not positive."""
    size = matrix.shape[0]
    own = columns(matrix)
    info = call("potrf", matrix, [b"L", size, own, max(size, 1)]) if size else 0
    return own.T.tril(), info


def solve(matrix: Tensor, right: Tensor) -> tuple[Tensor]:
    """X with matrix X = right, by gesv. RuntimeError for a singular matrix."""
    size, count = matrix.shape[0], right.shape[1]
    own, made = columns(matrix), columns(right)
    if size and count:
        arguments = [size, count, own, size, integers(size), made, size]
        info = call("gesv", matrix, arguments)
        if info:
            raise RuntimeError(f"linalg.solve: the matrix is singular: pivot {info} is zero")
    return (made.T,)


def determinant(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """The sign, and the logarithm of the magnitude of the determinant, by getrf."""
    size = matrix.shape[0]
    own, pivots = columns(matrix), integers(size)
    if size:
        call("getrf", matrix, [size, size, own, size, pivots])
    diagonal = own.diagonal()
    swaps = sum(pivots[place] != place + 1 for place in range(size))
    sign = diagonal.sign().prod() * (-1.0) ** swaps
    return sign, diagonal.abs().log().sum()
