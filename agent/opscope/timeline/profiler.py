"""`opscope.profile()`: every range of a block of the program, added up or as a timeline.

It covers all threads of the process. Times exclude the profiler's own cost (cost.py); the exported
timeline shows them as measured.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from opscope.errors import RecorderError
from opscope.timeline import layout
from opscope.timeline.averages import Average, Averages, Shape, time_text
from opscope.timeline.calibration import Measured, costs_for, measure, source_of
from opscope.timeline.cost import Timed, timed
from opscope.timeline.events import Event, events
from opscope.timeline.frameworks import attach_imported
from opscope.timeline.nesting import Span
from opscope.timeline.reader import Trace
from opscope.timeline.schedule import ProfilerAction
from opscope.timeline.stacks import Stack, Stacks, key_of
from opscope.timeline.taking import Take

_MIB = 1 << 20


class profile:  # noqa: N801 - PyTorch's name
    """Record every range within the block, on all threads.

    >>> with profile() as prof:
    ...     with record_function("tokenize"):
    ...         pass
    >>> prof.key_averages()[0].count
    1

    `schedule`: which steps to record (schedule.py); the program calls `step()` after each. Each
    recording starts anew, and `on_trace_ready` is called with this profile when one is complete.

    `with_stack`: also note the Python call site of each range, for `events()`, for
    `key_averages(group_by_stack_n=5)` and `export_stacks`. That costs 7 to 16
    microseconds for each range (a Xeon at rest, 1 and 30 frames), which count in the self time of
    the range around it.

    `record_shapes`: also record the shapes of each range's inputs (arrays of NumPy, PyTorch and the
    tensor core). `profile_memory`: whether tables show memory, which is always recorded where it
    is known: what operators of the tensor core, and of PyTorch on the CPU, allocate. torch.profiler
    subtracts what they free; these numbers do not. `buffer_mib`: memory limit, 1 to 1024; ranges
    beyond it are counted in `lost_count` and missing in all sums, and cause a warning. Only one
    profile runs at a time, and none while `opscope trace` takes a trace (RecorderError). A
    forked child records nothing.

    NumPy and PyTorch are visible if they were imported before the block, whether or not the program
    is attached; `OPSCOPE_ENABLED=0` and `OPSCOPE_BRIDGES` apply (frameworks.py).
    """

    def __init__(
        self,
        *,
        record_shapes: bool = False,
        profile_memory: bool = True,
        with_stack: bool = False,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], object] | None = None,
        buffer_mib: int = 64,
    ) -> None:
        size = buffer_mib * _MIB
        if not layout.LEAST_BYTES <= size <= layout.MOST_BYTES:
            raise ValueError(f"buffer_mib must be within 1 and 1024, not {buffer_mib!r}")
        self._size = size
        self._flags = layout.SHAPES if record_shapes else 0
        self._shows_memory = profile_memory
        self._with_stack = with_stack
        self._stacks: Stacks | None = None
        self._schedule = schedule
        self._on_trace_ready = on_trace_ready
        self.step_num = 0
        """Number of the current step; `step()` adds 1."""
        self._take: Take | None = None
        self._trace: Trace | None = None
        self._thread_names: dict[int, str] = {}
        self.overhead: dict[str, Measured] = {}
        """Measured cost of one recorded range in ns, by the source of the range."""

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begins, discarding an earlier profile; RecorderError on failure. With a schedule,
        recording begins with the first step that is to be recorded."""
        self.step_num = 0
        if self._action().records:
            self._record()

    def step(self) -> None:
        """Ends a step of the program and begins the next one."""
        ended = self._action()
        self.step_num += 1
        if ended is ProfilerAction.RECORD_AND_SAVE:
            self._save()
        if self._action().records and not self._is_recording():
            self._record()

    def stop(self) -> None:
        """Ends; the results are available from then on."""
        if self._is_recording():
            self._save()

    def _action(self) -> ProfilerAction:
        return ProfilerAction.RECORD if self._schedule is None else self._schedule(self.step_num)

    def _is_recording(self) -> bool:
        return self._take is not None and self._trace is None

    def _record(self) -> None:
        take = Take()
        attach_imported()
        self.overhead = measure(self._flags)
        # Before the trace, so that a range's own time begins after its stack was taken.
        stacks = Stacks(self._size // layout.RECORD.size) if self._with_stack else None
        if stacks is not None:
            stacks.start()
        try:
            take.start(self._size, self._flags)
        except BaseException:
            if stacks is not None:
                stacks.stop()
            raise
        self._take, self._trace, self._stacks = take, None, stacks

    def _save(self) -> None:
        assert self._take is not None
        self._take.stop()
        if self._stacks is not None:
            self._stacks.stop()
        self._thread_names = _thread_names()
        self._trace = self._take.trace()
        if self._trace.lost_count:
            import warnings

            warnings.warn(
                f"{self._trace.lost_count} ranges found no room in the profile and are not in it: "
                f"give it more, buffer_mib={min(self._size // _MIB * 4, 1024)}, or profile less",
                RuntimeWarning,
                stacklevel=4,
            )
        if self._on_trace_ready is not None:
            self._on_trace_ready(self)

    def _ended(self) -> Trace:
        if self._trace is None:
            state = "is still running" if self._is_recording() else "has recorded nothing yet"
            raise RecorderError(
                f"the profile {state}: read it after the with block, after stop(), or in "
                "on_trace_ready"
            )
        return self._trace

    @property
    def lost_count(self) -> int:
        """Number of ranges that found no room."""
        return self._ended().lost_count

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0
    ) -> Averages:
        """The ranges added up by operator, and optionally by input shapes, and by the innermost
        `group_by_stack_n` call sites.

        Raises RecorderError before the profile has ended, ValueError for `group_by_input_shape`
        without `record_shapes`, or `group_by_stack_n` without `with_stack`.
        """
        trace = self._ended()
        if group_by_input_shape and not self._flags & layout.SHAPES:
            raise ValueError("group_by_input_shape requires profile(record_shapes=True)")
        if group_by_stack_n and self._stacks is None:
            raise ValueError("group_by_stack_n requires profile(with_stack=True)")
        sums: dict[_Group, _Sum] = {}
        allocating = {"core"}  # sources whose allocations are seen
        costs = costs_for(trace, self.overhead)
        stacks = self._stacks.by_span(trace) if group_by_stack_n and self._stacks else {}
        for number, thread in enumerate(trace.threads):
            allocated = _Allocated()
            for one in timed(trace, thread, costs):
                within = allocated.of(one.span)
                if one.span.kind != layout.RANGE:
                    continue
                shapes = one.span.shapes if group_by_input_shape else None
                stack = stacks.get(key_of(number, one.span), ())[:group_by_stack_n]
                key = trace.name(one.span.op), shapes, stack
                known = sums.get(key)
                if known is None:
                    known = sums[key] = _Sum(source_of(trace, one.span))
                known.add(one, within)
                if one.span.allocated_bytes:
                    allocating.add(known.source)
        shown = allocating if self._shows_memory else None
        return _averages(sums, 1e6 / trace.header.ticks_per_second, shown)

    def events(self) -> list[Event]:
        """Each range that had ended, in the order of their starts; RecorderError before the profile
        has ended."""
        trace = self._ended()
        stacks = self._stacks.by_span(trace) if self._stacks else {}
        return events(trace, costs_for(trace, self.overhead), stacks)

    def export_stacks(
        self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total"
    ) -> None:
        """Write the call sites with the microseconds spent in ranges there, for flame graphs: a
        line for each stack, the outermost first, with the operator at its end.

        `metric`: `self_cpu_time_total` or `cpu_time_total`. Raises ValueError for another, or
        without `with_stack`; RecorderError before the profile has ended; OSError.
        """
        if metric not in ("self_cpu_time_total", "cpu_time_total"):
            raise ValueError(
                f"metric must be self_cpu_time_total or cpu_time_total, not {metric!r}"
            )
        if self._stacks is None:
            raise ValueError("export_stacks requires profile(with_stack=True)")
        sums: dict[str, float] = {}
        for event in self.events():
            frames = (*reversed(event.stack), event.name)
            line = ";".join(frame.replace(";", ",") for frame in frames)
            sums[line] = sums.get(line, 0.0) + getattr(event, metric)
        with open(path, "w") as file:
            file.writelines(f"{line} {round(us)}\n" for line, us in sums.items() if round(us))

    def __repr__(self) -> str:
        if self._trace is None:
            state = "recording" if self._is_recording() else "nothing recorded yet"
            return f"<opscope.profile: {state}>"
        rows = self.key_averages()
        calls, several = sum(row.count for row in rows), "s" * (len(rows) != 1)
        return (
            f"<opscope.profile: {calls:,} ranges of {len(rows):,} operator{several} in "
            f"{time_text(rows.self_cpu_time_total)}; table(), key_averages(), events() show them>"
        )

    def _repr_html_(self) -> str:
        """The table in a notebook; before the end, a line that says so."""
        if self._trace is None:
            state = "still recording" if self._is_recording() else "nothing recorded yet"
            return f"<p>opscope.profile: {state}</p>"
        return self.key_averages()._repr_html_()

    def each(self, name: str) -> list[float]:
        """The duration of each range of that operator in microseconds, in order of their ends."""
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
        """`key_averages().table(...)`."""
        return self.key_averages().table(**arguments)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the timeline as Chrome trace JSON, for Perfetto and `chrome://tracing`; compressed
        if the path ends with `.gz`. Raises RecorderError before the profile has ended, or
        OSError."""
        from opscope import __version__
        from opscope.timeline import chrome

        trace = self._ended()
        source = chrome.Source(trace, f"python {trace.header.pid}", {}, self._thread_names)
        with chrome.opened(os.fspath(path)) as file:
            chrome.write(file, [source], {"opscope": __version__})


_Group = tuple[str, Shape | None, Stack]


class _Allocated:
    """Bytes allocated within spans; spans must come inner ones first."""

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
        "phases",
        "self_bytes",
        "self_total",
        "source",
        "total",
    )

    def __init__(self, source: str) -> None:
        self.count = self.failed = self.bytes = self.self_bytes = 0
        self.total = self.self_total = 0.0
        self.phases: set[int] = set()
        self.source = source

    def add(self, one: Timed, within: int) -> None:
        span = one.span
        self.count += 1
        self.failed += bool(span.flags & layout.FAILED)
        self.total += one.total
        self.self_total += one.self_total
        self.bytes += within
        self.self_bytes += span.allocated_bytes
        self.phases.add(span.phase)


def _averages(
    sums: dict[_Group, _Sum], us_per_tick: float, allocating: set[str] | None
) -> Averages:
    """`allocating`: the sources whose memory is known; None: no memory is shown."""

    def known(one: _Sum, count: int) -> int | None:
        is_known = allocating is not None and (one.bytes > 0 or one.source in allocating)
        return count if is_known else None

    rows = [
        Average(
            key=name,
            count=one.count,
            self_cpu_time_total=one.self_total * us_per_tick,
            cpu_time_total=one.total * us_per_tick,
            self_cpu_memory_usage=known(one, one.self_bytes),
            cpu_memory_usage=known(one, one.bytes),
            failed_count=one.failed,
            phases=tuple(layout.PHASES[phase] for phase in sorted(one.phases)),
            input_shapes=shapes,
            stack=stack,
        )
        for (name, shapes, stack), one in sums.items()
    ]
    rows.sort(key=lambda row: row.self_cpu_time_total, reverse=True)
    return Averages(rows)


def _thread_names() -> dict[int, str]:
    """Python's names of its threads, by the operating system's id."""
    import threading

    return {
        thread.native_id: thread.name
        for thread in threading.enumerate()
        if thread.native_id is not None
    }
