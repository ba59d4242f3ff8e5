"""The cost of a range: in C relative to two counter reads, and in Python relative to torch's.

native/bench/bench.c has the C loops. The cost of a call of an empty operator is subtracted from
both sides, so a ratio compares the added costs.
"""

import importlib.util
import statistics
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import repeat
from time import perf_counter_ns

import opscope
from opscope._native import ffi, lib
from opscope.bench import (
    RATIO,
    Effort,
    Result,
    interleaved,
    median_ratio,
    segment_directory,
)
from opscope.errors import OpscopeError
from opscope.record import recorder

# A callback with this probability does not fire within a bench; a miss costs the same at any.
_NEVER_FIRES = 1e-12
_WARM_UP = 10_000

_State = Callable[[], AbstractContextManager[None]]


def measure(effort: Effort) -> Iterator[Result]:
    if lib.opscope_has_callbacks():
        raise OpscopeError("this process is observed already; run it outside of opscope")
    yield from _measure_c(effort)
    yield _measure_python(effort)


def _measure_c(effort: Effort) -> Iterator[Result]:
    rounds, count = effort.rounds_of(41), effort.count_of(200_000)
    with segment_directory() as directory:
        states: dict[str, tuple[float, _State]] = {
            "no_callback": (0.08, nullcontext),
            "sampled_miss": (0.15, lambda: _empty_callback(_NEVER_FIRES)),
            "full_record": (1.6, lambda: _recorder(directory)),
            "empty_c_callback": (0.8, lambda: _empty_callback(1.0)),
        }
        sides = {
            "bare": lambda: loop_ns(lib.OPSCOPE_BENCH_BARE, count),
            "reads": lambda: loop_ns(lib.OPSCOPE_BENCH_TWO_READS, count),
        }
        for case, (_, state) in states.items():
            sides[case] = _range_side(state, count)
        ns = interleaved(rounds, sides)
    reads = [value - bare for value, bare in zip(ns["reads"], ns["bare"], strict=True)]
    for case, (bound, _) in states.items():
        added = [value - bare for value, bare in zip(ns[case], ns["bare"], strict=True)]
        value = median_ratio(added, reads)
        yield Result("record", case, value, RATIO, "two counter reads", bound, rounds)
    yield Result("record", "two_counter_reads", statistics.median(reads), "ns", None, None, rounds)


def _range_side(state: _State, count: int) -> Callable[[], float]:
    def side() -> float:
        with state():
            return loop_ns(lib.OPSCOPE_BENCH_RANGE, count)

    return side


def loop_ns(loop: int, count: int) -> float:
    """Nanoseconds per call in that loop, after warming up."""
    out = ffi.new("double *")
    for turns in (_WARM_UP, count):
        if lib.opscope_bench_ns(loop, turns, out) != lib.OPSCOPE_OK:
            raise OpscopeError("the loop in C could not run")
    return float(out[0])


@contextmanager
def _empty_callback(sampling_prob: float) -> Iterator[None]:
    """A pair of empty C functions, registered for all threads."""
    callback = ffi.new(
        "opscope_callback *",
        {
            "start": ffi.addressof(lib, "opscope_bench_empty_start"),
            "end": ffi.addressof(lib, "opscope_bench_empty_end"),
            "sampling_prob": sampling_prob,
        },
    )
    handle = ffi.new("opscope_handle *")
    if lib.opscope_add_global_callback(callback, handle) != lib.OPSCOPE_OK:
        raise OpscopeError("the empty callback could not be registered")
    try:
        yield
    finally:
        lib.opscope_remove_callback(handle[0], True)


@contextmanager
def _recorder(directory: str) -> Iterator[None]:
    """A recorder that records every range, with a label set on this thread."""
    recorder.start(directory, sampling=1.0)
    try:
        with opscope.debug_info(model_id="bench"):
            yield
    finally:
        recorder.stop(discard=True)


def _measure_python(effort: Effort) -> Result:
    rounds, count = effort.rounds_of(25), effort.count_of(20_000)
    sides: dict[str, Callable[[], float]] = {
        "bare": lambda: _empty_loop_ns(count),
        "ours": lambda: _scope_ns(opscope.record_function, count),
    }
    torch = importlib.util.find_spec("torch") is not None
    if torch:
        from torch.profiler import record_function

        sides["torch"] = lambda: _scope_ns(record_function, count)
    ns = interleaved(rounds, sides)
    added = [value - bare for value, bare in zip(ns["ours"], ns["bare"], strict=True)]
    case = "python_scope_off"
    if not torch:
        return Result("record", case, statistics.median(added), "ns", None, 500.0, rounds)
    theirs = [value - bare for value, bare in zip(ns["torch"], ns["bare"], strict=True)]
    value = median_ratio(added, theirs)
    return Result("record", case, value, RATIO, "torch's record_function", 0.33, rounds)


def _empty_loop_ns(count: int) -> float:
    start = perf_counter_ns()
    for _ in repeat(None, count):
        pass
    return (perf_counter_ns() - start) / count


def _scope_ns(scope: Callable[[str], AbstractContextManager[object]], count: int) -> float:
    start = perf_counter_ns()
    for _ in repeat(None, count):
        with scope("x"):
            pass
    return (perf_counter_ns() - start) / count
