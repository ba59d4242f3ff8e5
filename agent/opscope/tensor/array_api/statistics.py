"""Reductions, sorting, searching and products, under the names of the array API standard."""

from __future__ import annotations

import builtins
from typing import Any

from opscope import _tensor
from opscope._tensor import Tensor, functions
from opscope.tensor.composed import elementwise, linear, reductions, selection

Axes = Any

matmul = functions["matmul"]


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: Any = 2) -> Tensor:
    """The sum of products over the last axes of x1 and the first of x2, or over two lists."""
    return linear.tensordot(x1, x2, axes)


def _axes(axis: Axes) -> Any:
    return axis if axis is None or isinstance(axis, int) else tuple(axis)


def _wide(x: Tensor, dtype: Any) -> Tensor:
    """In the dtype that sums have: int64 for integers."""
    if dtype is not None:
        return x.to(dtype)
    return x if x.is_floating_point() else x.to(_tensor.int64)


def sum(x: Tensor, /, *, axis: Axes = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The sum over axes; of integers in int64."""
    if axis == ():
        return _wide(x, dtype).clone()
    return functions["sum"](_wide(x, dtype), _axes(axis), keepdims).to(  # type: ignore[no-any-return]
        dtype or _wide(x, dtype).dtype
    )


def prod(x: Tensor, /, *, axis: Axes = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The product over axes; of integers in int64."""
    whole = _wide(x, dtype)
    if axis == ():
        return whole.clone()
    return functions["prod"](whole, _axes(axis), keepdims).to(whole.dtype)  # type: ignore[no-any-return]


def mean(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The mean over axes."""
    return x.clone() if axis == () else functions["mean"](x, _axes(axis), keepdims)


def var(
    x: Tensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """The variance over axes: squares are divided by their number less `correction`."""
    if axis == ():
        return x * 0
    return reductions.var(x, dim=_axes(axis), correction=correction, keepdim=keepdims)


def std(
    x: Tensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """The square root of `var`."""
    return var(x, axis=axis, correction=correction, keepdims=keepdims).sqrt()


def max(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The largest element over axes."""
    return x.clone() if axis == () else functions["amax"](x, _axes(axis), keepdims)


def min(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The smallest element over axes."""
    return x.clone() if axis == () else functions["amin"](x, _axes(axis), keepdims)


def all(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Whether all elements over axes are not zero."""
    if axis == ():
        return x.to(_tensor.bool)
    return functions["all"](x, _axes(axis), keepdims).to(_tensor.bool)  # type: ignore[no-any-return]


def any(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Whether an element over axes is not zero."""
    if axis == ():
        return x.to(_tensor.bool)
    return functions["any"](x, _axes(axis), keepdims).to(_tensor.bool)  # type: ignore[no-any-return]


def count_nonzero(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The number of elements over axes that are not zero."""
    return sum((x != 0).to(_tensor.int64), axis=axis, keepdims=keepdims)


def _cumulative(name: str, first: int) -> Any:
    run = functions[name]

    def cumulative(
        x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
    ) -> Tensor:
        at = 0 if axis is None else axis % builtins.max(x.ndim, 1)
        whole = _wide(x, dtype)
        made: Tensor = run(whole, at)
        if include_initial:
            shape = (*x.shape[:at], 1, *x.shape[at + 1 :])
            begin = functions["full"](shape, first, dtype=made.dtype)
            made = functions["cat"]([begin, made], at)
        return made

    cumulative.__doc__ = f"`{name}` along an axis; with `include_initial`, {first} first."
    return cumulative


cumulative_sum = _cumulative("cumsum", 0)
cumulative_prod = _cumulative("cumprod", 1)


def diff(
    x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None
) -> Tensor:
    """The differences of neighbours along an axis, n times."""
    parts = [each for each in (prepend, x, append) if each is not None]
    return reductions.diff(functions["cat"](parts, axis) if len(parts) > 1 else x, n, axis)


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the largest element along an axis."""
    return _place("argmax", x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the smallest element along an axis."""
    return _place("argmin", x, axis, keepdims)


def _place(name: str, x: Tensor, axis: int | None, keepdims: bool) -> Tensor:
    found: Tensor = functions[name](x, axis, keepdims and axis is not None)
    return found.reshape((1,) * x.ndim) if keepdims and axis is None else found


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The places of elements that are not zero, one array for each axis."""
    if x.ndim == 0:
        raise ValueError("nonzero(): an array without axes")
    return tuple(functions["nonzero"](x).unbind(1))


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    """x1 where condition is true, else x2."""
    return elementwise.where(condition, x1, x2)  # type: ignore[no-any-return]


def searchsorted(
    x1: Tensor, x2: Any, /, *, side: str = "left", sorter: Tensor | None = None
) -> Tensor:
    """Where each element of x2 is to be inserted into the ascending x1."""
    line = x1 if sorter is None else x1[sorter]
    return selection.searchsorted(line, x2, side=side)


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Sorted along an axis."""
    return functions["sort"](x, axis, descending, stable=True)[0]  # type: ignore[no-any-return]


def argsort(
    x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> Tensor:
    """The indices that sort along an axis."""
    return functions["sort"](x, axis, descending, stable=True)[1]  # type: ignore[no-any-return]


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The sums of products along an axis. ValueError if its sizes differ."""
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"vecdot(): sizes {x1.shape[axis]} and {x2.shape[axis]} of the axis")
    product = x1.movedim(axis, -1) * x2.movedim(axis, -1)
    return product.sum(-1).to(product.dtype)
