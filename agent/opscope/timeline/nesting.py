"""The nesting of a thread's records: spans, each with its outer span.

Ranges of a thread nest, as calls do. Asynchronous ranges, and those that outlast their outer range,
are spans outside of the nesting: no span is inside them. Times are ticks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from opscope.timeline import layout
from opscope.timeline.reader import Block, Labels, Record, Shapes, Thread, Trace


class Span:
    """A range, a task or a fork in its nesting. `end` is None if it was open at the trace's end or
    never closed."""

    __slots__ = (
        "allocated_bytes",
        "depth",
        "end",
        "flags",
        "forward_thread_id",
        "is_aside",
        "is_lost",
        "kind",
        "labels",
        "number",
        "op",
        "parent",
        "phase",
        "shapes",
        "start",
        "taking_ticks",
    )

    def __init__(self, record: Record, parent: Span | None) -> None:
        self.kind = record.kind
        self.op = record.op
        self.start = record.start
        self.end: int | None = record.end or None
        self.flags = record.flags
        self.number = record.number
        self.forward_thread_id = record.forward_thread_id
        self.labels: Labels = record.labels
        self.shapes: Shapes | None = record.shapes
        self.parent = parent
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.is_aside = False
        self.is_lost: bool = not record.end and (
            bool(record.flags & layout.LOST) or _has_ended(parent)
        )
        """Whether it had ended by the trace's end, at an unknown time."""
        self.phase: int = _phase(record, parent)
        self.allocated_bytes = 0
        """Of this span alone, without nested spans."""
        self.taking_ticks = 0
        """Ticks that its thread spent on getting room for records, directly within it."""


def _has_ended(span: Span | None) -> bool:
    return span is not None and (span.end is not None or span.is_lost)


def _phase(record: Record, parent: Span | None) -> int:
    """An outer strong phase replaces a weak one, as in the recorder."""
    if record.phase < layout.FIRST_STRONG_PHASE and parent is not None:
        outer: int = parent.phase
        if outer >= layout.FIRST_STRONG_PHASE:
            return outer
    return record.phase


def spans(trace: Trace, thread: Thread) -> Iterator[Span]:
    """The thread's spans in order of their starts.

    A span's allocated bytes are complete once a span outside of it follows, or at the end. Raises
    TraceError.
    """
    return _placed(trace.records(thread))


def _placed(records: Iterable[Record | Block]) -> Iterator[Span]:
    stack: list[Span] = []
    for record in records:
        if isinstance(record, Block):
            _leave(stack, record.taken_ticks)
            if stack:
                stack[-1].taking_ticks += record.ready_ticks - record.taken_ticks
            continue
        _leave(stack, record.start)
        parent = stack[-1] if stack else None
        if record.kind == layout.ALLOCATION:
            if parent is not None:
                parent.allocated_bytes += record.number
            continue
        span = Span(record, parent)
        if (record.kind == layout.RANGE and record.flags & (layout.ASYNC | layout.LOST)) or (
            parent is not None and parent.end is not None and (record.end or 0) > parent.end
        ):
            span.is_aside = True
        elif record.kind != layout.FORK:
            stack.append(span)
        yield span


def _leave(stack: list[Span], now: int) -> None:
    """Removes the spans that have ended, and all spans nested in them."""
    if not stack:
        return
    end = stack[-1].end
    if end is not None and end > now:
        return  # so have the outer ones
    for index, span in enumerate(stack):
        if span.end is not None and span.end <= now:
            del stack[index:]
            return
