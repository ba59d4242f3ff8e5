"""Bounds for the error of medians that are read from histograms. Pure computation.

A histogram knows only the bucket of each duration, and a median is interpolated between two bounds
as if durations were uniform there. If they spread over several buckets, that is nearly right. If
most are in one bucket, a change within it is invisible, and a small change across a bound looks
like one of a whole bucket: then only the bucket is known. By simulation
(tests/fleet/test_medians.py): if two bounds each have more than a tenth of the calls on both sides,
the logarithm of a ratio of medians is read as 0.4 to 1.6 times its true value.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from opscope.fleet import promql

SLOPE = 2.5
"""Largest factor of error in the logarithm of a ratio that is read from classic histograms."""
NATIVE_WIDTH = math.log(2) / 8
"""The width of a native bucket of schema 3, in logarithms."""
_NATIVE_SPREAD = 3.0
"""Minimum buckets between the quantiles MARGIN and 1 - MARGIN for a well-known median."""
QUANTILES = (0.5, promql.MARGIN, 1 - promql.MARGIN)


class Cell(NamedTuple):
    """The durations of one operator on one host, in seconds."""

    median: float
    low: float
    """Of QUANTILES."""
    high: float
    is_classic: bool


class Reading(NamedTuple):
    """The possible values of a cell's median, in logarithms."""

    value: float
    below: float
    above: float
    """The largest errors below and above."""
    slope: float
    """Largest factor of error in a difference of such medians."""


def reading(cell: Cell, bounds: Sequence[float]) -> Reading:
    """`bounds`: of classic histograms, ascending, in seconds."""
    value = math.log(cell.median)
    if not cell.is_classic:
        is_spread = math.log(cell.high / cell.low) >= _NATIVE_SPREAD * NATIVE_WIDTH
        off = 0.0 if is_spread else NATIVE_WIDTH / 2
        return Reading(value, off, off, 1.0)
    # A quantile that coincides with a bound has exactly its share below the bound.
    if sum(cell.low * (1 + 1e-9) < bound < cell.high * (1 - 1e-9) for bound in bounds) >= (
        promql.LEAST_BOUNDS
    ):
        return Reading(value, 0.0, 0.0, SLOPE)
    above = bisect_left(bounds, cell.median * (1 - 1e-9))
    low = math.log(bounds[above - 1]) if above > 0 else -math.inf
    high = math.log(bounds[above]) if above < len(bounds) else math.inf
    return Reading(value, value - low, high - value, 1.0)


def between(
    before: Sequence[Reading], after: Sequence[Reading], reach: float
) -> tuple[float, float]:
    """The logarithms that bound the ratio of the median hosts' medians.

    `reach`: the error from differences between hosts.
    """
    a, b = sorted(before), sorted(after)
    middle = _middle([one.value for one in b]) - _middle([one.value for one in a])
    low, high = middle - reach, middle + reach
    slope = max(one.slope for one in (*a, *b))
    low = low / slope if low > 0 else low * slope
    high = high * slope if high > 0 else high / slope
    below = _middle(sorted(one.below for one in b)) + _middle(sorted(one.above for one in a))
    above = _middle(sorted(one.above for one in b)) + _middle(sorted(one.below for one in a))
    return low - below, high + above


def _middle(values: Sequence[float]) -> float:
    half = len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2
