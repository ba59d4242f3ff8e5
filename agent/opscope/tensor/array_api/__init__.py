"""The array API standard 2024.12 over the core's tensors.

>>> xp = x.__array_namespace__()      # this module
>>> xp.mean(x, axis=0)

Its dtypes are bool, uint8, int32, int64, float32 and float64. The extension `linalg` is here, `fft`
is not. `x.size` is PyTorch's method, and not the standard's number.
"""

from __future__ import annotations

from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi
from typing import Any

from opscope._tensor import bool as bool
from opscope._tensor import float32 as float32
from opscope._tensor import float64 as float64
from opscope._tensor import int32 as int32
from opscope._tensor import int64 as int64
from opscope._tensor import uint8 as uint8
from opscope.tensor.array_api import linalg as linalg
from opscope.tensor.array_api.arrays import *  # noqa: F403
from opscope.tensor.array_api.elementwise import *  # noqa: F403
from opscope.tensor.array_api.info import Info
from opscope.tensor.array_api.statistics import *  # noqa: F403

__array_api_version__ = "2024.12"
newaxis = None


def __array_namespace_info__() -> Any:  # noqa: N807 - the name in the standard
    """Devices, dtypes and capabilities."""
    return Info()
