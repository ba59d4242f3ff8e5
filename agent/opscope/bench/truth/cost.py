"""`cost_...`: the stated cost of recording relative to the measured one, on programs of some size.

In one process, windows of the default length open every 8 ms instead of 250, so that their cost can
be measured; their warm-up, which otherwise adapts to the program, always takes 1 ms then. First the
recorder learns what its ranges cost in this program. Then windows open for some steps, and none for
as many, in turns. The measured cost is the difference in the thread's CPU time between a stretch
with windows and the mean of its two neighbours without, divided by the windows. The stated cost is
the segment's increase meanwhile, with the factor at the end, without that of the window thread: the
kernel counts its CPU time.

A range in a window costs more than one among many that are recorded in sequence. On a Zen 5, in
multiples of the cost in a loop: in BERT's training 2.2 to 2.7 in windows and 1.7 to 2.1 where every
range of many steps was recorded; in a ResNet's 3.7 and 3.0.

The centre of all differences is that of Hodges and Lehmann, the median of the means of all pairs:
it bears outliers as a median does, and needs two thirds as many values for the same error. Its
interval is that of Wilcoxon's signed-rank test.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import combinations_with_replacement, pairwise, repeat
from math import sqrt
from statistics import fmean, median
from typing import NamedTuple

from opscope.bench import RATIO, Effort, Result
from opscope.bench.truth.programs import PROGRAMS, Drive, setup
from opscope.record import recorder
from opscope.segments.dictionary import Dictionary
from opscope.segments.segment import read_header, read_segment
from opscope.segments.segment_file import File

_PROGRAMS = {
    "cost_bert_train": "bert_train",
    "cost_resnet18": "resnet18_train",
    "cost_numpy_loop": "numpy_small",
}
_BOUND = (0.8, 1.2)
_CODE = "from opscope.bench.truth.cost import main; main()"
_NO_LIMIT = {"OPSCOPE_MAX_OVERHEAD": "off"}
_WINDOW_MS, _PERIOD_MS = 2.0, 8.0
_NEVER_MS = 1e8
"""Windows that never open by themselves."""
_SURE = 1.96
_STRETCH_S = 0.024
"""Minimum seconds of a stretch."""
_TOGGLED = 4.0
"""Windows open in turns for this many times as long as the recorder learns before."""
_MOST_VALUES = 1000
"""Of which the centre is sought; more differences are averaged in groups."""


def measure(effort: Effort, seconds: float) -> Iterator[Result]:
    from opscope.bench.truth.observed import output

    for case, name in _PROGRAMS.items():
        if not effort.wants(case) or find_spec(PROGRAMS[name].needs) is None:
            continue
        toggled = _read(output(_CODE, name, seconds, _NO_LIMIT))
        measured = center(_grouped(_differences(toggled.pairs)))
        per_window = len(toggled.pairs) / toggled.windows
        yield Result(
            "truth",
            case,
            _ratio(toggled.stated_ns, measured.value * len(toggled.pairs)),
            RATIO,
            "measured cost",
            _BOUND,
            len(toggled.pairs),
            interval=(
                _ratio(toggled.stated_ns, measured.high * len(toggled.pairs)),
                _ratio(toggled.stated_ns, measured.low * len(toggled.pairs)),
            ),
            detail={
                "stated_ns_per_window": toggled.stated_ns / toggled.windows,
                "measured_ns_per_window": measured.value * per_window,
                "factor": toggled.factor,
                "stretch_ns": median(off for off, _ in toggled.pairs),
            },
        )


class Toggled(NamedTuple):
    """What a process measured with windows in turns."""

    pairs: list[tuple[float, float]]
    """Nanoseconds of its thread's CPU time, in stretches without and with windows."""
    windows: int
    stated_ns: float
    """The stated cost of all these windows, without the window thread's."""
    factor: float
    """The stated cost divided by the cost in loops."""


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


def _read(said: str) -> Toggled:
    pairs, windows, stated_ns, factor = json.loads(said)
    return Toggled([(off, on) for off, on in pairs], windows, stated_ns, factor)


def main() -> None:
    """`NAME SECONDS`: prints a Toggled.

    Runs in an observed process: once for that many seconds, then _TOGGLED times as long.
    """
    name, seconds = sys.argv[1:]
    drive = setup(name)
    recorder.set_sampling(1.0, window_ms=_WINDOW_MS, period_ms=_PERIOD_MS)
    learned = drive(float(seconds))
    steps = max(1, round(_STRETCH_S * learned.steps / learned.active_s))
    print(json.dumps(_toggle(drive, steps, _TOGGLED * float(seconds))))


def _toggle(drive: Drive, steps: int, seconds: float) -> Toggled:
    """At least two pairs."""
    pairs: list[tuple[float, float]] = []
    recorder.set_sampling(1.0, window_ms=_WINDOW_MS, period_ms=_NEVER_MS)
    first, first_windows = _loop_cost(), recorder.status().window_count
    end = time.monotonic() + seconds
    while len(pairs) < 2 or time.monotonic() < end:
        off = _stretch_ns(drive, steps, _NEVER_MS)
        on = _stretch_ns(drive, steps, _PERIOD_MS)
        pairs.append((off, on))
    # Ends the last plan's window.
    recorder.set_sampling(1.0, window_ms=_WINDOW_MS, period_ms=_NEVER_MS)
    _stretch_ns(drive, steps, _NEVER_MS)
    last, windows = _loop_cost(), recorder.status().window_count - first_windows
    return Toggled(pairs, windows, (last.ns - first.ns) * last.factor, last.factor)


def _stretch_ns(drive: Drive, steps: int, period_ms: float) -> float:
    """Nanoseconds of the calling thread's CPU time for so many steps."""
    recorder.set_sampling(1.0, window_ms=_WINDOW_MS, period_ms=period_ms)
    start = time.thread_time_ns()
    for _ in repeat(None, steps):
        drive(0.0)  # one step
    return time.thread_time_ns() - start


class _LoopCost(NamedTuple):
    ns: float
    factor: float


def _loop_cost() -> _LoopCost:
    """What this process's ranges cost in loops, and by how much more they do in this program."""
    fd = os.open(recorder.status().path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        file = File(fd)
        header = read_header(file)
        overhead_ns = read_segment(file, header, Dictionary()).overhead_ns
    finally:
        os.close(fd)
    factor = header.cost_factor_ppm / 1e6
    return _LoopCost((overhead_ns - header.window_thread_ns) / factor, factor)
