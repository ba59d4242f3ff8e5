"""`cost_...`: the stated cost of recording relative to the measured one, on programs of some size.

In one process, the recorder's own windows open first, with the default settings: the recorder
learns what its ranges cost in this program, as it does for users. Then every range is recorded, or
none, in turns: the bench opens and closes a window around some steps. After each change, some steps
are not counted, until caches are warm. The measured cost is the difference in the thread's CPU time
between a stretch with recording and the mean of its two neighbours without, divided by the ranges
in a step. The stated cost is the segment's, computed as the recorder does.

The centre of all differences is that of Hodges and Lehmann, the median of the means of all pairs:
it bears outliers as a median does, and needs two thirds as many values for the same error. Its
interval is that of Wilcoxon's signed-rank test.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import combinations_with_replacement, pairwise, repeat
from math import sqrt
from statistics import fmean, median
from typing import NamedTuple

from opscope.bench import RATIO, Effort, Result
from opscope.record import recorder

_PROGRAMS = {
    "cost_bert_train": "bert_train",
    "cost_resnet18": "resnet18_train",
    "cost_numpy_loop": "numpy_small",
}
_BOUND = (0.8, 1.2)
_NO_LIMIT = {"OPSCOPE_MAX_OVERHEAD": "off"}
_WINDOW_MS, _NEVER_MS = 2.0, 1e8
"""Windows that never open by themselves."""
_SURE = 1.96
_STRETCH_S = 0.003
"""Minimum seconds of a stretch: some more than the counted part of a default window. Recording
costs more at first, so longer stretches would not measure what it costs in windows. Another third
before it is not counted."""
_MOST_VALUES = 1000
"""Of which the centre is sought; more differences are averaged in groups."""


def measure(effort: Effort, seconds: float) -> Iterator[Result]:
    from opscope.bench.truth.loads import quiet
    from opscope.bench.truth.observed import EVERY_RANGE, run, run_toggled
    from opscope.bench.truth.programs import PROGRAMS

    for case, name in _PROGRAMS.items():
        if not effort.wants(case) or find_spec(PROGRAMS[name].needs) is None:
            continue
        with quiet() as load:
            every = run(name, 1.0, load, EVERY_RANGE)
        ranges = every.sums.samples.total() / every.done.steps
        pairs, sums = run_toggled(name, seconds, _NO_LIMIT)
        stated_ns = sums.overhead_ns / sums.samples.total()
        measured = center(_grouped(_differences(pairs)))
        yield Result(
            "truth",
            case,
            _ratio(stated_ns, measured.value / ranges),
            RATIO,
            "measured cost",
            _BOUND,
            len(pairs),
            interval=(
                _ratio(stated_ns, measured.high / ranges),
                _ratio(stated_ns, measured.low / ranges),
            ),
            detail={
                "stated_ns_per_range": stated_ns,
                "measured_ns_per_range": measured.value / ranges,
                "ranges_per_step": ranges,
                "step_ns": median(off for off, _ in pairs),
            },
        )


class Center(NamedTuple):
    value: float
    low: float
    high: float
    """The ends of the 95 % confidence interval."""


def center(values: list[float]) -> Center:
    """Of values whose distribution is symmetric around it. Raises ValueError if there are none."""
    count = len(values)
    means = sorted((a + b) / 2 for a, b in combinations_with_replacement(values, 2))
    if not means:
        raise ValueError("no values")
    # The sum of the ranks of the positive ones among `count` values that are symmetric around 0.
    mean, deviation = len(means) / 2, sqrt(count * (count + 1) * (2 * count + 1) / 24)
    outside = max(0, int(mean - _SURE * deviation))
    return Center(median(means), means[outside], means[-1 - outside])


def _differences(pairs: list[tuple[float, float]]) -> list[float]:
    """By how much each stretch with recording took longer than the two beside it."""
    return [on - (off + next_off) / 2 for (off, on), (next_off, _) in pairwise(pairs)]


def _grouped(values: list[float]) -> list[float]:
    """Means of so many neighbours each that there are at most _MOST_VALUES. Drops what is left of
    an incomplete group."""
    size = -(-len(values) // _MOST_VALUES)
    if size < 2:
        return values
    return [fmean(values[i : i + size]) for i in range(0, len(values) - size + 1, size)]


def _ratio(stated_ns: float, measured_ns: float) -> float:
    return stated_ns / measured_ns if measured_ns > 0 else float("inf")


def main() -> None:
    """`NAME SECONDS`: prints a step's nanoseconds without and with recording, for each pair.

    Runs in an observed process, three times for that many seconds.
    """
    from opscope.bench.truth.programs import setup

    name, seconds = sys.argv[1:]
    drive = setup(name)
    counted = drive(float(seconds))
    recorder.set_sampling(1.0, window_ms=_WINDOW_MS, period_ms=_NEVER_MS)
    step_s = counted.active_s / counted.steps
    # A drive of zero seconds makes one step.
    print(json.dumps(_pairs(lambda: drive(0.0), step_s, 2 * float(seconds))))


def _pairs(step: Callable[[], object], step_s: float, seconds: float) -> list[tuple[float, float]]:
    """At least two."""
    from opscope._native import lib

    count = max(1, round(_STRETCH_S / step_s))
    warm = max(1, count // 3)
    pairs: list[tuple[float, float]] = []
    end = time.monotonic() + seconds
    while len(pairs) < 2 or time.monotonic() < end:
        off = _step_ns(step, warm, count)
        lib.opscope_recorder_window_begin(1.0)
        on = _step_ns(step, warm, count)
        lib.opscope_recorder_window_end()
        pairs.append((off, on))
    return pairs


def _step_ns(step: Callable[[], object], warm: int, count: int) -> float:
    """Nanoseconds of the calling thread's CPU time for one step."""
    for _ in repeat(None, warm):
        step()
    start = time.thread_time_ns()
    for _ in repeat(None, count):
        step()
    return (time.thread_time_ns() - start) / count
