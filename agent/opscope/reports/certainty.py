"""Decide when an estimate is precise enough to be shown. All thresholds are here.

An estimate whose standard error exceeds a fifth of it is shown in grey with its error: its 95 %
interval, two errors to each side, is then at least ±40 %. A quantile rests on the samples beyond
it: of n samples, (1 - p) n lie above the quantile p, and if that is less than one, the quantile
cannot be told from the maximum. So p95 takes 20 samples and p99 takes 100. Of
5 samples, the median lies between the smallest and the largest with probability 94 %. If every
range was recorded, nothing is estimated, and everything is shown.

An operator that was never recorded has no row, and so no error either. A view states how much of
it there may have been (`Unseen`): of operators with more, at most one in 20 is missing. If calls
are sampled by probability and each recorded one has the weight w, n calls are missed with the
probability exp(-n / w), so this is 3 w calls, however long they last. Windows may also miss an
operator with more calls, if these are close together: in a share s of the program's time, n windows
miss all of them with the probability (1 - s)^n. So there is also a share of the time,
1 - 0.05^(1/n), about 3 / n. Windows with few calls hardly count: n is the calls, squared, divided
by the sum of the squares of the windows' calls.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from opscope.reports import numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from opscope.host.snapshot import Snapshot
    from opscope.segments.variance import F64

_NAMED = 3
"""Services that a line names."""
UNSURE_ABOVE = 0.2
"""Standard error over estimate."""
LEAST_SAMPLES = {0.5: 5, 0.95: 20, 0.99: 100}
"""Minimum samples for each quantile shown."""
UNSEEN = -math.log(0.05)
"""The expected number of samples of what is missing with a probability of 5 %."""


def calls_variance(snapshot: Snapshot) -> F64:
    """(n,) as Snapshot.calls_variance; where that is 0 for calls that were not all recorded, the
    variance of independent samples.

    A process states the variance of a window later than its calls, so that a short increase may
    have calls without one.
    """
    import numpy as np

    stated, samples = snapshot.calls_variance, snapshot.samples.astype(np.float64)
    weights = snapshot.calls / np.maximum(samples, 1.0)
    independent = np.where(samples > 0, snapshot.calls * (weights - 1), 0.0)
    return np.where(stated > 0, stated, np.maximum(independent, 0.0))


def self_variance(snapshot: Snapshot) -> F64:
    """(n,) as Snapshot.self_variance; where none is stated, as precise as the calls."""
    import numpy as np

    stated = snapshot.self_variance
    of_calls = calls_variance(snapshot) / np.maximum(snapshot.calls, 1.0) ** 2
    return np.where(
        (stated == 0) & (snapshot.calls_variance == 0), snapshot.self_s**2 * of_calls, stated
    )


def quantile(snapshot: Snapshot, p: float) -> F64:
    """(n,) seconds, as in Snapshot.quantile; NaN if it rests on too few samples."""
    import numpy as np

    is_enough = (snapshot.samples >= LEAST_SAMPLES[p]) | (calls_variance(snapshot) == 0)
    return np.where(is_enough, snapshot.quantile(p), np.nan)


def is_unsure(value: float | None, error: float | None) -> bool:
    """Whether an estimate is shown with its standard error; None: unknown."""
    return value is not None and error is not None and error > UNSURE_ABOVE * value


class Unseen(NamedTuple):
    """How much of an operator without a row there may have been, at 95 % confidence; 0: nothing."""

    calls: float
    time_share: float
    """Of the time that the programs work, if windows sample it. An operator that has less of the
    time, or fewer calls, may be missing."""

    def most(self, other: Unseen) -> Unseen:
        return Unseen(max(self.calls, other.calls), max(self.time_share, other.time_share))

    def in_words(self, calls: Callable[[float], str]) -> str:
        """For a view, which has its own way to write a number of calls; "": nothing is missing."""
        limits = []
        if self.time_share:
            limits.append(f"less than {100 * self.time_share:.2g} % of the time")
        if self.calls:
            limits.append(f"fewer than {calls(self.calls)} calls")
        return f"an operator with {' or '.join(limits)} may be missing" if limits else ""


NOTHING_UNSEEN = Unseen(0.0, 0.0)


def unseen(samples: float, calls: float, window_calls2: Iterable[float]) -> Unseen:
    """`samples` recorded ranges stand for `calls`, of the operators that are estimated.

    `window_calls2`: of each phase, the sum of the squares of the windows' calls; none, or 0, if
    they were not in windows."""
    if not samples:
        return NOTHING_UNSEEN
    # At most that of all phases together, which it is if windows have the same part in a phase.
    squares = sum(map(math.sqrt, window_calls2)) ** 2
    return Unseen(UNSEEN * calls / samples, -math.expm1(-UNSEEN * squares / calls**2))


def unmet_in_words(unmet: Mapping[str, float]) -> str:
    """`unmet`: services of which windows met no operator, with their CPU time in seconds. Without
    any, an empty text."""
    if not unmet:
        return ""
    named = [
        f"{service} (CPU time: {numbers.seconds(used_s)})" for service, used_s in unmet.items()
    ]
    if len(named) > _NAMED:
        named[_NAMED:] = [f"{len(named) - _NAMED} more"]
    return f"windows met no operator of {', '.join(named)}"


def error_of(variance: float) -> float | None:
    """The standard error; None if unknown."""
    return None if math.isnan(variance) else math.sqrt(variance)


def in_words() -> str:
    """The legend of a table."""
    least = ", ".join(f"p{p * 100:g} {count}" for p, count in LEAST_SAMPLES.items())
    return (
        f"grey, ±: standard error above {UNSURE_ABOVE:.0%}".replace("%", " %")
        + f"; minimum samples: {least}"
    )
