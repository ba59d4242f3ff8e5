"""Bounds for numbers from foreign files, and sums that saturate.

segment.py checks each number of a file against FILE_LIMIT. Sums over files saturate at SUM_LIMIT,
which host/state.py can write and read; a sum that wrapped would decrease. A sum of two such numbers
fits into 64 unsigned bits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from opscope.segments.layout import U64

FILE_LIMIT = 1 << 62
"""Above any number of a valid file: 49 years of ticks at 3 GHz, 70 trillion calls."""
SUM_LIMIT = (1 << 63) - 1
TIME_LIMIT_NS = (1 << 63) - 1
"""The last Unix time in ns that fits into 64 signed bits, in 2262."""

_SUM_LIMIT = np.uint64(SUM_LIMIT)

Key = TypeVar("Key")


def saturated(value: int) -> int:
    return min(value, SUM_LIMIT)


def added(sums: U64, more: U64) -> U64:
    """The saturating sum; each argument is at most SUM_LIMIT."""
    total: U64 = np.minimum(sums + more, _SUM_LIMIT)
    return total


def sum_by(group: NDArray[np.intp], values: U64, count: int) -> U64:
    """(count, ...) saturating sums of the rows of `values` by group; each is at most SUM_LIMIT."""
    summed = np.zeros((count, *values.shape[1:]), np.uint64)
    np.add.at(summed, group, values)
    if int(values.max(initial=0)) * len(values) > SUM_LIMIT:
        about = np.zeros(summed.shape)
        np.add.at(about, group, values.astype(np.float64))
        summed[about >= SUM_LIMIT] = _SUM_LIMIT
        np.minimum(summed, _SUM_LIMIT, out=summed)
    return summed


def total(values: U64) -> U64:
    """The saturating sum of the rows of `values`, each at most SUM_LIMIT."""
    summed: U64 = sum_by(np.zeros(len(values), np.intp), values, 1)[0]
    return summed


def count(counts: Counter[Key], more: Mapping[Key, int]) -> None:
    """Adds `more` to the counts, saturating."""
    for key, value in more.items():
        counts[key] = saturated(counts[key] + value)


def to_u64(values: NDArray[Any]) -> U64:
    """Rounded to integers, and at most FILE_LIMIT."""
    whole: U64 = np.minimum(np.rint(values), float(FILE_LIMIT)).astype(np.uint64)
    return whole
