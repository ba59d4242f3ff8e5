"""Tensors from numbers, arrays and ranges: `as_tensor`, `meshgrid`, `Tensor(2, 3)` and others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opscope import _tensor
from opscope._tensor import Tensor, dtype, functions, tensor
from opscope.tensor.places import check


def as_tensor(data: Any, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """`data` itself if it is a tensor of that dtype; shares an array's memory; copies numbers."""
    check(device, "as_tensor")
    if not isinstance(data, Tensor):
        if not hasattr(data, "__array_interface__") or not hasattr(data, "shape"):
            return tensor(data, dtype=dtype)
        data = _tensor.from_numpy(data) if data.shape else tensor(data)
    return data if dtype is None or data.dtype is dtype else data.to(dtype)  # type: ignore[no-any-return]


def asarray(
    obj: Any,
    *,
    dtype: dtype | None = None,
    device: Any = None,
    copy: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of `obj`: shared if it can be, copied if `copy`. ValueError if `copy` is False and
    the memory cannot be shared."""
    shared = as_tensor(obj, dtype, device)
    is_own = isinstance(obj, Tensor) or hasattr(obj, "__array_interface__")
    if copy is False and (not is_own or getattr(obj, "dtype", None) != shared.dtype):
        same = isinstance(obj, Tensor) and obj.dtype is shared.dtype
        if not same and not (is_own and str(getattr(obj, "dtype", "")) == shared.dtype.name):
            raise ValueError("asarray(): this object cannot be shared, and copy is False")
    made: Tensor = shared.clone() if copy else shared
    if requires_grad:
        made = made.detach()
        made.requires_grad = True
    return made


def scalar_tensor(s: Any, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """A tensor without dimensions, of float32 unless another dtype is given."""
    check(device, "scalar_tensor")
    return tensor(s, dtype=dtype or _tensor.float32)


def legacy_tensor(*size: Any) -> Tensor:
    """`Tensor(2, 3)`, unfilled, and `Tensor([1, 2])`, both of float32."""
    return _typed(_tensor.float32)(*size)


def _typed(kind: dtype) -> Callable[..., Tensor]:
    def make(*size: Any) -> Tensor:
        if len(size) == 1 and not isinstance(size[0], int):
            given = size[0]
            if isinstance(given, tuple) and type(given) is not tuple:  # a Size
                return functions["zeros"](given, dtype=kind)  # type: ignore[no-any-return]
            if not isinstance(given, (list, tuple, Tensor)) and not hasattr(given, "shape"):
                raise TypeError(
                    f"Tensor(): takes sizes, a sequence or an array, not a {type(given).__name__}; "
                    "make tensors with opscope.tensor.tensor()"
                )
            return tensor(given, dtype=kind)
        if not all(isinstance(each, int) for each in size):
            raise TypeError("Tensor(): sizes are ints; make tensors with opscope.tensor.tensor()")
        return functions["zeros"](size or (0,), dtype=kind)  # type: ignore[no-any-return]

    make.__doc__ = f"A {kind.name} tensor of that size, zero everywhere, or of that sequence."
    return make


FloatTensor = _typed(_tensor.float32)
DoubleTensor = _typed(_tensor.float64)
HalfTensor = _typed(_tensor.float16)
LongTensor = _typed(_tensor.int64)
IntTensor = _typed(_tensor.int32)
ByteTensor = _typed(_tensor.uint8)
BoolTensor = _typed(_tensor.bool)


def logspace(
    start: float, end: float, steps: int, base: float = 10.0, *, dtype: dtype | None = None
) -> Tensor:
    """`steps` powers of `base`, whose exponents go from start to end in equal steps."""
    exponents = functions["linspace"](start, end, steps, dtype=_tensor.float64)
    made: Tensor = functions["pow"](tensor(float(base), dtype=_tensor.float64), exponents)
    return made.to(dtype or _tensor.float32)


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Each of the tensors, of one dimension, expanded to the grid of all of them; with `indexing`
    "xy" the grid's first two dimensions are those of the second and of the first tensor."""
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f"meshgrid(): indexing is 'ij' or 'xy', not {indexing!r}")
    single = len(tensors) == 1 and not isinstance(tensors[0], Tensor)
    given: Sequence[Tensor] = tuple(tensors[0]) if single else tensors
    lines = [each.reshape((-1,)) for each in given]
    exchange = indexing == "xy" and len(lines) > 1
    if exchange:
        lines[:2] = lines[1], lines[0]
    shape = tuple(line.shape[0] for line in lines)
    grid = [
        line.reshape((1,) * place + (-1,) + (1,) * (len(lines) - place - 1)).expand(shape)
        for place, line in enumerate(lines)
    ]
    if exchange:
        grid[:2] = grid[1], grid[0]
    return tuple(grid)


def tril_indices(row: int, col: int, offset: int = 0, *, dtype: Any = None) -> Tensor:
    """The places (2, N) of the lower triangle of a matrix, row by row."""
    return _triangle("tril", row, col, offset, dtype)


def triu_indices(row: int, col: int, offset: int = 0, *, dtype: Any = None) -> Tensor:
    """The places (2, N) of the upper triangle of a matrix, row by row."""
    return _triangle("triu", row, col, offset, dtype)


def _triangle(name: str, row: int, col: int, offset: int, dtype: Any) -> Tensor:
    ones = functions["ones"]((row, col), dtype=_tensor.bool)
    return functions[name](ones, offset).nonzero().T.contiguous().to(dtype or _tensor.int64)  # type: ignore[no-any-return]


def randint_like(input: Tensor, low: int, high: int | None = None, *, dtype: Any = None) -> Tensor:
    """Random ints from low up to high - 1 (below `low` if it is alone), shaped like `input`."""
    low, high = (0, low) if high is None else (low, high)
    made: Tensor = functions["randint"](low, high, input.shape)
    return made.to(dtype or input.dtype)


def new_tensor(
    self: Tensor, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A tensor with a copy of `data`, in the dtype of self unless another is given."""
    check(device, "new_tensor")
    return tensor(data, dtype=dtype or self.dtype, requires_grad=requires_grad)
