"""Sums of products: `einsum`, `tensordot`, `baddbmm`, `cdist`, `cross`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from opscope._tensor import Tensor, functions

_matmul = functions["matmul"]


def einsum(equation: str, *operands: Any) -> Tensor:
    """Sums products of the operands' elements, as in "ij,jk->ik". Dimensions under "..." broadcast.
    Without "->", the result has the letters that occur once, in alphabetical order.

    RuntimeError for an equation that does not fit its operands.
    """
    given: list[Any] = list(operands)
    if len(given) == 1 and not isinstance(given[0], Tensor):
        given = list(given[0])
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(given):
        raise RuntimeError(f"einsum(): {equation!r} names {len(terms)} operands, not {len(given)}")
    more = 0  # the most dimensions in place of "..."
    for term, tensor in zip(terms, given, strict=True):
        if "..." in term:
            more = max(more, tensor.ndim - len(term.replace("...", "")))
    whole = [
        _labels(term, tensor, more, equation) for term, tensor in zip(terms, given, strict=True)
    ]
    counted = "".join(terms).replace(".", "")
    if arrow:
        wanted = _labels_of(right, more)
    else:
        once = sorted(each for each in set(counted) if counted.count(each) == 1)
        wanted = [f".{i}" for i in range(more)] + once
    parts = [_diagonals(tensor, labels) for tensor, labels in zip(given, whole, strict=True)]
    tensor, labels = parts[0]
    for place, (other, theirs) in enumerate(parts[1:], 1):
        later = set(wanted).union(*(labels for _, labels in parts[place + 1 :]))
        tensor, labels = _product(tensor, labels, other, theirs, later)
    gone = [place for place, label in enumerate(labels) if label not in wanted]
    if gone:
        tensor = tensor.sum(gone)
        labels = [label for label in labels if label in wanted]
    if sorted(labels) != sorted(wanted):
        raise RuntimeError(f"einsum(): {equation!r}: the result has letters that no operand has")
    return tensor.permute(tuple(labels.index(label) for label in wanted))


def _labels_of(term: str, more: int) -> list[str]:
    before, dots, behind = term.partition("...")
    return [*before, *(f".{i}" for i in range(more if dots else 0)), *behind]


def _labels(term: str, tensor: Tensor, more: int, equation: str) -> list[str]:
    before, dots, behind = term.partition("...")
    own = tensor.ndim - len(before) - len(behind)
    if own < 0 or (own and not dots):
        raise RuntimeError(f"einsum(): {equation!r}: {term!r} for {tensor.ndim} dimensions")
    return [*before, *(f".{i}" for i in range(more - own, more)), *behind]


def _diagonals(tensor: Tensor, labels: list[str]) -> tuple[Tensor, list[str]]:
    """The tensor with each label once."""
    from opscope.tensor.composed.shapes import diagonal

    while len(set(labels)) < len(labels):
        label = next(each for each in labels if labels.count(each) > 1)
        first = labels.index(label)
        second = labels.index(label, first + 1)
        tensor = diagonal(tensor, 0, first, second)
        labels = [each for place, each in enumerate(labels) if place not in (first, second)]
        labels.append(label)
    return tensor, labels


def _product(
    a: Tensor, a_labels: list[str], b: Tensor, b_labels: list[str], later: set[str]
) -> tuple[Tensor, list[str]]:
    """The product of two operands, summed over the labels that only they have: one bmm."""
    for label in [each for each in a_labels if each not in b_labels and each not in later]:
        a, a_labels = a.sum(a_labels.index(label)), [each for each in a_labels if each != label]
    for label in [each for each in b_labels if each not in a_labels and each not in later]:
        b, b_labels = b.sum(b_labels.index(label)), [each for each in b_labels if each != label]
    shared = [each for each in a_labels if each in b_labels]
    size = {}
    for label in shared:  # of sizes 1 and n, n is the size
        sizes = a.shape[a_labels.index(label)], b.shape[b_labels.index(label)]
        if sizes[0] != sizes[1] and 1 not in sizes:
            raise RuntimeError(f"einsum(): {label!r} has sizes {sizes[0]} and {sizes[1]}")
        size[label] = max(sizes) if 0 not in sizes else 0
    batch = [each for each in shared if each in later]
    summed = [each for each in shared if each not in later]
    rows = [each for each in a_labels if each not in shared]
    columns = [each for each in b_labels if each not in shared]
    a_sizes = [a.shape[a_labels.index(each)] for each in rows]
    b_sizes = [b.shape[b_labels.index(each)] for each in columns]

    def arranged(tensor: Tensor, labels: list[str], order: list[str]) -> Tensor:
        turned: Tensor = tensor.permute(tuple(labels.index(each) for each in order))
        return turned.expand(tuple(size.get(each, -1) for each in order)) if order else turned

    inner = math.prod(size[each] for each in summed)
    outer = [size[each] for each in batch]
    left = arranged(a, a_labels, batch + rows + summed)
    right = arranged(b, b_labels, batch + summed + columns)
    product = _matmul(
        left.reshape((math.prod(outer), math.prod(a_sizes), inner)),
        right.reshape((math.prod(outer), inner, math.prod(b_sizes))),
    )
    return product.reshape((*outer, *a_sizes, *b_sizes)), batch + rows + columns


def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """The sum of products over the last `dims` dimensions of a and the first of b; or over the two
    lists of dimensions."""
    if isinstance(dims, int):
        dims = range(a.ndim - dims, a.ndim), range(dims)
    first, second = ([each] if isinstance(each, int) else [*each] for each in dims)
    first, second = [dim % a.ndim for dim in first], [dim % b.ndim for dim in second]
    kept_a = [dim for dim in range(a.ndim) if dim not in first]
    kept_b = [dim for dim in range(b.ndim) if dim not in second]
    inner = math.prod(a.shape[dim] for dim in first)
    a_sizes = [a.shape[dim] for dim in kept_a]
    b_sizes = [b.shape[dim] for dim in kept_b]
    left = a.permute((*kept_a, *first)).reshape((math.prod(a_sizes), inner))
    right = b.permute((*second, *kept_b)).reshape((inner, math.prod(b_sizes)))
    shape = (*a_sizes, *b_sizes)
    return _matmul(left, right).reshape(shape)  # type: ignore[no-any-return]


def inner(input: Tensor, other: Tensor) -> Tensor:
    """The sums of products over the last dimensions."""
    if input.ndim == 0 or other.ndim == 0:
        return input * other
    return tensordot(input, other, ([-1], [-1]))


def baddbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1
) -> Tensor:
    """beta * input + alpha * (batch1 @ batch2)."""
    return _added(input, functions["bmm"](batch1, batch2), beta, alpha)


def addbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1
) -> Tensor:
    """beta * input + alpha * the sum of all products batch1[i] @ batch2[i]."""
    return _added(input, functions["bmm"](batch1, batch2).sum(0), beta, alpha)


def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * input + alpha * (mat @ vec)."""
    return _added(input, functions["mv"](mat, vec), beta, alpha)


def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * input + alpha * the outer product."""
    return _added(input, functions["outer"](vec1, vec2), beta, alpha)


def _added(input: Tensor, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    product = product if alpha == 1 else product * alpha
    if beta == 0:  # then NaN in input does not count
        return product
    return (input if beta == 1 else input * beta) + product


def vdot(input: Tensor, other: Tensor) -> Tensor:
    """`dot`."""
    return functions["dot"](input, other)  # type: ignore[no-any-return]


def kron(input: Tensor, other: Tensor) -> Tensor:
    """The Kronecker product: each element of input times all of other."""
    dims = max(input.ndim, other.ndim)
    a = (1,) * (dims - input.ndim) + tuple(input.shape)
    b = (1,) * (dims - other.ndim) + tuple(other.shape)
    left = input.reshape(tuple(size for each in a for size in (each, 1)))
    right = other.reshape(tuple(size for each in b for size in (1, each)))
    return (left * right).reshape(tuple(x * y for x, y in zip(a, b, strict=True)))


def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """The cross product of vectors along dim: -1, or the first dimension of size 3."""
    if dim is None:
        dim = next(place for place, size in enumerate(input.shape) if size == 3)
    ahead, back = (1, 2, 0), (2, 0, 1)

    def turned(tensor: Tensor, order: Sequence[int]) -> Tensor:
        return functions["cat"]([tensor.narrow(dim, place, 1) for place in order], dim)  # type: ignore[no-any-return]

    return turned(input, ahead) * turned(other, back) - turned(input, back) * turned(other, ahead)


def trace(input: Tensor) -> Tensor:
    """The sum of the diagonal of a matrix."""
    if input.ndim != 2:
        raise RuntimeError(f"trace(): a matrix, not {input.ndim} dimensions")
    return input.diagonal().sum()


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, **_: Any) -> Tensor:
    """The p-norm distances of each row of x1 and each of x2: (..., P, M) and (..., R, M) give
    (..., P, R)."""
    from opscope.tensor.composed.reductions import norm

    return norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p, -1)


def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The p-norm distances of each two rows."""
    from opscope.tensor.composed.creation import triu_indices
    from opscope.tensor.composed.reductions import norm

    rows, columns = triu_indices(input.shape[0], input.shape[0], 1).unbind(0)
    return norm(input[rows] - input[columns], p, -1)


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of one element of each, one a row."""
    from opscope.tensor.composed.creation import meshgrid

    if len(tensors) == 1:
        return tensors[0]
    columns = [each.reshape((-1,)) for each in meshgrid(*tensors)]
    return functions["stack"](columns, 1)  # type: ignore[no-any-return]
