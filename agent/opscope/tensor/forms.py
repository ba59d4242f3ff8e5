"""Operators in PyTorch's forms: several signatures under one name, and shorthands.

They call the core's operators, each of which is a range; these functions are not ranges.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

from opscope import _tensor
from opscope._tensor import Tensor, dtype, functions


def _extreme(
    name: str,
    all_of: str,
    of_two: str,
) -> Callable[..., Any]:
    def extreme(
        input: Tensor,
        dim: int | Tensor | None = None,
        keepdim: builtins.bool = False,
        *,
        other: Tensor | None = None,
        out: Any = None,
    ) -> Any:
        given = dim if isinstance(dim, Tensor) else other
        if given is not None:
            return functions[of_two](input, given, out=out)
        if dim is None:
            return functions[all_of](input, out=out)
        return functions[name](input, dim, keepdim, out=out)

    return extreme


max = _extreme("max", "amax", "maximum")
max.__name__ = max.__qualname__ = "max"
max.__doc__ = """The largest element, as PyTorch has it in three forms.

`max(input)` is that of all elements, a tensor without dimensions; `max(input, dim, keepdim)`
gives `(values, indices)` along a dimension; `max(input, other)` is the larger of each two,
which broadcast. NaN counts as the largest.
"""

min = _extreme("min", "amin", "minimum")
min.__name__ = min.__qualname__ = "min"
min.__doc__ = """The smallest element, in the three forms of `max`. NaN counts as the smallest."""


def equal(input: Tensor, other: Tensor) -> builtins.bool:
    """Whether two tensors have the same shape and equal elements; NaN is not equal to itself."""
    return input.shape == other.shape and builtins.bool((input == other).all())


def allclose(
    input: Tensor,
    other: Tensor,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: builtins.bool = False,
) -> builtins.bool:
    """Whether `isclose` holds for all elements; shapes broadcast."""
    return builtins.bool(functions["isclose"](input, other, rtol, atol, equal_nan).all())


def zero_(self: Tensor) -> Tensor:
    """Zero everywhere, in place."""
    return self.fill_(0)


def view_as(self: Tensor, other: Tensor) -> Tensor:
    """`view` in the shape of other."""
    return self.view(other.shape)


def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """`reshape` to the shape of other."""
    return self.reshape(other.shape)


def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """`expand` to the shape of other."""
    return self.expand(other.shape)


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """`to` the dtype of other."""
    return self.to(other.dtype)


def _converting(into: dtype) -> Callable[[Tensor], Tensor]:
    def convert(self: Tensor) -> Tensor:
        return self.to(into)

    convert.__doc__ = f"The elements as {into.name}; the tensor itself where they are."
    return convert


def _new(name: str) -> Callable[..., Tensor]:
    def new(
        self: Tensor,
        *size: Any,
        dtype: dtype | None = None,
        device: Any = None,
    ) -> Tensor:
        shape: Sequence[int] = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
        made: Tensor = functions[name](shape, dtype=dtype or self.dtype, device=device)
        return made

    new.__doc__ = f"`{name}` of that size, with the dtype of self unless another is given."
    return new


def new_full(
    self: Tensor,
    size: Sequence[int],
    fill_value: float,
    *,
    dtype: dtype | None = None,
    device: Any = None,
) -> Tensor:
    """`full` of that size, with the dtype of self unless another is given."""
    made: Tensor = functions["full"](size, fill_value, dtype=dtype or self.dtype, device=device)
    return made


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "allclose": allclose,
    "equal": equal,
    "max": max,
    "min": min,
}
METHODS: dict[str, Callable[..., Any]] = {
    **FUNCTIONS,
    "bfloat16": _converting(_tensor.bfloat16),
    "bool": _converting(_tensor.bool),
    "byte": _converting(_tensor.uint8),
    "double": _converting(_tensor.float64),
    "expand_as": expand_as,
    "float": _converting(_tensor.float32),
    "half": _converting(_tensor.float16),
    "int": _converting(_tensor.int32),
    "long": _converting(_tensor.int64),
    "new_empty": _new("empty"),
    "new_full": new_full,
    "new_ones": _new("ones"),
    "new_zeros": _new("zeros"),
    "reshape_as": reshape_as,
    "type_as": type_as,
    "view_as": view_as,
    "zero_": zero_,
}
