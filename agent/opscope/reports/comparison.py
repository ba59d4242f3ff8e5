"""Find operators that got slower between two recordings, with confidence. Pure computation.

For each operator: the mean time of a call in both, their ratio, and its confidence interval. Calls
are not independent of each other (they come in windows, and machines slow down at times), so the
spread is estimated between the slices of a recording: the jackknife of the ratio of sums, on the
logarithm, and Student's t with Welch's degrees of freedom. Among many operators some differ by
chance; Benjamini and Hochberg's adjustment keeps the share of false positives among the reported
differences below 1 - confidence.

Facts: Efron and Tibshirani, An Introduction to the Bootstrap, ch. 11 (jackknife); Benjamini and
Hochberg, Controlling the False Discovery Rate (1995).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from opscope.reports.recording import Operator, Recording, Slice

LEAST_SLICES = 5
"""Minimum slices with the operator, in each recording, for a statement about it."""
_STEPS = 100


@dataclass(frozen=True)
class Change:
    operator: Operator
    calls_per_s: tuple[float, float]
    call_s: tuple[float, float]
    """Mean seconds of a call, before and after: self time if both know it, else total time."""
    is_self: bool
    ratio: float
    """After over before; above 1 is slower. Infinite or NaN if it took no time before."""
    low: float
    high: float
    """Confidence interval of the ratio; NaN with too few slices."""
    p: float
    """Adjusted p-value of the test that nothing changed; 1 with too few slices."""
    lost_s: float
    """Seconds per second that the change costs at the later call rate; negative: a gain."""

    def verdict(self, confidence: float, least_change: float) -> str:
        """`slower`, `faster`, `same` (a change that large is ruled out), `unsure` (the slices
        differ too much for a verdict), or `?` (too few slices)."""
        if math.isnan(self.low):
            return "?"
        if self.p <= 1 - confidence and abs(math.log(self.ratio)) >= math.log1p(least_change):
            return "slower" if self.ratio > 1 else "faster"
        is_ruled_out = self.low > 1 / (1 + least_change) and self.high < 1 + least_change
        return "same" if is_ruled_out else "unsure"


@dataclass(frozen=True)
class Comparison:
    changes: tuple[Change, ...]
    """Operators of both recordings, sorted by the cost of their change, largest first."""
    gone: tuple[Operator, ...]
    new: tuple[Operator, ...]


def compare(before: Recording, after: Recording, confidence: float = 0.95) -> Comparison:
    """Compares the operators of both recordings. `confidence` within (0, 1)."""
    both = [operator for operator in after.operators if operator in before.operators]
    changes = [
        _change(
            operator,
            (before.operators[operator], after.operators[operator]),
            (sum(before.seconds), sum(after.seconds)),
            confidence,
        )
        for operator in both
    ]
    changes = _adjusted(changes)
    changes.sort(key=lambda change: (-change.lost_s, change.operator))
    return Comparison(
        tuple(changes),
        tuple(operator for operator in before.operators if operator not in after.operators),
        tuple(operator for operator in after.operators if operator not in before.operators),
    )


def _change(
    operator: Operator,
    slices: tuple[Sequence[Slice], Sequence[Slice]],
    seconds: tuple[float, float],
    confidence: float,
) -> Change:
    is_self = all(one.self_s is not None for side in slices for one in side)
    a, b = (_LogMean.of(side, is_self) for side in slices)
    rates = a.calls / seconds[0], b.calls / seconds[1]
    means = a.mean, b.mean
    ratio = means[1] / means[0] if means[0] > 0 else math.nan if means[1] == 0 else math.inf
    low = high = math.nan
    p = 1.0
    if min(a.slices, b.slices) >= LEAST_SLICES and 0 < ratio < math.inf:
        error = math.sqrt(a.variance + b.variance)
        freedom = _welch(a, b)
        reach = error * t_reach(1 - confidence, freedom)
        low, high = ratio * math.exp(-reach), ratio * math.exp(reach)
        if error > 0:
            p = t_two_sided(math.log(ratio) / error, freedom)
        else:
            p = 1.0 if ratio == 1 else 0.0
    lost_s = (means[1] - means[0]) * rates[1]
    return Change(operator, rates, means, is_self, ratio, low, high, p, lost_s)


@dataclass(frozen=True)
class _LogMean:
    """The logarithm of the mean time of a call over slices, with its variance."""

    slices: int
    calls: float
    mean: float
    variance: float

    @classmethod
    def of(cls, slices: Sequence[Slice], is_self: bool) -> _LogMean:
        pairs = [
            ((one.self_s or 0.0) if is_self else one.total_s, one.calls)
            for one in slices
            if one.calls > 0
        ]
        time_s, calls = sum(time for time, _ in pairs), sum(calls for _, calls in pairs)
        mean = time_s / calls if calls else 0.0
        without = [(time_s - time) / (calls - own) for time, own in pairs if calls - own > 0]
        k = len(without)
        if k < LEAST_SLICES or min(without) <= 0:
            # The spread is unknown, so treat it like a recording without slices.
            return cls(0, calls, mean, 0.0)
        logs = [math.log(value) for value in without]
        middle = sum(logs) / k
        variance = (k - 1) / k * sum((value - middle) ** 2 for value in logs)
        return cls(k, calls, mean, variance)


def _welch(a: _LogMean, b: _LogMean) -> float:
    parts = a.variance**2 / (a.slices - 1) + b.variance**2 / (b.slices - 1)
    if parts == 0:
        return float(a.slices + b.slices - 2)
    return (a.variance + b.variance) ** 2 / parts


def t_two_sided(t: float, freedom: float) -> float:
    """The probability that Student's t is at least as far from 0 as `t`, to 1 %."""
    # With x = sqrt(freedom) / tan(angle) the density is a power of a sine; Simpson's rule.
    width = math.atan2(math.sqrt(freedom), abs(t)) / _STEPS
    heights = [math.pow(math.sin(width * i), freedom - 1) for i in range(_STEPS + 1)]
    ends = heights[0] + heights[-1]
    area = (ends + 4 * sum(heights[1::2]) + 2 * sum(heights[2:-1:2])) * width / 3
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2))
    return 2 * scale / math.sqrt(math.pi) * area


def t_reach(p: float, freedom: float) -> float:
    """The distance from 0 that |Student's t| exceeds with probability `p`; inverts t_two_sided."""
    low, high = 0.0, 1.0
    while t_two_sided(high, freedom) > p:
        low, high = high, 2 * high
    for _ in range(25):
        middle = (low + high) / 2
        low, high = (middle, high) if t_two_sided(middle, freedom) > p else (low, middle)
    return (low + high) / 2


def _adjusted(changes: Sequence[Change]) -> list[Change]:
    tested = sorted(
        (change for change in changes if not math.isnan(change.low)), key=lambda change: change.p
    )
    adjusted: dict[Operator, float] = {}
    least = 1.0
    for rank in range(len(tested), 0, -1):
        change = tested[rank - 1]
        least = min(least, change.p * len(tested) / rank)
        adjusted[change.operator] = least
    return [replace(change, p=adjusted.get(change.operator, 1.0)) for change in changes]
