"""Reductions in PyTorch's other spellings: `norm`, `std(unbiased=)`, `median`, `quantile`."""

from __future__ import annotations

import builtins
import math
from collections import namedtuple
from typing import Any

from opscope import _tensor
from opscope._tensor import Tensor, functions, operators

_var, _std = functions["var"], functions["std"]
_cumsum, _cumprod, _prod = functions["cumsum"], functions["cumprod"], functions["prod"]

median_result = namedtuple("median_result", ("values", "indices"))
kthvalue_result = namedtuple("kthvalue_result", ("values", "indices"))
aminmax_result = namedtuple("aminmax_result", ("min", "max"))


def _spread(run: Any, input: Tensor, args: tuple[Any, ...], named: dict[str, Any]) -> Tensor:
    """var or std for PyTorch's signatures: (unbiased), (dim, unbiased, keepdim), correction=."""
    given = list(args)
    dim = named.pop("dim", None)
    keepdim = named.pop("keepdim", False)
    correction = named.pop("correction", None)
    unbiased = named.pop("unbiased", None)
    out = named.pop("out", None)
    if named:
        raise TypeError(f"var(), std(): unexpected keyword argument {next(iter(named))!r}")
    if given and isinstance(given[0], builtins.bool):
        unbiased = given.pop(0)
    elif given:
        dim = given.pop(0)
        if given and isinstance(given[0], builtins.bool):
            unbiased = given.pop(0)
        elif given:
            correction = given.pop(0)
        keepdim = given.pop(0) if given else keepdim
    if given:
        raise TypeError("var(), std(): too many arguments")
    if unbiased is not None:
        correction = 1 if unbiased else 0
    correction = 1 if correction is None else correction
    if correction != int(correction):
        count = input.numel() / max(run(input, dim, correction=0, keepdim=keepdim).numel(), 1)
        variance = _var(input, dim, correction=0, keepdim=keepdim) * (count / (count - correction))
        return variance if run is _var else variance.sqrt()  # type: ignore[no-any-return]
    return run(input, dim, correction=int(correction), keepdim=keepdim, out=out)  # type: ignore[no-any-return]


def var(input: Tensor, *args: Any, **named: Any) -> Tensor:
    """The variance over `dim`, or over all elements: `var(unbiased)`, `var(dim, unbiased,
    keepdim)`, `var(dim, correction=1, keepdim=False)`. The sum of squares is divided by their
    number less `correction`."""
    return _spread(_var, input, args, named)


def std(input: Tensor, *args: Any, **named: Any) -> Tensor:
    """The square root of `var`, with the same arguments."""
    return _spread(_std, input, args, named)


def var_mean(input: Tensor, *args: Any, **named: Any) -> tuple[Tensor, Tensor]:
    """`var` and `mean` over the same dimensions."""
    return var(input, *args, **dict(named)), _mean_of(input, args, named)


def std_mean(input: Tensor, *args: Any, **named: Any) -> tuple[Tensor, Tensor]:
    """`std` and `mean` over the same dimensions."""
    return std(input, *args, **dict(named)), _mean_of(input, args, named)


def _mean_of(input: Tensor, args: tuple[Any, ...], named: dict[str, Any]) -> Tensor:
    dim = named.get("dim")
    if args and not isinstance(args[0], builtins.bool):
        dim = args[0]
    return input.mean(dim, keepdim=named.get("keepdim", False))


def cumsum(input: Tensor, dim: int, *, dtype: Any = None, out: Any = None) -> Tensor:
    """The sum of the elements up to and including each one along dim, in another dtype if given."""
    return _cumsum(input if dtype is None else input.to(dtype), dim, out=out)  # type: ignore[no-any-return]


def cumprod(input: Tensor, dim: int, *, dtype: Any = None, out: Any = None) -> Tensor:
    """The product up to and including each element along dim, in another dtype if given."""
    return _cumprod(input if dtype is None else input.to(dtype), dim, out=out)  # type: ignore[no-any-return]


def prod(
    input: Tensor,
    dim: Any = None,
    keepdim: builtins.bool = False,
    *,
    dtype: Any = None,
    out: Any = None,
) -> Tensor:
    """The product over dim, or over all elements, in another dtype if given."""
    return _prod(input if dtype is None else input.to(dtype), dim, keepdim, out=out)  # type: ignore[no-any-return]


def norm(
    input: Tensor,
    p: Any = "fro",
    dim: Any = None,
    keepdim: builtins.bool = False,
    *,
    dtype: Any = None,
) -> Tensor:
    """The p-norm over dim, or over all elements: "fro" and 2 are the root of the sum of squares,
    inf and -inf the largest and smallest magnitude, 0 the number of elements that are not zero.

    RuntimeError for integers and for "nuc" (see `linalg.matrix_norm`).
    """
    if dtype is not None:
        input = input.to(dtype)
    if not input.is_floating_point():
        raise RuntimeError(f"norm(): floats expected, not {input.dtype.name}")
    if p in ("fro", 2, None):
        return _root_of_squares(input, dim, keepdim)
    if p == "nuc":
        raise RuntimeError("norm(): the nuclear norm is linalg.matrix_norm(x, 'nuc')")
    size = input.abs()
    if p in (math.inf, -math.inf):
        return functions["amax" if p > 0 else "amin"](size, dim, keepdim)  # type: ignore[no-any-return]
    if p == 0:
        return (size != 0).to(size.dtype).sum(dim, keepdim=keepdim)  # type: ignore[no-any-return]
    if p == 1:
        return size.sum(dim, keepdim=keepdim)
    return size.pow(p).sum(dim, keepdim=keepdim).pow(1.0 / p)


def _root_of_squares(input: Tensor, dim: Any, keepdim: builtins.bool) -> Tensor:
    total = (input * input).sum(dim, keepdim=keepdim)
    # The gradient at zero is zero, and not the NaN of sqrt.
    zero = total.detach() == 0
    return total.masked_fill(zero, 1.0).sqrt().masked_fill(zero, 0.0)


def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The p-norm of the difference."""
    return norm(input - other, p)


def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Each slice of dim scaled down to a p-norm of at most `maxnorm`."""
    rest = [each for each in range(input.ndim) if each != dim % input.ndim]
    sizes = norm(input, p, rest, keepdim=True)
    scale = functions["where"](sizes > maxnorm, maxnorm / (sizes + 1e-7), 1.0)
    return input * scale  # type: ignore[no-any-return]


def aminmax(input: Tensor, *, dim: Any = None, keepdim: builtins.bool = False) -> Any:
    """The smallest and the largest element, over dim or over all elements."""
    return aminmax_result(input.amin(dim, keepdim), input.amax(dim, keepdim))


def median(input: Tensor, dim: int | None = None, keepdim: builtins.bool = False) -> Any:
    """The middle element, the lower of two; along dim, it and its index. NaN if there is one."""
    if dim is None:
        flat = input.reshape((-1,))
        return _middle(flat, 0)[0].reshape(())
    values, indices = _middle(input, dim)
    if not keepdim:
        values, indices = values.squeeze(dim), indices.squeeze(dim)
    return median_result(values, indices)


def _middle(input: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    values, indices = functions["sort"](input, dim)
    place = (input.shape[dim] - 1) // 2
    picked, at = values.narrow(dim, place, 1), indices.narrow(dim, place, 1)
    if input.is_floating_point():  # NaN is sorted to the end
        last, last_at = (
            values.narrow(dim, input.shape[dim] - 1, 1),
            indices.narrow(dim, input.shape[dim] - 1, 1),
        )
        bad = functions["isnan"](last.detach())
        picked = functions["where"](bad, last, picked)
        at = functions["where"](bad, last_at, at)
    return picked, at


def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: builtins.bool = False) -> Any:
    """The k-th smallest element along dim, from 1, and its index."""
    values, indices = functions["sort"](input, dim)
    if not 1 <= k <= input.shape[dim]:
        raise RuntimeError(f"kthvalue(): k is from 1 to {input.shape[dim]}, not {k}")
    values, indices = values.narrow(dim, k - 1, 1), indices.narrow(dim, k - 1, 1)
    if not keepdim:
        values, indices = values.squeeze(dim), indices.squeeze(dim)
    return kthvalue_result(values, indices)


def quantile(
    input: Tensor,
    q: Any,
    dim: int | None = None,
    keepdim: builtins.bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """The q-th quantiles along dim, or of all elements; a tensor of q gives a first dimension."""
    if interpolation not in ("linear", "lower", "higher", "nearest", "midpoint"):
        raise RuntimeError(f"quantile(): no interpolation {interpolation!r}")
    wanted = q if isinstance(q, Tensor) else _tensor.tensor(float(q), dtype=input.dtype)
    flat = input.reshape((-1,)) if dim is None else input
    at = 0 if dim is None else dim % input.ndim
    ordered, _ = functions["sort"](flat, at)
    made = []
    for each in wanted.reshape((-1,)).tolist():
        exact = each * (flat.shape[at] - 1)
        below, above = math.floor(exact), math.ceil(exact)
        part = exact - below
        if interpolation == "lower":
            part = 0.0
        elif interpolation == "higher":
            part = float(above > below)
        elif interpolation == "nearest":
            part = float(builtins.round(exact) > below)
        elif interpolation == "midpoint":
            part = 0.5 * (above > below)
        low, high = ordered.narrow(at, below, 1), ordered.narrow(at, above, 1)
        row = low if part == 0 else low + (high - low) * part
        made.append(row if keepdim else row.squeeze(at))
    if keepdim and dim is None:
        made = [row.reshape((1,) * input.ndim) for row in made]
    if wanted.ndim:
        return functions["stack"](made, 0)  # type: ignore[no-any-return]
    return made[0]  # type: ignore[no-any-return]


def nansum(input: Tensor, dim: Any = None, keepdim: builtins.bool = False) -> Tensor:
    """The sum of the elements that are no NaN."""
    return input.masked_fill(functions["isnan"](input), 0).sum(dim, keepdim=keepdim)


def nanmean(input: Tensor, dim: Any = None, keepdim: builtins.bool = False) -> Tensor:
    """The mean of the elements that are no NaN."""
    counted = (~functions["isnan"](input)).sum(dim, keepdim=keepdim)
    return nansum(input, dim, keepdim) / counted  # type: ignore[no-any-return]


def diff(input: Tensor, n: int = 1, dim: int = -1) -> Tensor:
    """The differences of neighbours along dim, n times."""
    for _ in range(n):
        size = input.shape[dim]
        later, earlier = input.narrow(dim, 1, size - 1), input.narrow(dim, 0, size - 1)
        input = later ^ earlier if input.dtype is _tensor.bool else later - earlier
    return input


def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """The integral along dim by the rule of trapezoids."""
    size = y.shape[dim]
    means = (y.narrow(dim, 1, size - 1) + y.narrow(dim, 0, size - 1)) / 2
    return (means * (dx if x is None else diff(x, dim=dim if x.ndim > 1 else 0))).sum(dim)


def cov(input: Tensor, *, correction: int = 1) -> Tensor:
    """The covariances of variables in rows, observations in columns."""
    whole = input.reshape((1, -1)) if input.ndim < 2 else input
    centered = whole - whole.mean(1, keepdim=True)
    made = centered @ centered.T / (whole.shape[1] - correction)
    return made.reshape(()) if input.ndim < 2 else made  # type: ignore[no-any-return]


def corrcoef(input: Tensor) -> Tensor:
    """The correlations of variables in rows, observations in columns."""
    if input.ndim < 2:
        return input.var() / input.var()
    found = cov(input)
    deviation = functions["stack"]([found[i, i] for i in range(found.shape[0])]).sqrt()
    return (found / deviation.unsqueeze(1) / deviation.unsqueeze(0)).clamp(-1, 1)  # type: ignore[no-any-return]


def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each integer occurs, from 0 on; with weights, their sums."""
    size = max(int(input.max()) + 1 if input.numel() else 0, minlength)
    added: Tensor = functions["ones"](input.shape, dtype=_tensor.int64)
    if weights is not None:
        added = weights if weights.dtype is _tensor.float32 else weights.to(_tensor.float64)
    zeros = functions["zeros"]((size,), dtype=added.dtype)
    return zeros.scatter_add(0, input.to(_tensor.int64), added)  # type: ignore[no-any-return]


def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """How many elements are in each of `bins` equal ranges from min to max; both 0: the limits of
    the elements. Others do not count."""
    low, high = float(min), float(max)
    if low == high == 0:
        low, high = float(input.min()), float(input.max())
    if low == high:
        low, high = low - 1, high + 1
    flat = input.detach().reshape((-1,))
    flat = flat[(flat >= low) & (flat <= high)]
    places = ((flat - low) * (bins / (high - low))).floor().clamp(0, bins - 1)
    return bincount(places.to(_tensor.int64), minlength=bins).to(input.dtype)


def logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """The logarithm of the sums of exp up to and including each element along dim."""
    top = input.detach().amax(dim, True)
    return (input - top).exp().cumsum(dim).log() + top


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle of vectors along dim; lengths count as at least eps."""
    first, second = norm(x1, 2, dim, keepdim=True), norm(x2, 2, dim, keepdim=True)
    return (x1 / first.clamp(eps) * (x2 / second.clamp(eps))).sum(dim)


STANDS_FOR = {
    var: operators["core::var"],
    std: operators["core::std"],
    cumsum: operators["core::cumsum"],
    cumprod: operators["core::cumprod"],
    prod: operators["core::prod"],
}
"""The operators that these functions have the name of, which graphs hold instead."""
