"""When each thread of a traced process had a range open."""

from bisect import bisect_right

from opscope._native import lib
from opscope.errors import OpscopeError
from opscope.timeline import layout
from opscope.timeline.clock import clock_of
from opscope.timeline.reader import Block, Trace

Times = tuple[list[int], list[int]]
"""Starts and ends of disjoint intervals, in order; CLOCK_MONOTONIC in nanoseconds."""


class Spans:
    """The intervals of each thread, by its system id: of all ranges, and without outer ones."""

    def __init__(self, every: dict[int, Times], compiled: dict[int, Times]) -> None:
        self._every, self._compiled = every, compiled
        self._anywhere = _united(every), _united(compiled)

    def contain(self, tid: int, ns: int, *, compiled: bool = False) -> bool:
        """Whether a range was open then on the thread; on any thread, if this one has none."""
        times = (self._compiled if compiled else self._every).get(tid)
        if tid not in self._every:
            times = self._anywhere[compiled]
        if times is None:
            return False
        at = bisect_right(times[0], ns) - 1
        return at >= 0 and ns < times[1][at]

    def covered_ns(self, start_ns: int, end_ns: int) -> int:
        """How much of that time had a range open on any thread."""
        pairs = zip(*self._anywhere[0], strict=True)
        return sum(max(0, min(end, end_ns) - max(start, start_ns)) for start, end in pairs)


def of_trace(trace: Trace, realtime_ns: int) -> tuple[dict[int, Times], dict[int, Times]]:
    """The arguments of Spans. `realtime_ns`: the wall clock minus CLOCK_MONOTONIC.

    Raises OpscopeError if the trace lacks ranges, TraceError if it is damaged.
    """
    if trace.lost_count:
        raise OpscopeError(f"the trace has no room for {trace.lost_count} ranges")
    clock = clock_of(trace.header)
    outer = {op for op, name in trace.names.items() if name.scope == lib.OPSCOPE_USER_SCOPE}
    every: dict[int, Times] = {}
    compiled: dict[int, Times] = {}
    for thread in trace.threads:
        ranges = [
            (clock.unix_ns(one.start) - realtime_ns, clock.unix_ns(one.end) - realtime_ns, one.op)
            for one in trace.records(thread)
            if not isinstance(one, Block) and one.kind == layout.RANGE and one.end
        ]
        every[thread.system_id] = _outermost([(start, end) for start, end, _ in ranges])
        compiled[thread.system_id] = _outermost(
            [(start, end) for start, end, op in ranges if op not in outer]
        )
    return every, compiled


def _outermost(pairs: list[tuple[int, int]]) -> Times:
    starts: list[int] = []
    ends: list[int] = []
    for start, end in pairs:
        if ends and start < ends[-1]:
            ends[-1] = max(ends[-1], end)
        else:
            starts.append(start)
            ends.append(end)
    return starts, ends


def _united(threads: dict[int, Times]) -> Times:
    pairs = [pair for times in threads.values() for pair in zip(*times, strict=True)]
    return _outermost(sorted(pairs))
