"""``opscope.profile()``: every range of a block of the program, summed up or as a timeline.

Of all threads of the process. Times are without what the profiler itself cost (cost.py); the
exported timeline shows them as they were.
"""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any

from opscope.errors import RecorderError
from opscope.timeline import layout
from opscope.timeline.averages import Average, Averages, Shape
from opscope.timeline.calibration import Measured, costs_for, measure, source_of
from opscope.timeline.cost import Timed, timed
from opscope.timeline.frameworks import attach_imported
from opscope.timeline.nesting import Span
from opscope.timeline.reader import Trace
from opscope.timeline.taking import Take

_MIB = 1 << 20


class profile:  # noqa: N801 - PyTorch's name
    """Record every range within the block, on all threads.

    >>> with profile() as prof:
    ...     with record_function("tokenize"):
    ...         pass
    >>> prof.key_averages()[0].count
    1

    ``record_shapes``: the shapes of each range's inputs, too (arrays of NumPy, PyTorch and the
    tensor core). ``buffer_mib``: at most so much memory, 1 to 1024; what finds no room there is
    counted in ``lost_count`` and is in no sum: a warning says so. One profile at a time, and none
    while `opscope trace` takes a trace (RecorderError). Within a forked child, nothing is recorded.

    NumPy and PyTorch are seen where they have been imported before the block begins, whether or not
    the program is attached; ``OPSCOPE_ENABLED=0`` and ``OPSCOPE_BRIDGES`` hold (frameworks.py).
    """

    def __init__(self, *, record_shapes: bool = False, buffer_mib: int = 64) -> None:
        size = buffer_mib * _MIB
        if not layout.LEAST_BYTES <= size <= layout.MOST_BYTES:
            raise ValueError(f"buffer_mib must be within 1 and 1024, not {buffer_mib!r}")
        self._size = size
        self._flags = layout.SHAPES if record_shapes else 0
        self._take: Take | None = None
        self._trace: Trace | None = None
        self._thread_names: dict[int, str] = {}
        self.overhead: dict[str, Measured] = {}
        """What one recorded range was measured to cost, nanoseconds, by who opens it."""

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Begin, anew where it has been used before; RecorderError where that cannot be."""
        take = Take()
        attach_imported()
        self.overhead = measure(self._flags)
        take.start(self._size, self._flags)
        self._take, self._trace = take, None

    def stop(self) -> None:
        """End; the results can be read from then on."""
        if self._take is None or self._trace is not None:
            return
        self._take.stop()
        self._thread_names = _thread_names()
        self._trace = self._take.trace()
        if self._trace.lost_count:
            import warnings

            warnings.warn(
                f"{self._trace.lost_count} ranges found no room in the profile and are not in it: "
                f"give it more, buffer_mib={min(self._size // _MIB * 4, 1024)}, or profile less",
                RuntimeWarning,
                stacklevel=3,
            )

    def _ended(self) -> Trace:
        if self._trace is None:
            raise RecorderError(
                "the profile has not ended: read it after the with block, or stop()"
            )
        return self._trace

    @property
    def lost_count(self) -> int:
        """Ranges that found no room."""
        return self._ended().lost_count

    def key_averages(self, group_by_input_shape: bool = False) -> Averages:
        """The ranges summed up by operator, and by input shapes where asked for.

        RecorderError before the profile has ended; ValueError for ``group_by_input_shape`` without
        ``record_shapes``.
        """
        trace = self._ended()
        if group_by_input_shape and not self._flags & layout.SHAPES:
            raise ValueError("group_by_input_shape needs profile(record_shapes=True)")
        sums: dict[tuple[str, Shape | None], _Sum] = {}
        costs = costs_for(trace, self.overhead)
        for thread in trace.threads:
            allocated = _Allocated()
            for one in timed(trace, thread, costs):
                within = allocated.of(one.span)
                if one.span.kind != layout.RANGE:
                    continue
                shapes = one.span.shapes if group_by_input_shape else None
                key = (trace.name(one.span.op), shapes)
                known = sums.get(key)
                if known is None:
                    known = sums[key] = _Sum(source_of(trace, one.span) == "core")
                known.add(one, within)
        return _averages(sums, 1e6 / trace.header.ticks_per_second)

    def each(self, name: str) -> list[float]:
        """What each range of that operator took, in microseconds, in order of their ends."""
        trace = self._ended()
        costs = costs_for(trace, self.overhead)
        us_per_tick = 1e6 / trace.header.ticks_per_second
        return [
            one.total * us_per_tick
            for thread in trace.threads
            for one in timed(trace, thread, costs)
            if one.span.kind == layout.RANGE and trace.name(one.span.op) == name
        ]

    def table(self, **arguments: Any) -> str:
        """``key_averages().table(...)``."""
        return self.key_averages().table(**arguments)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the timeline as Chrome trace JSON, for Perfetto and ``chrome://tracing``;
        compressed where the path ends with ``.gz``. RecorderError before the profile has ended;
        OSError."""
        from opscope import __version__
        from opscope.timeline import chrome

        trace = self._ended()
        source = chrome.Source(trace, f"python {trace.header.pid}", {}, self._thread_names)
        with chrome.opened(os.fspath(path)) as file:
            chrome.write(file, [source], {"opscope": __version__})


class _Allocated:
    """Bytes allocated within spans, given the spans inner ones first."""

    def __init__(self) -> None:
        self._within: dict[Span, int] = {}

    def of(self, span: Span) -> int:
        within = self._within.pop(span, 0) + span.allocated_bytes
        if within and span.parent is not None and not span.is_aside:
            self._within[span.parent] = self._within.get(span.parent, 0) + within
        return within


class _Sum:
    __slots__ = (
        "bytes",
        "count",
        "failed",
        "knows_bytes",
        "phases",
        "self_bytes",
        "self_total",
        "total",
    )

    def __init__(self, knows_bytes: bool) -> None:
        self.count = self.failed = self.bytes = self.self_bytes = 0
        self.total = self.self_total = 0.0
        self.phases: set[int] = set()
        self.knows_bytes = knows_bytes

    def add(self, one: Timed, within: int) -> None:
        span = one.span
        self.count += 1
        self.failed += bool(span.flags & layout.FAILED)
        self.total += one.total
        self.self_total += one.self_total
        self.bytes += within
        self.self_bytes += span.allocated_bytes
        self.knows_bytes |= within > 0
        self.phases.add(span.phase)


def _averages(sums: dict[tuple[str, Shape | None], _Sum], us_per_tick: float) -> Averages:
    rows = [
        Average(
            key=name,
            count=one.count,
            self_cpu_time_total=one.self_total * us_per_tick,
            cpu_time_total=one.total * us_per_tick,
            self_cpu_memory_usage=one.self_bytes if one.knows_bytes else None,
            cpu_memory_usage=one.bytes if one.knows_bytes else None,
            failed_count=one.failed,
            phases=tuple(layout.PHASES[phase] for phase in sorted(one.phases)),
            input_shapes=shapes,
        )
        for (name, shapes), one in sums.items()
    ]
    rows.sort(key=lambda row: row.self_cpu_time_total, reverse=True)
    return Averages(rows)


def _thread_names() -> dict[int, str]:
    """By the operating system's id: what Python calls its threads."""
    import threading

    return {
        thread.native_id: thread.name
        for thread in threading.enumerate()
        if thread.native_id is not None
    }
