"""Functions of each element, under the names of the array API standard."""

from __future__ import annotations

from typing import Any

from opscope import _tensor
from opscope._tensor import Tensor, as_bytes, functions, over_bytes
from opscope.tensor import composed
from opscope.tensor.composed import conversion

abs = functions["abs"]
acos = functions["acos"]
asin = functions["asin"]
atan = functions["atan"]
bitwise_invert = functions["bitwise_not"]
cos = functions["cos"]
cosh = functions["cosh"]
exp = functions["exp"]
expm1 = functions["expm1"]
isfinite = functions["isfinite"]
isinf = functions["isinf"]
isnan = functions["isnan"]
log = functions["log"]
log1p = functions["log1p"]
log2 = functions["log2"]
log10 = functions["log10"]
logical_not = functions["logical_not"]
negative = functions["neg"]
reciprocal = functions["reciprocal"]
sin = functions["sin"]
sinh = functions["sinh"]
square = functions["square"]
sqrt = functions["sqrt"]
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
    """The function, of two arrays or of an array and a number: first in one dtype, also where one
    array has no axes, which the core's operators do not count."""

    def of_two(x1: Any, x2: Any, /) -> Tensor:
        return run(*_alike(x1, x2))  # type: ignore[no-any-return]

    of_two.__name__ = of_two.__qualname__ = name
    of_two.__doc__ = run.__doc__
    return of_two


add = _of_two("add", functions["add"])
atan2 = _of_two("atan2", _composed("atan2"))
bitwise_and = _of_two("bitwise_and", functions["bitwise_and"])
bitwise_left_shift = _of_two("bitwise_left_shift", functions["bitwise_left_shift"])
bitwise_or = _of_two("bitwise_or", functions["bitwise_or"])
bitwise_right_shift = _of_two("bitwise_right_shift", functions["bitwise_right_shift"])
bitwise_xor = _of_two("bitwise_xor", functions["bitwise_xor"])
copysign = _of_two("copysign", _composed("copysign"))
divide = _of_two("divide", functions["div"])
equal = _of_two("equal", functions["eq"])
floor_divide = _of_two("floor_divide", functions["floor_divide"])
greater = _of_two("greater", functions["gt"])
greater_equal = _of_two("greater_equal", functions["ge"])
hypot = _of_two("hypot", _composed("hypot"))
less = _of_two("less", functions["lt"])
less_equal = _of_two("less_equal", functions["le"])
logaddexp = _of_two("logaddexp", functions["logaddexp"])
logical_and = _of_two("logical_and", functions["logical_and"])
logical_or = _of_two("logical_or", functions["logical_or"])
logical_xor = _of_two("logical_xor", functions["logical_xor"])
maximum = _of_two("maximum", functions["maximum"])
minimum = _of_two("minimum", functions["minimum"])
multiply = _of_two("multiply", functions["mul"])
not_equal = _of_two("not_equal", functions["ne"])
pow = _of_two("pow", functions["pow"])
remainder = _of_two("remainder", functions["remainder"])
subtract = _of_two("subtract", functions["sub"])


def sign(x: Tensor, /) -> Tensor:
    """-1, 0 or 1; NaN of NaN, for which PyTorch's `sign` has 0."""
    made: Tensor = functions["sign"](x)
    return functions["where"](isnan(x), x, made) if x.is_floating_point() else made


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


def _number(value: Any, beside: Tensor) -> Tensor:
    """A number in the dtype of an array; a float beside integers stays one."""
    if isinstance(value, float) and not beside.is_floating_point():
        return _tensor.tensor(value)
    return _tensor.tensor(value, dtype=beside.dtype)


def _alike(x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    if not isinstance(x1, Tensor):
        return _number(x1, x2), x2
    if not isinstance(x2, Tensor):
        return x1, _number(x2, x1)
    if x1.dtype is x2.dtype:
        return x1, x2
    dtype = conversion.promote_types(x1.dtype, x2.dtype)
    return x1.to(dtype), x2.to(dtype)
