"""Decompositions and solutions, with their gradients: LAPACK's results on the tape.

The gradients are those of Giles (2008), "Collected matrix derivative results".
"""

from __future__ import annotations

from typing import Any, NamedTuple

from opscope._tensor import Tensor, functions
from opscope.tensor.autograd import Context, Function
from opscope.tensor.custom import op
from opscope.tensor.linalg import lapack


class SVD(NamedTuple):
    """U diag(S) Vh is the matrix."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class QR(NamedTuple):
    """Q R is the matrix."""

    Q: Tensor
    R: Tensor


class Eigen(NamedTuple):
    """Eigenvalues, and eigenvectors in columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class SignAndLog(NamedTuple):
    """sign exp(logabsdet) is the determinant."""

    sign: Tensor
    logabsdet: Tensor


def _saved(ctx: Context) -> list[Any]:
    return list(ctx.saved_tensors)


def _reciprocal_differences(values: Tensor) -> Tensor:
    """1 / (values[j] - values[i]) in row i and column j; 0 on the diagonal."""
    apart = values.unsqueeze(-2) - values.unsqueeze(-1)
    equal = apart == 0
    return apart.masked_fill(equal, 1.0).reciprocal().masked_fill(equal, 0.0)


class _Svd(Function):
    @staticmethod
    def forward(ctx: Context, matrix: Tensor, full: bool) -> Any:
        u, s, vh = lapack.batched(lambda each: lapack.svd(each, full), matrix)
        ctx.save_for_backward(u, s, vh)
        return u, s, vh

    @staticmethod
    def backward(ctx: Context, gu: Any, gs: Any, gvh: Any) -> Any:
        u, s, vh = _saved(ctx)
        least = s.shape[-1]
        if u.shape[-1] != least or vh.shape[-2] != least:
            raise RuntimeError("linalg.svd: no gradient with full_matrices; pass False")
        v = vh.mT
        squares = _reciprocal_differences(s * s)
        row, inverse = s.unsqueeze(-2), (1 / s).unsqueeze(-2)
        ut_gu, vt_gv = u.mT @ gu, vh @ gvh.mT
        middle = functions["where"](
            functions["eye"](least, dtype=s.dtype) == 1,
            gs.unsqueeze(-1),
            functions["zeros"]((), dtype=s.dtype),
        )
        middle = middle + ((ut_gu - ut_gu.mT) * squares) * row
        middle = middle + ((vt_gv - vt_gv.mT) * squares) * s.unsqueeze(-1)
        made = u @ middle @ vh
        if u.shape[-2] > least:
            made = made + (gu - u @ ut_gu) * inverse @ vh
        if v.shape[-2] > least:
            made = made + u @ ((gvh.mT - v @ vt_gv) * inverse).mT
        return made, None


class _Eigh(Function):
    @staticmethod
    def forward(ctx: Context, matrix: Tensor, lower: bool) -> Any:
        values, vectors = lapack.batched(lambda each: lapack.eigh(each, lower), matrix)
        ctx.save_for_backward(values, vectors)
        return values, vectors

    @staticmethod
    def backward(ctx: Context, gvalues: Any, gvectors: Any) -> Any:
        values, vectors = _saved(ctx)
        turned = (vectors.mT @ gvectors) * _reciprocal_differences(values)
        on = functions["eye"](values.shape[-1], dtype=values.dtype) == 1
        middle = functions["where"](on, gvalues.unsqueeze(-1), turned)
        made = vectors @ middle @ vectors.mT
        return (made + made.mT) / 2, None


class _Qr(Function):
    @staticmethod
    def forward(ctx: Context, matrix: Tensor, full: bool) -> Any:
        q, r = lapack.batched(lambda each: lapack.qr(each, full), matrix)
        ctx.save_for_backward(q, r)
        return q, r

    @staticmethod
    def backward(ctx: Context, gq: Any, gr: Any) -> Any:
        q, r = _saved(ctx)
        if q.shape[-1] != r.shape[-1]:
            raise RuntimeError("linalg.qr: a gradient needs at least as many rows as columns")
        inner = r @ gr.mT - gq.mT @ q
        symmetric = inner.tril() + inner.tril(-1).mT
        made = (gq + q @ symmetric) @ _inverse(r.detach()).mT
        return made, None


class _Cholesky(Function):
    @staticmethod
    def forward(ctx: Context, matrix: Tensor) -> Any:
        def run(each: Tensor) -> tuple[Tensor]:
            lower, info = lapack.cholesky(each)
            if info:
                raise RuntimeError(
                    f"linalg.cholesky: the leading minor of order {info} is not positive-definite"
                )
            return (lower,)

        (lower,) = lapack.batched(run, matrix)
        ctx.save_for_backward(lower)
        return lower

    @staticmethod
    def backward(ctx: Context, grad: Any) -> Any:
        (lower,) = _saved(ctx)
        inner = (lower.mT @ grad).tril()
        on = functions["eye"](lower.shape[-1], dtype=lower.dtype) == 1
        inner = functions["where"](on, inner / 2, inner)
        inverse = _inverse(lower.detach())
        made = inverse.mT @ inner @ inverse
        return (made + made.mT) / 2


def _inverse(matrix: Tensor) -> Tensor:
    eye = functions["eye"](matrix.shape[-1], dtype=matrix.dtype)
    return lapack.batched(lapack.solve, matrix, eye.expand(matrix.shape))[0]


class _Solve(Function):
    @staticmethod
    def forward(ctx: Context, matrix: Tensor, right: Tensor) -> Any:
        (made,) = lapack.batched(lapack.solve, matrix, right)
        ctx.save_for_backward(matrix, made)
        return made

    @staticmethod
    def backward(ctx: Context, grad: Any) -> Any:
        matrix, made = _saved(ctx)
        right = _Solve.apply(matrix.mT, grad)
        return -right @ made.mT, right


class _Slogdet(Function):
    @staticmethod
    def forward(ctx: Context, matrix: Tensor) -> Any:
        sign, logarithm = lapack.batched(lapack.determinant, matrix)
        ctx.save_for_backward(matrix)
        return sign, logarithm

    @staticmethod
    def backward(ctx: Context, gsign: Any, glog: Any) -> Any:
        (matrix,) = _saved(ctx)
        return _inverse(matrix.detach()).mT * glog.unsqueeze(-1).unsqueeze(-1)


@op("linalg::svd")
def svd(A: Tensor, full_matrices: bool = True) -> SVD:  # noqa: N803 - PyTorch's names
    """U, the singular values in descending order, and Vh; reduced without `full_matrices`."""
    lapack.check(A, "svd")
    return SVD(*_Svd.apply(A, full_matrices))


@op("linalg::eigh")
def eigh(A: Tensor, UPLO: str = "L") -> Eigen:  # noqa: N803
    """Eigenvalues, ascending, and eigenvectors of symmetric matrices, of which one triangle is
    read."""
    lapack.check(A, "eigh", square=True)
    return Eigen(*_Eigh.apply(A, UPLO.upper() == "L"))


@op("linalg::qr")
def qr(A: Tensor, mode: str = "reduced") -> QR:  # noqa: N803
    """Q with orthogonal columns and the upper triangle R; `mode` "reduced", "complete" or "r", for
    which Q is empty."""
    lapack.check(A, "qr")
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(f"linalg.qr: mode is 'reduced', 'complete' or 'r', not {mode!r}")
    q, r = _Qr.apply(A, mode == "complete")
    return QR(lapack.empty(A, 0) if mode == "r" else q, r)


@op("linalg::cholesky")
def cholesky(A: Tensor, *, upper: bool = False) -> Tensor:  # noqa: N803
    """The lower triangle L with L Lᵀ = A; with `upper` its transpose. RuntimeError unless A is
    positive-definite."""
    lapack.check(A, "cholesky", square=True)
    lower: Tensor = _Cholesky.apply(A)
    return lower.mT if upper else lower


@op("linalg::solve")
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:  # noqa: N803
    """X with A X = B, or without `left` X A = B; B of one dimension, or of one less than A, has
    vectors. RuntimeError for a singular matrix."""
    lapack.check(A, "solve", square=True)
    if not left:
        return solve(A.mT, B.mT).mT
    is_vector = B.ndim == 1 or (B.ndim + 1 == A.ndim and B.shape == A.shape[:-1])
    right = B.unsqueeze(-1) if is_vector else B
    from opscope.tensor.composed.shapes import broadcast_shapes

    batch = broadcast_shapes(A.shape[:-2], right.shape[:-2])
    whole = A.expand((*batch, *A.shape[-2:])), right.expand((*batch, *right.shape[-2:]))
    made: Tensor = _Solve.apply(*whole)
    return made.squeeze(-1) if is_vector else made


@op("linalg::slogdet")
def slogdet(A: Tensor) -> SignAndLog:  # noqa: N803
    """The sign of the determinant, and the logarithm of its magnitude."""
    lapack.check(A, "slogdet", square=True)
    return SignAndLog(*_Slogdet.apply(A))
