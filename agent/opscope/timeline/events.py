"""The ranges of a profile, one by one: `profile().events()`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from opscope.timeline import layout
from opscope.timeline.averages import Shape
from opscope.timeline.cost import Costs, timed
from opscope.timeline.reader import Trace
from opscope.timeline.stacks import Stack, key_of


@dataclass(frozen=True)
class Event:
    """One range that had ended by the profile's end. Times in microseconds, on its thread, without
    the profiler's own cost."""

    name: str
    thread: int
    """The operating system's id of the thread."""
    start: float
    """Since the profile began; as measured, with the profiler's cost before it."""
    cpu_time_total: float
    self_cpu_time_total: float
    depth: int
    """Number of ranges around it on its thread."""
    phase: str
    failed: bool
    self_cpu_memory_usage: int
    """Bytes that it allocated itself, as far as its source tells."""
    labels: tuple[tuple[str, str], ...]
    input_shapes: Shape | None
    stack: Stack = ()
    """The call sites, the innermost first; empty without `with_stack`, and for a range of a thread
    without Python."""


Stacks = Mapping[tuple[int, int, int, int], Stack]


def events(trace: Trace, costs: Costs, stacks: Stacks) -> list[Event]:
    """All ended ranges, in the order of their starts."""
    return sorted(_events(trace, costs, stacks), key=lambda event: event.start)


def _events(trace: Trace, costs: Costs, stacks: Stacks) -> Iterator[Event]:
    us_per_tick = 1e6 / trace.header.ticks_per_second
    for number, thread in enumerate(trace.threads):
        for one in timed(trace, thread, costs):
            span = one.span
            if span.kind == layout.RANGE:
                yield Event(
                    name=trace.name(span.op),
                    thread=thread.system_id,
                    start=(span.start - trace.header.anchor_ticks) * us_per_tick,
                    cpu_time_total=one.total * us_per_tick,
                    self_cpu_time_total=one.self_total * us_per_tick,
                    depth=span.depth,
                    phase=layout.PHASES[span.phase],
                    failed=bool(span.flags & layout.FAILED),
                    self_cpu_memory_usage=span.allocated_bytes,
                    labels=tuple(span.labels),
                    input_shapes=span.shapes,
                    stack=stacks.get(key_of(number, span), ()),
                )
