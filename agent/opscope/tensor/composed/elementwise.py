"""Functions of each element in PyTorch's other spellings, composed of operators."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from opscope import _tensor
from opscope._tensor import Tensor, functions, operators

_clamp, _div, _round = functions["clamp"], functions["div"], functions["round"]
_where, _nonzero = functions["where"], functions["nonzero"]


def clamp(input: Tensor, min: Any = None, max: Any = None, *, out: Any = None) -> Tensor:
    """Each element limited to the range from min to max, numbers or tensors; NaN stays."""
    if not isinstance(min, Tensor) and not isinstance(max, Tensor):
        return _clamp(input, min, max, out=out)  # type: ignore[no-any-return]
    made = input if min is None else functions["maximum"](input, _alike(input, min))
    made = made if max is None else functions["minimum"](made, _alike(input, max))
    return made if out is None else out.copy_(made)


def _alike(input: Tensor, value: Any) -> Tensor:
    return value if isinstance(value, Tensor) else _tensor.tensor(value, dtype=input.dtype)


def clip(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """`clamp`."""
    return clamp(input, min, max)


def clamp_min(input: Tensor, min: Any) -> Tensor:
    """`clamp` with a lower bound alone."""
    return clamp(input, min)


def clamp_max(input: Tensor, max: Any) -> Tensor:
    """`clamp` with an upper bound alone."""
    return clamp(input, None, max)


def div(input: Any, other: Any, *, rounding_mode: str | None = None, out: Any = None) -> Tensor:
    """input / other; `rounding_mode` "floor" or "trunc" rounds the quotient, in integers for two
    integers. ValueError for another mode."""
    if rounding_mode is None:
        return _div(input, other, out=out)  # type: ignore[no-any-return]
    if rounding_mode == "floor":
        return functions["floor_divide"](input, other, out=out)  # type: ignore[no-any-return]
    if rounding_mode != "trunc":
        raise ValueError(f"div(): rounding_mode is 'floor' or 'trunc', not {rounding_mode!r}")
    rounded = functions["floor_divide"](input, other)
    if rounded.is_floating_point():
        return _div(input, other).trunc()  # type: ignore[no-any-return]
    below = ((input % other) != 0) & ((input < 0) ^ (other < 0))
    return rounded + below.to(rounded.dtype)  # type: ignore[no-any-return]


def divide(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """`div`."""
    return div(input, other, rounding_mode=rounding_mode)


def where(condition: Tensor, input: Any = None, other: Any = None, *, out: Any = None) -> Any:
    """input where condition is true, else other; with the condition alone, the places where it is
    true, one tensor of indices for each dimension."""
    if input is None and other is None:
        return tuple(_nonzero(condition).unbind(1))
    if not isinstance(input, Tensor) and not isinstance(other, Tensor):
        input = _tensor.tensor(input)
    return _where(condition, input, other, out=out)


def round(input: Tensor, *, decimals: int = 0, out: Any = None) -> Tensor:
    """To the nearest integer, or to `decimals` places; halves to the even one."""
    if decimals == 0:
        return _round(input, out=out)  # type: ignore[no-any-return]
    scale = 10.0 ** abs(decimals)
    made = _round(input * scale) / scale if decimals > 0 else _round(input / scale) * scale
    return made if out is None else out.copy_(made)  # type: ignore[no-any-return]


def _named(name: str, doc: str, run: Callable[..., Tensor]) -> Callable[..., Tensor]:
    run.__name__ = run.__qualname__ = name
    run.__doc__ = doc
    return run


def absolute(input: Tensor) -> Tensor:
    """`abs`."""
    return input.abs()


def negative(input: Tensor) -> Tensor:
    """`neg`."""
    return -input


def positive(input: Tensor) -> Tensor:
    """The tensor itself. RuntimeError for bools."""
    if input.dtype is _tensor.bool:
        raise RuntimeError("positive(): not defined for bool")
    return input


def multiply(input: Any, other: Any) -> Tensor:
    """`mul`."""
    return functions["mul"](input, other)  # type: ignore[no-any-return]


def subtract(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """`sub`."""
    return functions["sub"](input, other, alpha=alpha)  # type: ignore[no-any-return]


def true_divide(input: Any, other: Any) -> Tensor:
    """`div`."""
    return _div(input, other)  # type: ignore[no-any-return]


def rsub(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """other - alpha * input."""
    return other - input * alpha  # type: ignore[no-any-return]


def fmod(input: Tensor, other: Any) -> Tensor:
    """The remainder of a division that truncates: it has the sign of input."""
    return input - div(input, other, rounding_mode="trunc") * other  # type: ignore[no-any-return]


def frac(input: Tensor) -> Tensor:
    """The part behind the point, with the sign of the number."""
    return input - input.trunc()


def fix(input: Tensor) -> Tensor:
    """`trunc`."""
    return input.trunc()


def sgn(input: Tensor) -> Tensor:
    """`sign`."""
    return input.sign()


def signbit(input: Tensor) -> Tensor:
    """Whether the number is below zero, -0.0 or -NaN."""
    if not input.is_floating_point():
        return input < 0
    if input.itemsize == 2:
        input = input.to(_tensor.float32)
    integer = _tensor.int32 if input.dtype is _tensor.float32 else _tensor.int64
    held = input.detach().contiguous()
    return _tensor.over_bytes(_tensor.as_bytes(held), integer, tuple(held.shape)) < 0


def copysign(input: Tensor, other: Any) -> Tensor:
    """The magnitude of input with the sign of other."""
    other = other if isinstance(other, Tensor) else _tensor.tensor(float(other))
    value = input if input.is_floating_point() else input.to(_tensor.float32)
    return functions["where"](signbit(other), -value.abs(), value.abs())  # type: ignore[no-any-return]


def asinh(input: Tensor) -> Tensor:
    """The inverse hyperbolic sine."""
    if not input.is_floating_point():
        input = input.to(_tensor.float32)
    size = input.abs()
    infinite = size == math.inf
    finite = size.masked_fill(infinite, 1.0)
    root = hypot(finite, _tensor.tensor(1, dtype=size.dtype))
    made = (finite + finite * (finite / (root + 1))).log1p().masked_fill(infinite, math.inf)
    return copysign(made, input.detach())


def acosh(input: Tensor) -> Tensor:
    """The inverse hyperbolic cosine; NaN below 1."""
    more = input - 1
    return (more + more.sqrt() * (more + 2).sqrt()).log1p()


def atanh(input: Tensor) -> Tensor:
    """The inverse hyperbolic tangent; NaN outside of -1 to 1."""
    return (input * 2 / (1 - input)).log1p() * 0.5


arccos = _named("arccos", "`acos`.", lambda input: input.acos())
arcsin = _named("arcsin", "`asin`.", lambda input: input.asin())
arctan = _named("arctan", "`atan`.", lambda input: input.atan())


def atan2(input: Tensor, other: Tensor) -> Tensor:
    """The angle of the point (other, input), from -pi to pi."""
    if not input.is_floating_point() and not other.is_floating_point():
        input, other = input.to(_tensor.float32), other.to(_tensor.float32)
    where = functions["where"]
    infinite = functions["isinf"](input.detach()) & functions["isinf"](other.detach())
    input, other = where(infinite, input.sign(), input), where(infinite, other.sign(), other)
    steep = input.abs() > other.abs()
    safe = where(steep, input, other)
    zero = safe == 0
    base = safe.masked_fill(zero, 1.0)
    ratio = where(steep, other / base, input / base)
    angle = ratio.atan()
    half = _tensor.tensor(math.pi / 2, dtype=angle.dtype)
    above = where(signbit(input), -half, half)
    flat = where(signbit(other), angle + above * 2, angle)
    at_zero = where(signbit(other), above * 2, above * 0)
    made = where(zero, at_zero, where(steep, above - angle, flat))
    missing = functions["isnan"](input.detach()) | functions["isnan"](other.detach())
    return where(missing, input + other, made)  # type: ignore[no-any-return]


arctan2 = atan2


def hypot(input: Tensor, other: Tensor) -> Tensor:
    """sqrt(input² + other²), without overflow on the way."""
    first, second = input.abs(), other.abs()
    large = functions["maximum"](first, second)
    small = functions["minimum"](first, second)
    safe = large.masked_fill((large == 0) | (large == math.inf), 1.0)
    made = large * (1 + (small / safe).square()).sqrt()
    return made.masked_fill(large == math.inf, math.inf)  # type: ignore[no-any-return]


def logaddexp2(input: Tensor, other: Tensor) -> Tensor:
    """log2(2**input + 2**other)."""
    scale = math.log(2)
    return functions["logaddexp"](input * scale, other * scale) / scale  # type: ignore[no-any-return]


def xlogy(input: Any, other: Any) -> Tensor:
    """input * log(other); 0 where input is 0, unless other is NaN."""
    other = other if isinstance(other, Tensor) else _tensor.tensor(float(other))
    made = input * other.log()
    zero = (made * 0).masked_fill(functions["isnan"](made), 0.0)
    if isinstance(input, Tensor):
        return functions["where"]((input == 0) & ~functions["isnan"](other), zero, made)  # type: ignore[no-any-return]
    return made if input else zero  # type: ignore[no-any-return]


def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """log(x / (1 - x)); with `eps`, x is first limited to eps and 1 - eps."""
    held = input if eps is None else input.clamp(eps, 1 - eps)
    return (held / (1 - held)).log()


def sinc(input: Tensor) -> Tensor:
    """sin(pi x) / (pi x); 1 at 0."""
    angle = input * math.pi
    zero = angle == 0
    return (angle.sin() / angle.masked_fill(zero, 1.0)).masked_fill(zero, 1.0)


def deg2rad(input: Tensor) -> Tensor:
    """Degrees as radians."""
    return input * (math.pi / 180)


def rad2deg(input: Tensor) -> Tensor:
    """Radians as degrees."""
    return input * (180 / math.pi)


def erfc(input: Tensor) -> Tensor:
    """1 - erf(x)."""
    return 1 - input.erf()


def nan_to_num(
    input: Tensor, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """NaN and infinities replaced: by 0 and the dtype's limits, unless others are given."""
    from opscope.tensor.limits import finfo

    if not input.is_floating_point():
        return input.clone()
    limit = finfo(input.dtype)
    made = input.masked_fill(functions["isnan"](input), nan)
    made = made.masked_fill(input == math.inf, limit.max if posinf is None else posinf)
    return made.masked_fill(input == -math.inf, limit.min if neginf is None else neginf)


def heaviside(input: Tensor, values: Tensor) -> Tensor:
    """0 below zero, 1 above it, `values` at zero."""
    return functions["where"](input == 0, values, (input > 0).to(input.dtype))  # type: ignore[no-any-return]


def fmax(input: Tensor, other: Tensor) -> Tensor:
    """The larger of each two; a NaN counts only against another."""
    where, isnan = functions["where"], functions["isnan"]
    return where(  # type: ignore[no-any-return]
        isnan(input), other, where(isnan(other), input, functions["maximum"](input, other))
    )


def fmin(input: Tensor, other: Tensor) -> Tensor:
    """The smaller of each two; a NaN counts only against another."""
    where, isnan = functions["where"], functions["isnan"]
    return where(  # type: ignore[no-any-return]
        isnan(input), other, where(isnan(other), input, functions["minimum"](input, other))
    )


def isposinf(input: Tensor) -> Tensor:
    """Whether each element is +inf."""
    return input == math.inf  # type: ignore[no-any-return]


def isneginf(input: Tensor) -> Tensor:
    """Whether each element is -inf."""
    return input == -math.inf  # type: ignore[no-any-return]


def isreal(input: Tensor) -> Tensor:
    """True everywhere: the core has no complex numbers."""
    return functions["ones"](input.shape, dtype=_tensor.bool)  # type: ignore[no-any-return]


greater = _named("greater", "`gt`.", lambda input, other: input > other)
greater_equal = _named("greater_equal", "`ge`.", lambda input, other: input >= other)
less = _named("less", "`lt`.", lambda input, other: input < other)
less_equal = _named("less_equal", "`le`.", lambda input, other: input <= other)
not_equal = _named("not_equal", "`ne`.", lambda input, other: input != other)

STANDS_FOR = {
    clamp: operators["core::clamp"],
    div: operators["core::div"],
    where: operators["core::where"],
    round: operators["core::round"],
}
"""The operators that these functions have the name of, which graphs hold instead."""
