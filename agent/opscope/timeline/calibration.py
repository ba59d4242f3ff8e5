"""What a recorded range costs where it is opened: measured in this process, when a profile begins.

A range opened in C costs what the trace's header says. One of Python's ``record_function``, or of
a bridge's framework, takes a longer way while somebody looks, and that way is the profiler's cost,
too. Each is run some hundred times with this thread's recording switched off, then within a trace
of their own that is thrown away, of this thread's callbacks the only one: what is more then, is the
cost. The least of some rounds counts on each side, so that what else the machine does is not taken
for it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from time import perf_counter_ns
from typing import Any, NamedTuple

from opscope._native import lib
from opscope.record.ranges import record_function, recording
from opscope.record.scope import RecordScope
from opscope.timeline import layout
from opscope.timeline.cost import Cost, Costs
from opscope.timeline.nesting import Span, spans
from opscope.timeline.reader import Trace
from opscope.timeline.taking import taken

_ROUNDS, _TURNS = 7, 64
_NAME = "opscope::calibration"

_Probe = Callable[[], Callable[[], None]]


class Measured(NamedTuple):
    """Nanoseconds that one recorded range costs; ``inside`` is None where C's holds."""

    whole: float
    inside: float | None


def measure(flags: int) -> dict[str, Measured]:
    """By source (:func:`source_of`), for traces with these flags; those that could be measured."""
    found = {}
    for source, probe in _PROBES.items():
        try:
            with recording(False):
                run = probe()
            measured = _measure(source, run, flags)
        except Exception:
            continue  # a framework that does not play along: C's cost holds for it
        if measured is not None:
            found[source] = measured
    return found


def _measure(source: str, run: Callable[[], None], flags: int) -> Measured | None:
    with recording(False):
        off = min(_round_ns(run) for _ in range(_ROUNDS))
    with taken(layout.LEAST_BYTES, flags) as take, _alone():
        _round_ns(run)
        on = min(_round_ns(run) for _ in range(_ROUNDS))
    trace = take.trace()
    durations = [
        span.end - span.start
        for thread in trace.threads
        for span in spans(trace, thread)
        if span.end is not None and source_of(trace, span) == source
    ]
    if len(durations) < _ROUNDS * _TURNS:
        return None  # nobody makes its calls into ranges
    inside = None
    if source == "python":
        # A range around nothing takes no time.
        inside = min(median(durations) * 1e9 / trace.header.ticks_per_second, on - off)
    return Measured(max(on - off, 0.0), inside)


def _round_ns(run: Callable[[], None]) -> float:
    start = perf_counter_ns()
    for _ in range(_TURNS):
        run()
    return (perf_counter_ns() - start) / _TURNS


@contextmanager
def _alone() -> Iterator[None]:
    lib.opscope_trace_alone(True)
    try:
        yield
    finally:
        lib.opscope_trace_alone(False)


# ---- what is run -----------------------------------------------------------------------------


def _of_python() -> Callable[[], None]:
    def run() -> None:
        with record_function(_NAME):
            pass

    return run


def _module(name: str) -> Any:
    """One that the program has imported, wholly."""
    module = sys.modules[name]
    if getattr(module.__spec__, "_initializing", False):
        raise ImportError(name)
    return module


def _of_numpy() -> Callable[[], None]:
    numpy = _module("numpy")
    x = numpy.zeros(1)
    return lambda: numpy.negative(x, x)


def _of_torch() -> Callable[[], None]:
    torch = _module("torch")
    x = torch.zeros(1, device="cpu")
    return lambda: x.neg_()


def _of_core() -> Callable[[], None]:
    x = _module("opscope.tensor").zeros([1])
    return lambda: x.neg_()


_PROBES: dict[str, _Probe] = {
    "python": _of_python,
    "numpy": _of_numpy,
    "torch": _of_torch,
    "core": _of_core,
}


# ---- what it holds for -------------------------------------------------------------------------

_PREFIXES = {"numpy": "numpy", "core": "core", "aten": "torch", "autograd": "torch"}


def source_of(trace: Trace, span: Span) -> str:
    """Who opened the range, as far as its name and scope tell."""
    named = trace.names.get(span.op)
    if named is None or span.kind != layout.RANGE:
        return "c"
    prefix, colons, _ = named.name.partition("::")
    if colons and prefix in _PREFIXES:
        return _PREFIXES[prefix]
    if named.scope == RecordScope.USER_SCOPE:
        return "python"
    return "torch" if "torch" in sys.modules else "c"


def costs_for(trace: Trace, measured: dict[str, Measured]) -> Costs:
    """What a range of that trace costs, in ticks: as measured, else as its header says."""
    per_ns = trace.header.ticks_per_second / 1e9
    own = Cost(
        trace.header.record_cost_ps / 1e3 * per_ns, trace.header.inside_cost_ps / 1e3 * per_ns
    )
    by_source = {
        source: Cost(
            cost.whole * per_ns, own.inside if cost.inside is None else cost.inside * per_ns
        )
        for source, cost in measured.items()
    }
    by_op: dict[int, Cost] = {}

    def cost_of(span: Span) -> Cost:
        if span.kind != layout.RANGE:
            return own
        known = by_op.get(span.op)
        if known is None:
            known = by_op[span.op] = by_source.get(source_of(trace, span), own)
        return known

    return cost_of
