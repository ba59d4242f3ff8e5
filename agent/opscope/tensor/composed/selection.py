"""Elements by index and by mask: `narrow`, `take_along_dim`, `masked_scatter`, `unique`."""

from __future__ import annotations

from typing import Any

from opscope import _tensor
from opscope._tensor import Tensor, functions
from opscope.tensor.composed.shapes import place_of


def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """A view of `length` elements of dim, from `start` on."""
    begin = int(start)
    size = input.shape[dim]
    begin = begin + size if begin < 0 else begin
    if not 0 <= length <= size - begin:
        raise RuntimeError(f"narrow(): {start} + {length} is out of range for size {size}")
    return input.slice(dim, begin, begin + length, 1)


def take(input: Tensor, index: Tensor) -> Tensor:
    """The elements at places of the flattened tensor, in the shape of index."""
    return input.reshape((-1,)).index_select(0, index.reshape((-1,))).reshape(index.shape)


def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """The elements at indices along dim; the other sizes broadcast."""
    if dim is None:
        return input.reshape((-1,)).gather(0, indices.reshape((-1,)))
    at = place_of(dim, input.ndim, "take_along_dim")
    sizes = [max(own, their) for own, their in zip(input.shape, indices.shape, strict=True)]
    own = [*sizes[:at], input.shape[at], *sizes[at + 1 :]]
    their = [*sizes[:at], indices.shape[at], *sizes[at + 1 :]]
    return input.expand(tuple(own)).gather(at, indices.expand(tuple(their)))


def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """A copy with slices of dim, at `index`, filled with a number."""
    return index_fill_(input.clone(), dim, index, value)


def index_fill_(self: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """Fills slices of dim, at `index`, with a number."""
    at = place_of(dim, self.ndim, "index_fill")
    self[(slice(None),) * at + (index,)] = value
    return self


def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """A copy with slices of dim, at `index`, replaced by those of source."""
    return index_copy_(input.clone(), dim, index, source)


def index_copy_(self: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Replaces slices of dim, at `index`, by those of source."""
    at = place_of(dim, self.ndim, "index_copy")
    self[(slice(None),) * at + (index,)] = source
    return self


def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """A copy with the elements of source, in order, where mask is true."""
    return masked_scatter_(input.clone(), mask, source)


def masked_scatter_(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Writes the elements of source, in order, where mask is true."""
    mask = mask.expand(self.shape)
    count = int(mask.sum())
    if count > source.numel():
        raise RuntimeError(f"masked_scatter_(): {count} places, {source.numel()} elements")
    self[mask] = source.reshape((-1,))[:count]
    return self


def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy with the slice at `index` of dim replaced."""
    made: Tensor = input.clone()
    made.select(dim, index).copy_(src)
    return made


def argwhere(input: Tensor) -> Tensor:
    """`nonzero`: the places of the elements that are not zero, one a row."""
    return input.nonzero()  # type: ignore[no-any-return]


def nonzero(input: Tensor, *, as_tuple: bool = False, out: Any = None) -> Any:
    """The places of the elements that are not zero, one a row; or one tensor for each dimension."""
    found = functions["nonzero"](input, out=out)
    return tuple(found.unbind(1)) if as_tuple else found


def isin(elements: Any, test_elements: Any, *, invert: bool = False) -> Tensor:
    """Whether each element is one of `test_elements`."""
    from opscope.tensor.composed.creation import as_tensor

    own, tests = as_tensor(elements), as_tensor(test_elements).reshape((-1,))
    found: Tensor = (own.unsqueeze(-1) == tests).any(-1)
    return ~found if invert else found


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The different elements in ascending order, or the different slices of dim; then for each
    element the place of its value (`return_inverse`), and how often each occurs
    (`return_counts`)."""
    if dim is not None:
        return _unique_slices(input, return_inverse, return_counts, dim)
    flat = input.detach().reshape((-1,))
    ordered, order = functions["sort"](flat)
    first = _starts(ordered)
    groups = first.to(_tensor.int64).cumsum(0) - 1
    values = ordered[first]
    found: list[Tensor] = [values]
    if return_inverse:
        places = functions["empty"](flat.shape, dtype=_tensor.int64)
        places[order] = groups
        found.append(places.reshape(input.shape))
    if return_counts:
        found.append(_counts(groups, values.shape[0]))
    return found[0] if len(found) == 1 else tuple(found)


def _starts(ordered: Tensor) -> Tensor:
    """Where a new value begins; each NaN is one."""
    first: Tensor = functions["ones"](ordered.shape, dtype=_tensor.bool)
    if ordered.shape[0] > 1:
        first[1:] = ordered[1:] != ordered[:-1]
    return first


def _counts(groups: Tensor, count: int) -> Tensor:
    zeros = functions["zeros"]((count,), dtype=_tensor.int64)
    return zeros.scatter_add(0, groups, functions["ones"](groups.shape, dtype=_tensor.int64))  # type: ignore[no-any-return]


def _unique_slices(input: Tensor, inverse: bool, counts: bool, dim: int) -> Any:
    rows = [tuple(row) for row in input.transpose(0, dim).reshape((input.shape[dim], -1)).tolist()]
    values = sorted(set(rows))
    places = {row: place for place, row in enumerate(values)}
    first = [rows.index(row) for row in values]
    groups = _tensor.tensor([places[row] for row in rows], dtype=_tensor.int64)
    found = [input.detach().index_select(dim, _tensor.tensor(first, dtype=_tensor.int64))]
    found += [groups] * inverse
    found += [_counts(groups, len(values))] * counts
    return found[0] if len(found) == 1 else tuple(found)


def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False
) -> Any:
    """The elements without those that equal the one before; then as for `unique`."""
    flat = input.detach().reshape((-1,))
    first = _starts(flat)
    groups = first.to(_tensor.int64).cumsum(0) - 1
    values = flat[first]
    found = [values]
    found += [groups.reshape(input.shape)] * return_inverse
    found += [_counts(groups, values.shape[0])] * return_counts
    return found[0] if len(found) == 1 else tuple(found)


def msort(input: Tensor) -> Tensor:
    """Sorted along dimension 0."""
    return functions["sort"](input, 0)[0]  # type: ignore[no-any-return]


def searchsorted(
    sorted_sequence: Tensor,
    input: Any,
    *,
    right: bool = False,
    side: str | None = None,
    out_int32: bool = False,
) -> Tensor:
    """Where each element is to be inserted into ascending sequences (along the last dimension) so
    that the order stays: before equal ones, or behind them with `right` or side "right"."""
    given = input if isinstance(input, Tensor) else _tensor.tensor(input)
    behind = right or side == "right"
    line = sorted_sequence.unsqueeze(-2)
    wanted = given.unsqueeze(-1)
    if sorted_sequence.ndim == 1:
        line = sorted_sequence
    before = line <= wanted if behind else line < wanted
    return before.sum(-1).to(_tensor.int32 if out_int32 else _tensor.int64)


def bucketize(
    input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False
) -> Tensor:
    """The number of boundaries before each element; `right` counts equal ones too."""
    return searchsorted(boundaries, input, right=right, out_int32=out_int32)


def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """`scatter` that combines the elements of one place: "sum" or "mean"."""
    if reduce not in ("sum", "mean"):
        raise RuntimeError(f"scatter_reduce(): reduce is 'sum' or 'mean', not {reduce!r}")
    base = input if include_self else input.scatter(dim, index, 0)
    total: Tensor = base.scatter_add(dim, index, src)
    if reduce == "sum":
        return total
    ones = functions["ones"](index.shape, dtype=input.dtype)
    counted = functions["ones"](input.shape, dtype=input.dtype)
    counted = counted if include_self else counted.scatter(dim, index, 0)
    return total / counted.scatter_add(dim, index, ones).clamp(1)  # type: ignore[no-any-return]
