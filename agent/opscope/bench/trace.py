"""The cost of tracing, during a trace and without one, and the profiler's error in removing it.

native/bench/bench.c has the C loops, as in the bench of the recorder: the cost of a call of an
empty operator is subtracted, so a ratio compares the added costs.
"""

import statistics
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import repeat
from time import perf_counter_ns

from opscope._native import lib
from opscope.bench import RATIO, Effort, Result, interleaved, median_ratio, segment_directory
from opscope.bench.record import loop_ns
from opscope.errors import OpscopeError
from opscope.record import recorder
from opscope.record.ranges import record_function
from opscope.timeline import layout
from opscope.timeline.profiler import profile
from opscope.timeline.taking import taken

_CHILDREN = 1000

_State = Callable[[], AbstractContextManager[object]]


def measure(effort: Effort) -> Iterator[Result]:
    if lib.opscope_has_callbacks():
        raise OpscopeError("this process is observed already; run it outside of opscope")
    rounds, count = effort.rounds_of(41), effort.count_of(100_000)
    with segment_directory() as directory:
        sides = {
            "bare": lambda: loop_ns(lib.OPSCOPE_BENCH_BARE, count),
            "reads": lambda: loop_ns(lib.OPSCOPE_BENCH_TWO_READS, count),
            "ring_event": _range_side(lambda: taken(layout.DEFAULT_BYTES), count),
            "sustained": _range_side(lambda: taken(layout.DEFAULT_BYTES), 10 * count),
            "full_record": _range_side(lambda: _recorder(directory), count),
            "not_tracing": _range_side(lambda: _recorder_after_trace(directory), count),
        }
        ns = interleaved(rounds, sides)
    added = {
        side: [value - bare for value, bare in zip(ns[side], ns["bare"], strict=True)]
        for side in ("reads", "ring_event", "sustained", "full_record", "not_tracing")
    }
    for case, side, words, bound in (
        ("ring_event", "ring_event", "two counter reads", 2.0),
        # Ten times as many, so that threads have to get space from the kernel themselves.
        ("ring_event_sustained", "sustained", "two counter reads", None),
        ("not_tracing", "not_tracing", "full_record", 1.02),
    ):
        against = added["full_record" if words == "full_record" else "reads"]
        value = median_ratio(added[side], against)
        yield Result("trace", case, value, RATIO, words, bound, rounds)
    yield Result(
        "trace", "ring_event_ns", statistics.median(added["ring_event"]), "ns", None, None, rounds
    )
    yield _measure_profile(effort)


def _range_side(state: _State, count: int) -> Callable[[], float]:
    def side() -> float:
        with state():
            return loop_ns(lib.OPSCOPE_BENCH_RANGE, count)

    return side


@contextmanager
def _recorder(directory: str) -> Iterator[None]:
    recorder.start(directory, sampling=1.0)
    try:
        yield
    finally:
        recorder.stop(discard=True)


@contextmanager
def _recorder_after_trace(directory: str) -> Iterator[None]:
    """The same, after a trace has ended."""
    with _recorder(directory):
        with taken(layout.LEAST_BYTES):
            loop_ns(lib.OPSCOPE_BENCH_RANGE, 1000)
        yield


def _measure_profile(effort: Effort) -> Result:
    """The share of the profiler's cost that remains in a range with many tiny nested ranges."""
    rounds = effort.rounds_of(25)
    left = []
    for _ in range(rounds):
        bare = min(_parent_ns() for _ in range(5))
        with profile(buffer_mib=1) as prof:
            with_profiler = min(_parent_ns() for _ in range(5))
        parent = min(prof.each("bench::parent"))
        left.append((parent * 1e3 - bare) / (with_profiler - bare))
    value = abs(statistics.median(left))
    return Result("trace", "profile_error", value, RATIO, "what the profiler cost", 0.15, rounds)


def _parent_ns() -> int:
    start = perf_counter_ns()
    with record_function("bench::parent"):
        for _ in repeat(None, _CHILDREN):
            with record_function("bench::child"):
                pass
    return perf_counter_ns() - start
