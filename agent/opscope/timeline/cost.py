"""What the tracer itself cost, taken out of the times of what it traced.

One recorded range costs its thread some tens of nanoseconds (``whole``), of which a part lies
between the two times that are taken of it (``inside``). Both are measured: in C at the start of
each trace; for ranges that Python or a bridge opens when a profile begins (calibration.py). From
the duration of a range are taken: its own ``inside``, the ``whole`` of every record written within
it at any depth, and what getting room for records took. What is left is never below 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from opscope.timeline import layout
from opscope.timeline.nesting import Span, spans
from opscope.timeline.reader import Thread, Trace


class Cost(NamedTuple):
    """Of one recorded range, in ticks."""

    whole: float
    inside: float


# By the scope and name of an operator: what a range of its kind costs.
Costs = Callable[[Span], Cost]


class Timed(NamedTuple):
    """A span that has ended, its times in ticks without what the tracer cost."""

    span: Span
    total: float
    self_total: float
    """``total`` without that of the spans right within it."""


class _Open:
    __slots__ = ("children", "overhead", "span")

    def __init__(self, span: Span) -> None:
        self.span = span
        self.overhead = 0.0
        self.children = 0.0


def timed(trace: Trace, thread: Thread, costs: Costs) -> Iterator[Timed]:
    """The thread's ranges and tasks that ended within the trace, inner ones first."""
    stack: list[_Open] = []
    for span in spans(trace, thread):
        while stack and stack[-1].span is not span.parent:
            yield from _close(stack, costs)
        cost = costs(span)
        if span.is_aside or span.kind == layout.FORK:
            if stack:
                stack[-1].overhead += cost.whole
            if span.is_aside and span.end is not None:
                total = max(span.end - span.start - cost.inside, 0.0)
                yield Timed(span, total, total)
            continue
        stack.append(_Open(span))
    while stack:
        yield from _close(stack, costs)


def _close(stack: list[_Open], costs: Costs) -> Iterator[Timed]:
    done = stack.pop()
    span, cost = done.span, costs(done.span)
    overhead = done.overhead + span.taking_ticks
    if span.end is not None:
        total = max(span.end - span.start - cost.inside - overhead, 0.0)
        yield Timed(span, total, max(total - done.children, 0.0))
        if stack:
            stack[-1].children += total
    if stack:
        stack[-1].overhead += overhead + cost.whole
