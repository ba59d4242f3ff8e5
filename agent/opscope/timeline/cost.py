"""Subtract the tracer's own cost from the times of traced ranges.

One recorded range costs its thread some tens of nanoseconds (`whole`), part of them between its two
time stamps (`inside`). Both are measured: in C at the start of each trace; for ranges from Python
or a bridge when a profile begins (calibration.py). The duration of a range is reduced by: its own
`inside`, the `whole` of every record written within it at any depth, and the time to get room for
records. The result is never below 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from opscope.timeline import layout
from opscope.timeline.nesting import Span, spans
from opscope.timeline.reader import Thread, Trace


class Cost(NamedTuple):
    """The cost of one recorded range, in ticks."""

    whole: float
    inside: float


# The cost of a range, by the scope and name of its operator.
Costs = Callable[[Span], Cost]


class Timed(NamedTuple):
    """An ended span, with times in ticks without the tracer's cost."""

    span: Span
    total: float
    self_total: float
    """`total` without that of directly nested spans."""


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
