"""Measure the cost of a recorded range in this process, by its source, when a profile begins.

The trace's header has the cost of a range opened in C. A range of Python's `record_function`, or of
a bridge's framework, takes a longer path while it is observed, which is a cost of the profiler too.
Each is run some hundred times with this thread's recording off, and then within a discarded trace
that is this thread's only callback; the difference is the cost. Each side uses the minimum over
several rounds, so that other load on the machine does not count.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from statistics import median
from time import perf_counter_ns
from typing import Any, NamedTuple

from opscope._native import lib
from opscope.bridges import catalog
from opscope.bridges.catalog import Bridge
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
    """Cost of one recorded range in ns; `inside` is None if the cost of C's ranges applies."""

    whole: float
    inside: float | None


def measure(flags: int) -> dict[str, Measured]:
    """The costs by source (`source_of`), for traces with these flags; only measurable sources."""
    found = {}
    for source, probe in _probes().items():
        try:
            with recording(False):
                run = probe()
            measured = _measure(source, run, flags)
        except Exception:
            continue  # a framework whose probe fails: the cost of C's ranges applies
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
        return None  # no bridge makes its calls visible
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


# ---- probes ----------------------------------------------------------------------------------


def _of_python() -> Callable[[], None]:
    def run() -> None:
        with record_function(_NAME):
            pass

    return run


def _module(name: str) -> Any:
    """A module that the program has imported completely."""
    module = sys.modules[name]
    if getattr(module.__spec__, "_initializing", False):
        raise ImportError(name)
    return module


def _of_core() -> Callable[[], None]:
    x = _module("opscope.tensor").zeros([1])
    return lambda: x.neg_()


def _of_bridge(bridge: Bridge) -> Callable[[], None]:
    prepare, statement = bridge.probe or ("", "")
    names = {bridge.framework: _module(bridge.framework)}
    exec(prepare, names)
    code = compile(statement, "<probe>", "exec")
    return lambda: exec(code, names)


def _probes() -> dict[str, _Probe]:
    """By source."""
    of_bridges = {
        bridge.framework: partial(_of_bridge, bridge)
        for bridge in catalog.known()
        if bridge.probe is not None
    }
    return {"python": _of_python, "core": _of_core, **of_bridges}


# ---- application to a trace ------------------------------------------------------------------


def source_of(trace: Trace, span: Span) -> str:
    """The source of the range, as far as its name and scope show it."""
    named = trace.names.get(span.op)
    if named is None or span.kind != layout.RANGE:
        return "c"
    if named.name.startswith("core::"):
        return "core"
    if framework := catalog.framework_of_prefix(named.name):
        return framework
    if named.scope == RecordScope.USER_SCOPE:
        return "python"
    return catalog.framework_of_others() or "c"


def costs_for(trace: Trace, measured: dict[str, Measured]) -> Costs:
    """The cost of a range of that trace, in ticks: as measured, or else from its header."""
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
