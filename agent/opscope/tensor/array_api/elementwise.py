"""Functions of each element, under the names of the array API standard."""

from __future__ import annotations

from typing import Any

from opscope import _tensor
from opscope._tensor import Tensor, as_bytes, functions, over_bytes
from opscope.tensor import composed

abs = functions["abs"]
acos = functions["acos"]
add = functions["add"]
asin = functions["asin"]
atan = functions["atan"]
bitwise_and = functions["bitwise_and"]
bitwise_left_shift = functions["bitwise_left_shift"]
bitwise_invert = functions["bitwise_not"]
bitwise_or = functions["bitwise_or"]
bitwise_right_shift = functions["bitwise_right_shift"]
bitwise_xor = functions["bitwise_xor"]
cos = functions["cos"]
cosh = functions["cosh"]
divide = functions["div"]
equal = functions["eq"]
exp = functions["exp"]
expm1 = functions["expm1"]
floor_divide = functions["floor_divide"]
greater = functions["gt"]
greater_equal = functions["ge"]
isfinite = functions["isfinite"]
isinf = functions["isinf"]
isnan = functions["isnan"]
less = functions["lt"]
less_equal = functions["le"]
log = functions["log"]
log1p = functions["log1p"]
log2 = functions["log2"]
log10 = functions["log10"]
logical_and = functions["logical_and"]
logical_not = functions["logical_not"]
logical_or = functions["logical_or"]
logical_xor = functions["logical_xor"]
maximum = functions["maximum"]
minimum = functions["minimum"]
multiply = functions["mul"]
negative = functions["neg"]
not_equal = functions["ne"]
pow = functions["pow"]
reciprocal = functions["reciprocal"]
remainder = functions["remainder"]
sin = functions["sin"]
sinh = functions["sinh"]
square = functions["square"]
sqrt = functions["sqrt"]
subtract = functions["sub"]
tan = functions["tan"]
tanh = functions["tanh"]


def _composed(name: str) -> Any:
    return composed.find(name, "elementwise")


acosh = _composed("acosh")
asinh = _composed("asinh")
atanh = _composed("atanh")
positive = _composed("positive")
signbit = _composed("signbit")


def _of_two(name: str, run: Any) -> Any:
    """The function, of two arrays or of an array and a number."""

    def of_two(x1: Any, x2: Any, /) -> Tensor:
        return run(*_alike(x1, x2))  # type: ignore[no-any-return]

    of_two.__name__ = of_two.__qualname__ = name
    of_two.__doc__ = run.__doc__
    return of_two


atan2 = _of_two("atan2", _composed("atan2"))
copysign = _of_two("copysign", _composed("copysign"))
hypot = _of_two("hypot", _composed("hypot"))
logaddexp = _of_two("logaddexp", functions["logaddexp"])


def sign(x: Tensor, /) -> Tensor:
    """-1, 0 or 1; NaN of NaN, for which PyTorch's `sign` has 0."""
    made: Tensor = functions["sign"](x)
    return functions["where"](isnan(x), x, made) if x.is_floating_point() else made  # type: ignore[no-any-return]


def _rounding(name: str) -> Any:
    run = functions[name]

    def rounded(x: Tensor, /) -> Tensor:
        return run(x) if x.is_floating_point() else x.clone()

    rounded.__name__ = rounded.__qualname__ = name
    rounded.__doc__ = f"`{name}` of floats; integers as they are."
    return rounded


ceil = _rounding("ceil")
floor = _rounding("floor")
round = _rounding("round")
trunc = _rounding("trunc")


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """Each element limited to the range from min to max, in the dtype of x."""
    if min is None and max is None:
        return x.clone()
    made: Tensor = x
    if min is not None:
        made = functions["maximum"](*_bound(made, min))
    if max is not None:
        made = functions["minimum"](*_bound(made, max))
    return made.to(x.dtype)


def _bound(x: Tensor, value: Any) -> tuple[Tensor, Tensor]:
    return x, value if isinstance(value, Tensor) else _tensor.tensor(value, dtype=x.dtype)


def conj(x: Tensor, /) -> Tensor:
    """x itself: the core has no complex numbers."""
    return x


def real(x: Tensor, /) -> Tensor:
    """x itself: the core has no complex numbers."""
    return x


def nextafter(x1: Any, x2: Any, /) -> Tensor:
    """The next number after x1 towards x2."""
    first, second = _alike(x1, x2)
    shape = functions["broadcast_to"](first, (first + second).shape).shape
    first = first.expand(shape).contiguous()
    second = second.expand(shape)
    integer = _tensor.int32 if first.dtype is _tensor.float32 else _tensor.int64
    # Magnitudes are ordered as their bits are, read as integers.
    bits = over_bytes(as_bytes(first.clone()), integer, tuple(shape))
    away = (second > first) == (first > 0)
    stepped = bits + functions["where"](away, 1, -1).to(integer)
    made = over_bytes(as_bytes(stepped.contiguous()), first.dtype, tuple(shape))
    least = over_bytes(as_bytes(functions["ones"](shape, dtype=integer)), first.dtype, tuple(shape))
    made = functions["where"](first == 0, least * second.sign(), made)
    made = functions["where"](first == second, second, made)
    return functions["where"](isnan(first + second * 0), first + second, made)  # type: ignore[no-any-return]


def _alike(x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    if not isinstance(x1, Tensor):
        return _tensor.tensor(x1, dtype=x2.dtype), x2
    if not isinstance(x2, Tensor):
        return x1, _tensor.tensor(x2, dtype=x1.dtype)
    dtype = functions["where"](_tensor.tensor(True), x1, x2).dtype
    return x1.to(dtype), x2.to(dtype)
