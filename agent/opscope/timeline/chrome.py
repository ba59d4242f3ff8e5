"""Write traces as Chrome trace JSON, which Perfetto and chrome://tracing open.

The format is Google's "Trace Event Format" (JSON object format): times in microseconds since
`baseTimeNanoseconds`, with nanosecond precision. Each range is a complete event on its thread; a
range cut off by the end of the trace has a beginning but no end; ranges that overlap others are
asynchronous events, and a range with an unknown end is an instant. Arrows (flow events) lead from a
forward range to its backward range, and from a fork to the run of its task.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from gzip import GzipFile
from io import TextIOWrapper
from typing import IO, NamedTuple

from opscope.errors import OpscopeError
from opscope.timeline import layout
from opscope.timeline.clock import Clock, clocks_of
from opscope.timeline.nesting import Span, spans
from opscope.timeline.reader import Block, Record, Thread, Trace

_quote = json.encoder.encode_basestring_ascii


class Source(NamedTuple):
    """A trace and facts about its process."""

    trace: Trace
    title: str
    """Shown as the process's name."""
    facts: Mapping[str, object] = {}
    """For `otherData`: the program, versions, sampling."""
    thread_names: Mapping[int, str] = {}
    """Thread names by the operating system's id, if better known than in the trace."""
    pid: int = 0
    """The local pid; 0: the trace's pid, which is that of its pid namespace."""


@contextmanager
def opened(path: str) -> Iterator[IO[str]]:
    """The file to write a trace to; compressed if the path ends with `.gz`."""
    if path.endswith(".gz"):
        with (
            open(path, "wb") as raw,
            GzipFile("", "wb", 6, raw) as packed,
            TextIOWrapper(packed, "ascii") as file,
        ):
            yield file
    else:
        with open(path, "w", encoding="ascii", buffering=1 << 20) as file:
            yield file


def write(
    file: IO[str],
    sources: Sequence[Source],
    facts: Mapping[str, object],
    on_damage: Callable[[int, OpscopeError], None] | None = None,
) -> int:
    """Writes all traces into one timeline; returns the number of ranges.

    `facts` go into `otherData`, with those of the sources by process. If a trace turns out to be
    damaged, the rest of it is skipped, and `on_damage` gets its index and the error; without
    `on_damage`, raises OpscopeError with the file half written. Raises OSError.
    """
    drawing = _Drawing(sources, on_damage)
    file.write(f'{{"displayTimeUnit": "ns",\n"baseTimeNanoseconds": {drawing.base_ns},\n')
    file.write('"otherData": ')
    file.write(json.dumps({**facts, **drawing.facts()}))
    file.write(',\n"traceEvents": [\n')
    separator = ""
    for event in drawing.events():
        file.write(separator)
        file.write(event)
        separator = ",\n"
    file.write("\n]}\n")
    return drawing.range_count


class _Drawing:
    def __init__(
        self,
        sources: Sequence[Source],
        on_damage: Callable[[int, OpscopeError], None] | None,
    ) -> None:
        self._sources = sources
        self._on_damage = on_damage
        self._pids = _told_apart(source.pid or source.trace.header.pid for source in sources)
        self._clocks = clocks_of(source.trace.header for source in sources)
        # JSON readers parse numbers as doubles: too coarse for nanoseconds since 1970.
        self.base_ns = min(source.trace.header.anchor_unix_ns for source in sources)
        self._flow_count = 0
        self.range_count = 0

    def facts(self) -> dict[str, object]:
        """Facts about the traces, lost events first."""
        processes = []
        for source, pid, clock in zip(self._sources, self._pids, self._clocks, strict=True):
            header = source.trace.header
            processes.append(
                {
                    "pid": pid,
                    "name": source.title,
                    **source.facts,
                    "lost_events": source.trace.lost_count,
                    "lost_events_by_thread": {
                        str(thread.system_id): thread.lost_count
                        for thread in source.trace.threads
                        if thread.lost_count
                    },
                    "began_unix_ns": header.anchor_unix_ns,
                    "ended_unix_ns": header.end_anchor_unix_ns or None,
                    "is_whole": header.state == layout.CLOSED,
                    "duration_asked_s": header.duration_ns / 1e9,
                    "buffer_bytes": header.limit_bytes,
                    "buffer_used_bytes": layout.HEADER_BYTES + header.claimed_bytes,
                    "cost_of_a_range_ns": header.record_cost_ps / 1e3,
                    "clock": ("", "TSC", "CNTVCT", "CLOCK_MONOTONIC")[header.clock_source],
                    "ticks_per_second": clock.ticks * 1e9 / clock.ns,
                }
            )
        return {
            "lost_events": sum(source.trace.lost_count for source in self._sources),
            "sampling": "every range between the start and the end of the trace",
            "cut": "Ranges that were open at the start are not here; ranges open at the end begin "
            "and have no end, or are instants where their end was not seen. Nothing is made up.",
            "processes": processes,
        }

    def events(self) -> Iterator[str]:
        for index, (source, clock) in enumerate(zip(self._sources, self._clocks, strict=True)):
            try:
                yield from self._of_process(index, source, clock)
            except OpscopeError as error:
                if self._on_damage is None:
                    raise
                self._on_damage(index, error)

    def _since(self, clock: Clock, ticks: int) -> int:
        return clock.unix_ns(ticks) - self.base_ns

    def _of_process(self, index: int, source: Source, clock: Clock) -> Iterator[str]:
        trace, pid = source.trace, self._pids[index]
        yield _meta("process_name", pid, 0, {"name": source.title})
        yield _meta("process_sort_index", pid, 0, {"sort_index": index})
        for thread in trace.threads:
            name = source.thread_names.get(thread.system_id) or thread.name or "thread"
            yield _meta("thread_name", pid, thread.system_id, {"name": name})
            yield _meta(
                "thread_sort_index", pid, thread.system_id, {"sort_index": thread.thread_id}
            )
            if thread.lost_count:
                text = f"{thread.lost_count} events lost: the buffer was full"
                last = self._since(clock, _last_ticks(trace, thread))
                yield _event("i", text, "opscope", pid, thread.system_id, last, ',"s":"t"')
        starts = _Starts(trace)
        for thread in trace.threads:
            for span in spans(trace, thread):
                yield from self._of_span(trace, clock, pid, thread, span)
                yield from self._arrows(clock, pid, thread, span, starts)

    def _of_span(
        self, trace: Trace, clock: Clock, pid: int, thread: Thread, span: Span
    ) -> Iterator[str]:
        tid = thread.system_id
        start = self._since(clock, span.start)
        name, category, args = _about(trace, span)
        self.range_count += span.kind == layout.RANGE
        if span.is_lost:
            yield _event("i", name, category, pid, tid, start, ',"s":"t"' + args)
        elif span.end is None:
            yield _event("B", name, category, pid, tid, start, args)
        elif span.is_aside:
            self._flow_count += 1
            place = f',"id":"{self._flow_count:#x}"'
            yield _event("b", name, "async", pid, tid, start, place + args)
            yield _event("e", name, "async", pid, tid, self._since(clock, span.end), place)
        else:
            duration = self._since(clock, span.end) - start
            yield _event("X", name, category, pid, tid, start, f',"dur":{_us(duration)}{args}')

    def _arrows(
        self, clock: Clock, pid: int, thread: Thread, span: Span, starts: _Starts
    ) -> Iterator[str]:
        found = starts.of(thread, span)
        if found is None:
            return
        kind, tid, ticks = found
        self._flow_count += 1
        here = f',"id":{self._flow_count}'
        yield _event("s", kind, kind, pid, tid, self._since(clock, ticks), here)
        at = self._since(clock, span.start)
        yield _event("f", kind, kind, pid, thread.system_id, at, f'{here},"bp":"e"')


FORWARD_TO_BACKWARD = "fwdbwd"
FORK_TO_TASK = "fork"


class _Starts:
    """The starts of arrows: forward ranges by thread and sequence number, forks by their task.

    The last forward range with a number created the node: a node's creation increments the number,
    and earlier ranges only show the next number (PyTorch's rule, also in its profiler).
    """

    def __init__(self, trace: Trace) -> None:
        self._forward: dict[tuple[int, int], tuple[int, int]] = {}
        self._forks: dict[int, tuple[int, int]] = {}
        for thread in trace.threads:
            for record in trace.records(thread):
                if isinstance(record, Block):
                    continue
                if record.kind == layout.FORK:
                    self._forks[record.number] = (thread.system_id, record.start)
                elif record.kind == layout.RANGE and record.number >= 0 and _is_forward(record):
                    key = (thread.thread_id, record.number)
                    self._forward[key] = (thread.system_id, record.start)

    def of(self, thread: Thread, span: Span) -> tuple[str, int, int] | None:
        """The kind, thread and ticks of the arrow's start; None if the span ends no arrow."""
        if span.kind == layout.TASK:
            begin = self._forks.pop(span.number, None)
            return begin and (FORK_TO_TASK, *begin)
        if span.kind != layout.RANGE or not span.forward_thread_id or span.is_aside:
            return None
        key = (span.forward_thread_id, span.number)
        begin = self._forward.get(key)
        if begin is None or begin[1] > span.start:
            return None
        del self._forward[key]  # the outermost backward range gets the arrow
        return FORWARD_TO_BACKWARD, *begin


def _is_forward(record: Record) -> bool:
    return not record.forward_thread_id and not record.flags & _NO_FORWARD


_NO_FORWARD = layout.BACKWARD | layout.ASYNC | layout.LOST


def _last_ticks(trace: Trace, thread: Thread) -> int:
    last = thread.blocks[-1].ready_ticks
    for span in spans(trace, thread):
        last = max(last, span.start)
    return last


def _about(trace: Trace, span: Span) -> tuple[str, str, str]:
    """Name, category and arguments."""
    if span.kind == layout.FORK:
        return "opscope::fork", "fork", f',"args":{{"task":{span.number}}}'
    if span.kind == layout.TASK:
        number = f',"args":{{"task":{span.number}}}' if span.number else ""
        return "opscope::task", "task", number
    args: dict[str, object] = dict(span.labels)
    named = trace.names.get(span.op)
    if named is not None and named.overload:
        args["overload"] = named.overload
    if span.number >= 0:
        args["Sequence number"] = span.number
    if span.forward_thread_id:
        args["Fwd thread id"] = span.forward_thread_id
    if span.shapes is not None:
        args["Input Dims"] = [list(shape) if shape is not None else [] for shape in span.shapes]
        if span.flags & layout.CUT:
            args["Input Dims are cut"] = True
    if span.flags & layout.FAILED:
        args["failed"] = True
    if span.is_aside:
        args["phase"] = layout.PHASES[span.phase]
    if span.is_lost:
        args["cut"] = "its end was not seen"
    elif span.end is None:
        args["cut"] = "open when the trace ended"
    text = f',"args":{json.dumps(args)}' if args else ""
    return trace.name(span.op), layout.PHASES[span.phase], text


def _told_apart(pids: Iterable[int]) -> list[int]:
    """The pids, with each duplicate replaced by a pid that no process has: viewers would draw the
    first processes of two containers as one."""
    found: list[int] = []
    for pid in pids:
        found.append(pid if pid not in found else max(_LARGEST_PID, *found) + 1)
    return found


_LARGEST_PID = 1 << 22


def _us(ns: int) -> str:
    """Microseconds, exactly."""
    sign, ns = ("-", -ns) if ns < 0 else ("", ns)
    return f"{sign}{ns // 1000}.{ns % 1000:03}"


def _event(ph: str, name: str, category: str, pid: int, tid: int, ns: int, rest: str) -> str:
    return (
        f'{{"ph":"{ph}","name":{_quote(name)},"cat":"{category}","pid":{pid},"tid":{tid},'
        f'"ts":{_us(ns)}{rest}}}'
    )


def _meta(name: str, pid: int, tid: int, args: Mapping[str, object]) -> str:
    return json.dumps({"ph": "M", "name": name, "pid": pid, "tid": tid, "args": args})
