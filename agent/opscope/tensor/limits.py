"""`finfo` and `iinfo`: the limits of dtypes."""

from __future__ import annotations

from typing import Any

from opscope import _tensor
from opscope._tensor import dtype

# Bits of the fraction and the largest exponent.
_FLOATS = {
    _tensor.float16: (10, 15),
    _tensor.bfloat16: (7, 127),
    _tensor.float32: (23, 127),
    _tensor.float64: (52, 1023),
}
_INTEGERS = {
    _tensor.uint8: (0, 2**8 - 1),
    _tensor.int32: (-(2**31), 2**31 - 1),
    _tensor.int64: (-(2**63), 2**63 - 1),
}


class finfo:  # noqa: N801 - PyTorch's name
    """The limits of a floating dtype: `eps`, `max`, `min`, `tiny`, `resolution`, `bits`.

    Without a dtype, those of float32. TypeError for a dtype without a fraction.
    """

    def __init__(self, type: Any = _tensor.float32) -> None:
        if type not in _FLOATS:
            raise TypeError(f"finfo(): {type} is not a floating dtype")
        fraction, exponent = _FLOATS[type]
        self.bits = type.itemsize * 8
        self.dtype: Any = type.name
        self.eps = 2.0**-fraction
        self.max = (2.0 - 2.0**-fraction) * 2.0**exponent
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0 ** (1 - exponent)
        self.resolution = 10.0 ** -int(fraction * 0.30103)

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.tiny:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )


class iinfo:  # noqa: N801 - PyTorch's name
    """The limits of an integer dtype: `min`, `max`, `bits`. TypeError for any other dtype."""

    def __init__(self, type: dtype) -> None:
        if type not in _INTEGERS:
            raise TypeError(f"iinfo(): {type} is not an integer dtype")
        self.bits = type.itemsize * 8
        self.dtype: Any = type.name
        self.min, self.max = _INTEGERS[type]

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
