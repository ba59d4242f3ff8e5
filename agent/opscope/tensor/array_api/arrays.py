"""Making, converting and rearranging arrays, under the names of the array API standard."""

from __future__ import annotations

import builtins
from collections import namedtuple
from typing import Any

from opscope import _tensor
from opscope._tensor import Tensor, dtype, functions
from opscope.tensor import limits
from opscope.tensor.composed import conversion, creation, selection, shapes
from opscope.tensor.places import check

_KINDS: dict[str, tuple[dtype, ...]] = {
    "bool": (_tensor.bool,),
    "signed integer": (_tensor.int32, _tensor.int64),
    "unsigned integer": (_tensor.uint8,),
    "integral": (_tensor.int32, _tensor.int64, _tensor.uint8),
    "real floating": (_tensor.float32, _tensor.float64),
    "complex floating": (),
    "numeric": (
        _tensor.int32, _tensor.int64, _tensor.uint8, _tensor.float32, _tensor.float64,
    ),
}  # fmt: skip

# ---- creation ------------------------------------------------------------------------------------


def asarray(
    obj: Any, /, *, dtype: dtype | None = None, device: Any = None, copy: bool | None = None
) -> Tensor:
    """An array of numbers, or of another array: shared unless `copy`, or the dtype differs."""
    if isinstance(obj, float) and dtype is None:
        dtype = _tensor.float32
    if isinstance(obj, int) and not isinstance(obj, bool) and not -(2**63) <= obj < 2**63:
        raise OverflowError(f"asarray(): {obj} does not fit into int64")
    return creation.asarray(obj, dtype=dtype, device=device, copy=copy)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """The memory of another library's array, shared, or copied if `copy`."""
    check(device, "from_dlpack")
    made = _tensor.from_dlpack(x)
    return made.clone() if copy else made


def arange(
    start: Any,
    /,
    stop: Any = None,
    step: Any = 1,
    *,
    dtype: dtype | None = None,
    device: Any = None,
) -> Tensor:
    """Numbers from start up to stop, without it; none if stop is on the other side."""
    check(device, "arange")
    start, stop = (0, start) if stop is None else (start, stop)
    if dtype is None:
        is_float = any(isinstance(each, float) for each in (start, stop, step))
        dtype = _tensor.float32 if is_float else _tensor.int64
    if (stop - start) * step <= 0:
        return functions["zeros"]((0,), dtype=dtype)  # type: ignore[no-any-return]
    return functions["arange"](start, stop, step, dtype=dtype)  # type: ignore[no-any-return]


def _shaped(name: str) -> Any:
    run = functions[name]

    def make(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
        sizes = (shape,) if isinstance(shape, int) else tuple(shape)
        return run(sizes, dtype=dtype, device=device)  # type: ignore[no-any-return]

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"`{name}` of a shape."
    return make


def _like(name: str) -> Any:
    run = functions[name]

    def make(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
        return run(tuple(x.shape), dtype=dtype or x.dtype, device=device)  # type: ignore[no-any-return]

    make.__name__ = make.__qualname__ = f"{name}_like"
    make.__doc__ = f"`{name}` of the shape of x, and its dtype unless another is given."
    return make


empty, ones, zeros = _shaped("empty"), _shaped("ones"), _shaped("zeros")
empty_like, ones_like, zeros_like = _like("empty"), _like("ones"), _like("zeros")


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """One number everywhere; its kind gives the dtype unless one is given."""
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    return functions["full"](sizes, fill_value, dtype=dtype, device=device)  # type: ignore[no-any-return]


def full_like(x: Tensor, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """`full` of the shape of x, and its dtype unless another is given."""
    return full(tuple(x.shape), fill_value, dtype=dtype or x.dtype, device=device)


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None
) -> Tensor:
    """Ones on the k-th diagonal, else zeros."""
    check(device, "eye")
    columns = n_rows if n_cols is None else n_cols
    k = max(-n_rows - 1, min(k, columns + 1))
    row, column = functions["arange"](n_rows).unsqueeze(1), functions["arange"](columns)
    return (column - row == k).to(dtype or _tensor.float32)  # type: ignore[no-any-return]


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None,
    endpoint: bool = True,
) -> Tensor:  # fmt: skip
    """`num` numbers from start to stop, or up to it without `endpoint`."""
    kind = dtype or _tensor.float32
    if endpoint:
        made = functions["linspace"](start, stop, num, dtype=_tensor.float64)
    else:
        made = functions["linspace"](start, stop, num + 1, dtype=_tensor.float64)[:-1]
    return made.to(kind)  # type: ignore[no-any-return]


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    """The grids of lines."""
    return list(creation.meshgrid(*arrays, indexing=indexing))


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The lower triangles."""
    return functions["tril"](x, k)  # type: ignore[no-any-return]


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The upper triangles."""
    return functions["triu"](x, k)  # type: ignore[no-any-return]


# ---- dtypes --------------------------------------------------------------------------------------


def astype(x: Tensor, dtype: dtype, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """x in another dtype; x itself, without `copy`, if it has that one."""
    check(device, "astype")
    if dtype is x.dtype:
        return x.clone() if copy else x
    return functions["to"](x, dtype)  # type: ignore[no-any-return]


def isdtype(dtype: dtype, kind: Any) -> bool:
    """Whether a dtype is another, or of a kind, or one of a tuple of these."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ValueError(f"isdtype(): no kind {kind!r}")
        return dtype in _KINDS[kind]
    return dtype is kind


def can_cast(from_: Any, to: dtype, /) -> bool:
    """Whether promotion leads from a dtype, or that of an array, to another."""
    own = from_.dtype if isinstance(from_, Tensor) else from_
    return conversion.promote_types(own, to) is to


def finfo(type: Any, /) -> limits.finfo:
    """The limits of a floating dtype, or of that of an array."""
    made = limits.finfo(type.dtype if isinstance(type, Tensor) else type)
    made.dtype = type.dtype if isinstance(type, Tensor) else type
    return made


def iinfo(type: Any, /) -> limits.iinfo:
    """The limits of an integer dtype, or of that of an array."""
    made = limits.iinfo(type.dtype if isinstance(type, Tensor) else type)
    made.dtype = type.dtype if isinstance(type, Tensor) else type
    return made


def result_type(*arrays_and_dtypes: Any) -> dtype:
    """The dtype of an operation on all of these."""
    found: dtype | None = None
    numbers = []
    for each in arrays_and_dtypes:
        if isinstance(each, (builtins.bool, builtins.int, builtins.float)):
            numbers.append(each)
            continue
        own = each.dtype if isinstance(each, Tensor) else each
        found = own if found is None else conversion.promote_types(found, own)
    if found is None:
        raise ValueError("result_type(): an array or a dtype is needed")
    for number in numbers:
        if isinstance(number, builtins.float) and not found.is_floating_point:
            found = _tensor.float32
        elif not isinstance(number, builtins.bool) and found is _tensor.bool:
            found = _tensor.int64
    return found


# ---- shapes --------------------------------------------------------------------------------------


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """All arrays, expanded to their common shape."""
    return list(shapes.broadcast_tensors(*arrays))


broadcast_shapes = shapes.broadcast_shapes


def broadcast_to(x: Tensor, /, shape: Any) -> Tensor:
    """x, expanded to a shape."""
    return functions["broadcast_to"](x, tuple(shape))  # type: ignore[no-any-return]


def concat(arrays: Any, /, *, axis: int | None = 0) -> Tensor:
    """Arrays joined along an axis; None: flattened first."""
    whole = [each.reshape((-1,)) for each in arrays] if axis is None else list(arrays)
    kind = result_type(*whole)
    return functions["cat"]([each.to(kind) for each in whole], axis or 0)  # type: ignore[no-any-return]


def stack(arrays: Any, /, *, axis: int = 0) -> Tensor:
    """Arrays joined along a new axis."""
    kind = result_type(*arrays)
    return functions["stack"]([each.to(kind) for each in arrays], axis)  # type: ignore[no-any-return]


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices of an axis."""
    return tuple(functions["unbind"](x, axis))


def expand_dims(x: Tensor, /, *, axis: int = 0) -> Tensor:
    """A view with one more axis, of size 1."""
    return functions["unsqueeze"](x, axis)  # type: ignore[no-any-return]


def squeeze(x: Tensor, /, axis: Any) -> Tensor:
    """A view without these axes. ValueError if their sizes are not 1."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    if any(x.shape[each] != 1 for each in axes):
        raise ValueError(f"squeeze(): the axes {axes} of shape {tuple(x.shape)} have no size 1")
    return functions["squeeze"](x, axes) if axes else x


def flip(x: Tensor, /, *, axis: Any = None) -> Tensor:
    """The order along axes reversed; None: along all."""
    axes = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    return functions["flip"](x, tuple(axes))  # type: ignore[no-any-return]


def roll(x: Tensor, /, shift: Any, *, axis: Any = None) -> Tensor:
    """Elements shifted cyclically along axes; None: in the flattened array."""
    shifts = (shift,) if isinstance(shift, int) else tuple(shift)
    if axis is None:
        return functions["roll"](x.reshape((-1,)), shifts, (0,)).reshape(x.shape)  # type: ignore[no-any-return]
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    shifts = shifts * len(axes) if len(shifts) == 1 else shifts
    return functions["roll"](x, shifts, axes)  # type: ignore[no-any-return]


def repeat(x: Tensor, repeats: Any, /, *, axis: int | None = None) -> Tensor:
    """Each element repeated, along an axis or in the flattened array."""
    return shapes.repeat_interleave(x, repeats, axis)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """The whole array repeated along its axes."""
    return shapes.tile(x, tuple(repetitions))


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """A view with the axes in another order."""
    return functions["permute"](x, tuple(axes))  # type: ignore[no-any-return]


def moveaxis(x: Tensor, source: Any, destination: Any, /) -> Tensor:
    """A view with axes moved to other places."""
    return shapes.movedim(x, source, destination)


def reshape(x: Tensor, /, shape: Any, *, copy: bool | None = None) -> Tensor:
    """The elements in another shape. ValueError if `copy` is False and no view can have it."""
    sizes = tuple(shape)
    if copy:
        return functions["reshape"](x.clone(), sizes)  # type: ignore[no-any-return]
    if copy is False:
        try:
            return functions["view"](x, sizes)  # type: ignore[no-any-return]
        except RuntimeError as error:
            raise ValueError(str(error)) from None
    return functions["reshape"](x, sizes)  # type: ignore[no-any-return]


def matrix_transpose(x: Tensor, /) -> Tensor:
    """A view with the last two axes exchanged."""
    return x.mT


# ---- elements ------------------------------------------------------------------------------------


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """Slices of an axis at indices."""
    made: Tensor = x.index_select(0 if axis is None else axis, indices)
    return made


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """Elements along an axis at indices, which broadcast."""
    return selection.take_along_dim(x, indices, axis)


_All = namedtuple("_All", ("values", "indices", "inverse_indices", "counts"))
_Counts = namedtuple("_Counts", ("values", "counts"))
_Inverse = namedtuple("_Inverse", ("values", "inverse_indices"))


def unique_all(x: Tensor, /) -> Any:
    """The different values, the place of the first of each, the value of each, and their counts."""
    values, inverse, counts = selection.unique(x, return_inverse=True, return_counts=True)
    _, order = functions["sort"](inverse.reshape((-1,)), stable=True)
    first = counts.cumsum(0) - counts
    return _All(values, order[first], inverse, counts)


def unique_counts(x: Tensor, /) -> Any:
    """The different values, and how often each occurs."""
    return _Counts(*selection.unique(x, return_counts=True))


def unique_inverse(x: Tensor, /) -> Any:
    """The different values, and for each element the place of its value."""
    return _Inverse(*selection.unique(x, return_inverse=True))


def unique_values(x: Tensor, /) -> Tensor:
    """The different values."""
    return selection.unique(x)  # type: ignore[no-any-return]


__all__ = [
    "arange",
    "asarray",
    "astype",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "can_cast",
    "concat",
    "empty",
    "empty_like",
    "expand_dims",
    "eye",
    "finfo",
    "flip",
    "from_dlpack",
    "full",
    "full_like",
    "iinfo",
    "isdtype",
    "linspace",
    "matrix_transpose",
    "meshgrid",
    "moveaxis",
    "ones",
    "ones_like",
    "permute_dims",
    "repeat",
    "reshape",
    "result_type",
    "roll",
    "squeeze",
    "stack",
    "take",
    "take_along_axis",
    "tile",
    "tril",
    "triu",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "unstack",
    "zeros",
    "zeros_like",
]
