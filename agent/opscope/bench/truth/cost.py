"""`cost_...`: the stated cost of recording relative to the measured one, on programs of some size.

In one process, every range is recorded, or none, in turns: the bench opens and closes a window
around some steps. After each change, some steps are not counted, until caches are warm. The
measured cost is the median difference in the thread's CPU time between neighbouring stretches with
and without recording, divided by the ranges in a step; the interval is that of this median. The
stated cost is the segment's, computed as the recorder does.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import repeat
from statistics import median

from opscope.bench import RATIO, Effort, Result, median_interval

_PROGRAMS = {
    "cost_bert_train": "bert_train",
    "cost_resnet18": "resnet18_train",
    "cost_numpy_loop": "numpy_small",
}
_BOUND = (0.8, 1.2)
_BY_HAND = {
    "OPSCOPE_SAMPLING": "windows",
    "OPSCOPE_WINDOW_MS": "2",
    "OPSCOPE_PERIOD_MS": "1e8",
    "OPSCOPE_MAX_OVERHEAD": "off",
}
"""Settings with windows that never open by themselves."""
_STRETCH_S = 0.02
"""Minimum seconds of a stretch; another third before it is not counted."""


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
        pairs, sums = run_toggled(name, seconds, _BY_HAND)
        stated_ns = sums.overhead_ns / sums.samples.total()
        measured_ns = [(on - off) / ranges for off, on in pairs]
        low, high = median_interval(measured_ns)
        yield Result(
            "truth",
            case,
            _ratio(stated_ns, median(measured_ns)),
            RATIO,
            "measured cost",
            _BOUND,
            len(pairs),
            interval=(_ratio(stated_ns, high), _ratio(stated_ns, low)),
            detail={
                "stated_ns_per_range": stated_ns,
                "measured_ns_per_range": median(measured_ns),
                "ranges_per_step": ranges,
                "step_ns": median(off for off, _ in pairs),
            },
        )


def _ratio(stated_ns: float, measured_ns: float) -> float:
    return stated_ns / measured_ns if measured_ns > 0 else float("inf")


def main() -> None:
    """`NAME SECONDS`: prints a step's nanoseconds without and with recording, for each pair.

    Runs in an observed process whose windows never open by themselves.
    """
    from opscope.bench.truth.programs import setup

    name, seconds = sys.argv[1:]
    drive = setup(name)
    counted = drive(0.2)
    step_s = counted.active_s / counted.steps
    # A drive of zero seconds makes one step.
    print(json.dumps(_pairs(lambda: drive(0.0), step_s, float(seconds))))


def _pairs(step: Callable[[], object], step_s: float, seconds: float) -> list[tuple[float, float]]:
    from opscope._native import lib

    count = max(1, round(_STRETCH_S / step_s))
    warm = max(1, count // 3)
    pairs = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
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
