"""The cost of observing NumPy for a small operator: `np.add` on ten numbers.

The operator takes well under a microsecond, so this is about the worst case. All sides run in this
process; attaching and detaching happen between the timed loops.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import repeat
from time import perf_counter_ns

import numpy as np

from opscope.bench import (
    RATIO,
    Effort,
    Result,
    attached,
    interleaved,
    median_ratio,
    segment_directory,
)
from opscope.bridges import numpy as bridge
from opscope.errors import OpscopeError
from opscope.record import recorder

_WARM_UP = 1_000
_BETWEEN = {"window_ms": 2.0, "period_ms": 1e6}
"""Default windows, but none during the measurement: the remaining cost of being attached."""


def measure(effort: Effort) -> Iterator[Result]:
    if recorder.status().running:
        raise OpscopeError("this process is observed already; run it outside of opscope")
    rounds, count = effort.rounds_of(61), effort.count_of(20_000)
    with segment_directory() as directory:
        ns = interleaved(
            rounds,
            {
                "unattached": _side(nullcontext, count),
                "add10_recorded": _side(lambda: attached(bridge, directory, sampling=1.0), count),
                "add10_miss": _side(lambda: attached(bridge, directory, sampling=0.01), count),
                "add10_between": _side(lambda: attached(bridge, directory, **_BETWEEN), count),
            },
        )
    for case, bound in (("add10_recorded", 1.10), ("add10_miss", 1.02), ("add10_between", 1.01)):
        value = median_ratio(ns[case], ns["unattached"])
        yield Result("numpy", case, value, RATIO, "unattached", bound, rounds)


def _side(state: Callable[[], AbstractContextManager[None]], count: int) -> Callable[[], float]:
    def side() -> float:
        with state():
            _add_ns(_WARM_UP)
            return _add_ns(count)

    return side


def _add_ns(count: int) -> float:
    """Nanoseconds of one `np.add`, including the program's loop."""
    a, b = np.arange(10.0), np.ones(10)
    start = perf_counter_ns()
    for _ in repeat(None, count):
        np.add(a, b)
    return (perf_counter_ns() - start) / count
