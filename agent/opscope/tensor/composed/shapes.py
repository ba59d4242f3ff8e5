"""Views and copies in other shapes: `movedim`, `tile`, `unflatten`, `as_strided`, stacking."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from opscope import _tensor
from opscope._tensor import Tensor, functions


def place_of(dim: int, dims: int, name: str) -> int:
    """A dimension, counted from the front. IndexError for one that is not there."""
    if not -max(dims, 1) <= dim < max(dims, 1):
        raise IndexError(f"{name}(): dimension {dim} is out of range for {dims} dimensions")
    return dim % max(dims, 1)


def spread(given: tuple[Any, ...]) -> tuple[int, ...]:
    """The ints of `f(1, 2)` or `f((1, 2))`."""
    if len(given) == 1 and not isinstance(given[0], int):
        return tuple(given[0])
    return given


def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """A view with dimensions moved to other places; the rest keep their order."""
    pairs = [
        [place_of(each, input.ndim, "movedim") for each in ((at,) if isinstance(at, int) else at)]
        for at in (source, destination)
    ]
    if len(pairs[0]) != len(pairs[1]):
        raise RuntimeError("movedim(): as many sources as destinations")
    order = [dim for dim in range(input.ndim) if dim not in pairs[0]]
    for target, dim in sorted(zip(pairs[1], pairs[0], strict=True)):
        order.insert(target, dim)
    return input.permute(tuple(order))


moveaxis = movedim


def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """A view with the two dimensions exchanged."""
    return input.transpose(axis0, axis1)


swapdims = swapaxes


def ravel(input: Tensor) -> Tensor:
    """All elements in one dimension."""
    return input.reshape((-1,))


def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """A view with `dim` divided into those sizes; one may be -1."""
    place = place_of(dim, input.ndim, "unflatten")
    return input.reshape((*input.shape[:place], *sizes, *input.shape[place + 1 :]))


def tile(input: Tensor, *dims: Any) -> Tensor:
    """The tensor repeated that many times along each of the last dimensions."""
    counts = spread(dims)
    return input.repeat((1,) * (input.ndim - len(counts)) + tuple(counts))


def repeat_interleave(
    input: Tensor, repeats: Any, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Each element, or slice of `dim`, repeated: a number of times, or one for each in a tensor."""
    if dim is None:
        input, dim = input.reshape((-1,)), 0
    count = input.shape[dim]
    places = functions["arange"](count)
    if isinstance(repeats, int):
        places = places.unsqueeze(1).expand((count, repeats)).reshape((-1,))
    else:
        each = repeats.tolist() if isinstance(repeats, Tensor) else list(repeats)
        each = each if isinstance(each, list) else [each]
        each = each * count if len(each) == 1 else each
        if len(each) != count:
            raise RuntimeError(f"repeat_interleave(): {count} repeats, not {len(each)}")
        listed = [place for place, times in enumerate(each) for _ in range(times)]
        places = _tensor.tensor(listed, dtype=_tensor.int64)
    return input.index_select(dim, places)


def as_strided(
    input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """A view of the storage with those sizes, strides and offset, in elements.

    ValueError for elements beyond `input`, if it is on the tape.
    """
    own = input.storage_offset()
    offset = own if storage_offset is None else storage_offset
    if input.requires_grad:
        return input.strided_view(input.strides, tuple(size), tuple(stride), offset - own)
    return _tensor.strided(input, tuple(size), tuple(stride), offset)


def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> Any:
    """`chunk`."""
    return input.chunk(chunks, dim)


def tensor_split(input: Tensor, indices_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of `dim`: that many of nearly equal size, or those between the indices."""
    size = input.shape[dim]
    given = indices_or_sections
    if isinstance(given, Tensor):
        given = given.tolist()
    if isinstance(given, int):
        small, more = divmod(size, given)
        sizes = [small + (place < more) for place in range(given)]
    else:
        bounds = [0, *(min(each if each >= 0 else each + size, size) for each in given), size]
        starts = pairwise(bounds)
        return tuple(
            input.slice(dim, start, max(start, end), 1)
            if end > start
            else input.slice(dim, 0, 0, 1)
            for start, end in starts
        )
    return tuple(input.split(sizes, dim))


def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Joined along dimension 1, or 0 for tensors of one dimension."""
    whole = [each.reshape((1,)) if each.ndim == 0 else each for each in tensors]
    return functions["cat"](whole, 0 if whole[0].ndim == 1 else 1)  # type: ignore[no-any-return]


def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Joined along dimension 0, as rows."""
    rows = [each.reshape((1, -1)) if each.ndim < 2 else each for each in tensors]
    return functions["cat"](rows, 0)  # type: ignore[no-any-return]


row_stack = vstack


def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """Joined along dimension 2."""
    whole = [
        each.reshape((1, -1, 1)) if each.ndim < 2 else each.unsqueeze(2) if each.ndim == 2 else each
        for each in tensors
    ]
    return functions["cat"](whole, 2)  # type: ignore[no-any-return]


def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Joined along dimension 1; tensors of one dimension are columns."""
    whole = [each.reshape((-1, 1)) if each.ndim < 2 else each for each in tensors]
    return functions["cat"](whole, 1)  # type: ignore[no-any-return]


def concat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """`cat`."""
    return functions["cat"](tensors, dim)  # type: ignore[no-any-return]


concatenate = concat


def _atleast(dims: int, input: Tensor) -> Tensor:
    if input.ndim >= dims:
        return input
    if dims == 3 and input.ndim == 2:
        return input.unsqueeze(2)
    if dims == 3:
        return input.reshape((1, -1, 1))
    return input.reshape((1,) * (dims - 1) + (-1,))


def atleast_1d(*tensors: Tensor) -> Any:
    """Each tensor with at least one dimension; a single one by itself."""
    made = tuple(_atleast(1, each) for each in tensors)
    return made[0] if len(made) == 1 else made


def atleast_2d(*tensors: Tensor) -> Any:
    """Each tensor with at least two dimensions; a single one by itself."""
    made = tuple(_atleast(2, each) for each in tensors)
    return made[0] if len(made) == 1 else made


def atleast_3d(*tensors: Tensor) -> Any:
    """Each tensor with at least three dimensions; a single one by itself."""
    made = tuple(_atleast(3, each) for each in tensors)
    return made[0] if len(made) == 1 else made


def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """All tensors, expanded to their common shape."""
    shape = broadcast_shapes(*(each.shape for each in tensors))
    return tuple(each.expand(shape) for each in tensors)


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape to which all these shapes broadcast. RuntimeError if there is none."""
    from opscope.tensor.places import Size

    whole = [(each,) if isinstance(each, int) else tuple(each) for each in shapes]
    dims = max(map(len, whole), default=0)
    found = []
    for place in range(-dims, 0):
        sizes = {shape[place] for shape in whole if len(shape) >= -place} - {1}
        if len(sizes) > 1:
            raise RuntimeError(f"broadcast_shapes(): {whole} do not broadcast")
        found.append(sizes.pop() if sizes else 1)
    return Size(found)


def fliplr(input: Tensor) -> Tensor:
    """The order of the columns reversed."""
    return input.flip((1,))


def flipud(input: Tensor) -> Tensor:
    """The order of the rows reversed."""
    return input.flip((0,))


def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Turned by `k` quarters of a circle in the plane of the two dimensions."""
    first, second = dims
    if k % 4 == 1:
        return input.flip((second,)).transpose(first, second)
    if k % 4 == 2:
        return input.flip((first, second))
    return input.flip((first,)).transpose(first, second) if k % 4 == 3 else input.clone()


def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A view of the diagonals of the planes of the two dimensions, as the last dimension."""
    first = place_of(dim1, input.ndim, "diagonal")
    second = place_of(dim2, input.ndim, "diagonal")
    rows, columns = input.shape[first], input.shape[second]
    steps = input.strides
    count = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    start = 0
    if count:
        start = offset * steps[second] if offset > 0 else -offset * steps[first]
    rest = [dim for dim in range(input.ndim) if dim not in (first, second)]
    size = (*(input.shape[dim] for dim in rest), count)
    stride = (*(steps[dim] for dim in rest), steps[first] + steps[second])
    return input.strided_view(steps, size, stride, start)


def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """The diagonal of a matrix; of a vector, the matrix with that diagonal."""
    if input.ndim == 2:
        return globals()["diagonal"](input, diagonal).clone()  # type: ignore[no-any-return]
    return diag_embed(input, diagonal)


def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Matrices, in dimensions dim1 and dim2 of the result, with the last dimension as diagonal."""
    size = input.shape[-1] + abs(offset)
    dims = input.ndim + 1
    row = functions["arange"](size).unsqueeze(1)
    column = functions["arange"](size).unsqueeze(0)
    on = column - row == offset
    place = (row if offset >= 0 else column).expand((size, size)).reshape((-1,))
    place = place.clamp(0, max(input.shape[-1] - 1, 0))
    taken = input.index_select(-1, place).reshape((*input.shape[:-1], size, size))
    made = functions["where"](on, taken, _tensor.tensor(0, dtype=input.dtype))
    first, second = place_of(dim1, dims, "diag_embed"), place_of(dim2, dims, "diag_embed")
    return movedim(made, (-2, -1), (first, second))


def adjoint(self: Tensor) -> Tensor:
    """A view with the last two dimensions exchanged."""
    return self.transpose(-2, -1)


def unsqueeze_(self: Tensor, dim: int) -> Tensor:
    """`unsqueeze` of the tensor itself, a leaf."""
    self.data = self.data.unsqueeze(dim)
    return self


def squeeze_(self: Tensor, dim: Any = None) -> Tensor:
    """`squeeze` of the tensor itself, a leaf."""
    self.data = self.data.squeeze() if dim is None else self.data.squeeze(dim)
    return self
