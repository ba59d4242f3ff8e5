"""Find slow ranges that ran under an OpenTelemetry span.

A range ran under the span whose ids are in its labels (`trace_id`, `span_id`, from
record/spans.py). Each slow range has a reference to the next outer slow range under the same span.
A range with an unknown end is counted but not reported. opscope_exporters/otlp/spans.py sends them.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from opscope.errors import OpscopeError
from opscope.timeline import layout
from opscope.timeline.clock import Clock, clocks_of
from opscope.timeline.nesting import Span, spans
from opscope.timeline.reader import Labels, Name, Shapes, Thread, Trace, TraceError

_TRACE_ID = re.compile(r"[0-9a-f]{32}")
_SPAN_ID = re.compile(r"[0-9a-f]{16}")
_ID_LABELS = ("trace_id", "span_id")
# Largest time of a span (fixed64 in the protocol, signed in stores).
_TIME_LIMIT_NS = (1 << 63) - 1


@dataclass(frozen=True, eq=False)
class Slow:
    """A slow range, and the ids of the span that it ran under."""

    trace_index: int
    thread: Thread
    name: Name
    phase: str
    has_failed: bool
    labels: Labels
    """Labels except the two ids."""
    shapes: Shapes | None
    start_unix_ns: int
    end_unix_ns: int
    trace_id: int
    span_id: int
    around: Slow | None
    """The next outer slow range under the same span."""


@dataclass
class SlowRanges:
    """The longest slow ranges, and the number of the others."""

    ranges: list[Slow] = field(default_factory=list)
    """In order of their starts."""
    left_out_count: int = 0
    """Number of slow ranges shorter than all of these."""
    endless_count: int = 0
    """Number of ranges under a span that were open for as long at the trace's end, or whose end is
    unknown."""
    outside_count: int = 0
    """Under no span."""
    damaged: dict[int, str] = field(default_factory=dict)
    """Errors of partly read traces, by index."""


class _Longest:
    """Keeps the `most` longest ranges."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._heap: list[tuple[int, int, Slow]] = []
        self.count = 0

    def add(self, slow: Slow) -> None:
        self.count += 1
        # Of equally long ranges the first, which may enclose the other.
        entry = slow.end_unix_ns - slow.start_unix_ns, -self.count, slow
        if len(self._heap) < self._most:
            heapq.heappush(self._heap, entry)
        else:
            heapq.heappushpop(self._heap, entry)

    def kept(self) -> list[Slow]:
        ordered = sorted(self._heap, key=lambda entry: (entry[2].start_unix_ns, -entry[1]))
        return [slow for _, _, slow in ordered]


def find(traces: Sequence[Trace], least_ns: int, most: int) -> SlowRanges:
    """The ranges of all traces that took `least_ns` or longer; the `most` longest of them."""
    found, longest = SlowRanges(), _Longest(most)
    clocks = clocks_of(trace.header for trace in traces)
    for index, (trace, clock) in enumerate(zip(traces, clocks, strict=True)):
        try:
            for thread in trace.threads:
                _of_thread(index, trace, thread, clock, least_ns, found, longest)
        except OpscopeError as error:
            found.damaged[index] = str(error)
    found.ranges = longest.kept()
    found.left_out_count = longest.count - len(found.ranges)
    return found


def _of_thread(
    index: int,
    trace: Trace,
    thread: Thread,
    clock: Clock,
    least_ns: int,
    found: SlowRanges,
    longest: _Longest,
) -> None:
    end_ticks = trace.header.end_anchor_ticks
    # The open spans, each with the innermost slow range so far.
    stack: list[tuple[Span, Slow | None]] = []
    for span in spans(trace, thread):
        while stack and stack[-1][0] is not span.parent:
            stack.pop()
        around = stack[-1][1] if stack else None
        if span.kind == layout.RANGE:
            # The end of a killed process is unknown.
            end = span.end or (end_ticks if end_ticks and not span.is_lost else None)
            if end is None or clock.duration_ns(end - span.start) >= least_ns:
                ids = _ids(span.labels)
                if ids is None:
                    found.outside_count += span.end is not None
                elif span.end is None:
                    found.endless_count += 1
                else:
                    slow = _slow(index, trace, thread, clock, span, span.end, ids, around)
                    if not 0 <= slow.start_unix_ns <= slow.end_unix_ns <= _TIME_LIMIT_NS:
                        raise TraceError("damaged: a range before 1970 or after 2262")
                    longest.add(slow)
                    around = slow
        if not span.is_aside and span.kind != layout.FORK:
            stack.append((span, around))


def _slow(
    index: int,
    trace: Trace,
    thread: Thread,
    clock: Clock,
    span: Span,
    end: int,
    ids: tuple[int, int],
    around: Slow | None,
) -> Slow:
    while around is not None and (around.trace_id, around.span_id) != ids:
        around = around.around
    return Slow(
        trace_index=index,
        thread=thread,
        name=trace.names.get(span.op) or Name(trace.name(span.op), "", 0),
        phase=layout.PHASES[span.phase],
        has_failed=bool(span.flags & layout.FAILED),
        labels=tuple(label for label in span.labels if label[0] not in _ID_LABELS),
        shapes=span.shapes,
        start_unix_ns=clock.unix_ns(span.start),
        end_unix_ns=clock.unix_ns(end),
        trace_id=ids[0],
        span_id=ids[1],
        around=around,
    )


def _ids(labels: Labels) -> tuple[int, int] | None:
    """Trace and span id of the span that was active; None without valid ones."""
    known = dict(labels)
    trace_id, span_id = (known.get(key, "") for key in _ID_LABELS)
    if not _TRACE_ID.fullmatch(trace_id) or not _SPAN_ID.fullmatch(span_id):
        return None
    ids = int(trace_id, 16), int(span_id, 16)
    return ids if all(ids) else None
