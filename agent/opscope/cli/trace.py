"""``opscope trace``: a timeline of running processes, as a file for Perfetto or chrome://tracing.

On demand its slow ranges become spans of OpenTelemetry's, too. The taking is in agent/trace.py, the
drawing in timeline/chrome.py, the sending of spans in opscope_exporters/spans.py.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from opscope import __version__, config
from opscope.agent import control, directories, trace
from opscope.agent.control import Found
from opscope.errors import AgentError
from opscope.record.wish import time_ns
from opscope.timeline import chrome, layout, slow
from opscope.timeline.reader import Trace

if TYPE_CHECKING:
    from opscope_exporters.spans import SpanSender

_MIB = 1 << 20
_MOST_PROCESSES = 256
# What a receiver of spans is asked to take at a time; a trace can have millions of ranges.
_MOST_SPANS = 10_000
# What a process noted of itself, as far as a reader of its timeline wants it.
_NOTES = ("service.name", "service.version", "python", "opscope", "numpy", "torch")
_RANKS = ("rank", "local_rank", "world_size")


@click.command("trace")
@click.argument("pids", type=int, nargs=-1, metavar="[PID]...")
@click.option("--service", "services", multiple=True, help="All processes of it; repeatable.")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.001, max=3600),
    default=5.0,
    show_default=True,
    help="How long.",
)
@click.option(
    "-o",
    "--output",
    "path",
    type=click.Path(dir_okay=False, writable=True),
    help="The file to write; compressed where it ends with .gz. Needed without --spans.",
)
@click.option(
    "--spans",
    "with_spans",
    is_flag=True,
    help="Send slow ranges as OpenTelemetry spans, under the span that was active.",
)
@click.option(
    "--slower",
    metavar="TIME",
    help="With --spans: how long a range takes that is slow, like 500us or 2s; default 10ms.",
)
@click.option(
    "--buffer",
    "buffer_mib",
    type=click.IntRange(1, 1024),
    default=64,
    show_default=True,
    help="MiB of shared memory that each process may fill; about 40,000 ranges in one.",
)
@click.option("--shapes", is_flag=True, help="With the shapes of inputs; makes ranges dearer.")
@click.option("--directory", "places", multiple=True, help="Where segments are; repeatable.")
def command(
    pids: tuple[int, ...],
    services: tuple[str, ...],
    seconds: float,
    path: str | None,
    with_spans: bool,
    slower: str | None,
    buffer_mib: int,
    shapes: bool,
    places: tuple[str, ...],
) -> None:
    """Record every operator of running processes for some seconds, as one timeline.

    The processes go on; they are neither restarted nor stopped. Each shows its threads, what ran
    within what, labels, and arrows from forward to backward and from a fork to its task. Open the
    file at https://ui.perfetto.dev or in chrome://tracing. Ctrl-C ends it early.

    With --spans each range that is slow and ran under an active span of OpenTelemetry's becomes a
    span under it, sent from here, by the exporter that OTEL_* variables say (by default OTLP over
    HTTP to localhost:4318): send them to where the program's own spans go. The program must have
    been started with OTEL_PYTHON_CONTEXT=opscope, which makes the active span known.
    """
    if not pids and not services:
        raise click.UsageError(
            "which processes: give PIDs or --service NAME; opscope ps lists them"
        )
    if path is None and not with_spans:
        raise click.UsageError("what to make of it: give -o FILE, or --spans, or both")
    least_ns = _least_ns(slower, with_spans)
    patterns = directories.exactly(places) or directories.patterns(config.load().directory)
    processes = _chosen(control.find(patterns), pids, services)
    if path is not None:
        folder = os.path.dirname(os.path.abspath(path))
        if not os.access(folder, os.W_OK):
            raise AgentError(f"{path}: {folder} cannot be written to; name another file with -o")
    # Before anything is recorded, as it may not be possible.
    sender = _sender() if with_spans else None
    flags = layout.SHAPES if shapes else 0
    count = len(processes)
    click.echo(f"tracing {count} process{'es' * (count > 1)} for {seconds:g} s ...", err=True)
    taken = trace.take(processes, seconds, buffer_mib * _MIB, flags)
    sources, of_sources = [], []
    for one in taken:
        if one.trace is None:
            click.echo(f"pid {one.found.pid}, {one.found.program}: {one.text}", err=True)
        else:
            sources.append(_source(one.found, one.trace))
            of_sources.append(one.found)
    if not sources:
        raise AgentError("no trace was taken, for the reasons above")
    if path is not None:
        _write(path, sources, seconds)
    if sender is not None:
        _send(sender, sources, of_sources, least_ns)
    lost = sum(source.trace.lost_count for source in sources)
    if lost:
        click.echo(
            f"{lost:,} events lost: a buffer was full, what came later is not there; ask for a "
            "larger --buffer, or for fewer --seconds",
            err=True,
        )


def _write(path: str, sources: Sequence[chrome.Source], seconds: float) -> None:
    with chrome.opened(path) as file:
        ranges = chrome.write(file, sources, {"opscope": __version__, "seconds": seconds})
    lost = sum(source.trace.lost_count for source in sources)
    threads = sum(len(source.trace.threads) for source in sources)
    click.echo(
        f"{path}: {len(sources)} process{'es' * (len(sources) > 1)}, {threads} "
        f"thread{'s' * (threads > 1)}, {ranges:,} ranges, {lost:,} events lost"
    )


def _least_ns(slower: str | None, with_spans: bool) -> int:
    if slower is not None and not with_spans:
        raise click.UsageError("--slower says what --spans sends; give --spans, too")
    least_ns = time_ns(slower or "10ms")
    if least_ns is None or least_ns < 0:
        raise click.UsageError(f"--slower {slower}: must be a time like 500us, 10ms or 2s")
    return least_ns


def _sender() -> SpanSender:
    # Imports OpenTelemetry's SDK, which nothing else here needs.
    from opscope_exporters.spans import SpanSender

    return SpanSender()


def _send(
    sender: SpanSender, sources: Sequence[chrome.Source], of: Sequence[Found], least_ns: int
) -> None:
    """Sends what is slow, and says what of it could not be."""
    from opscope_exporters.spans import Origin

    found = slow.find([source.trace for source in sources], least_ns, _MOST_SPANS)
    origins = [Origin(one.service, one.pid, one.notes) for one in of]
    try:
        sent = sender.send(found.ranges, origins)
    finally:
        sender.close()
    traces = len({one.trace_id for one in found.ranges})
    # Not to standard output, which is where OTEL_TRACES_EXPORTER=console writes.
    click.echo(
        f"{sent.endpoint}: {sent.taken_count:,} span{'s' * (sent.taken_count != 1)} in {traces:,} "
        f"trace{'s' * (traces != 1)}",
        err=True,
    )
    for count, what in (
        (sent.rejected_count, f"that the receiver did not take: {sent.why}"),
        (found.left_out_count, f"shorter than the {_MOST_SPANS:,} sent; ask for a longer --slower"),
        (found.endless_count, "still open when the trace ended; ask for more --seconds"),
        (found.outside_count, f"under no active span{_HOW_TO * (not traces)}"),
    ):
        if count:
            click.echo(f"not sent: {count:,} slow range{'s' * (count > 1)} {what}", err=True)


_HOW_TO = "; a program says which one is active if it is started with OTEL_PYTHON_CONTEXT=opscope"


def _chosen(live: list[Found], pids: tuple[int, ...], services: tuple[str, ...]) -> list[Found]:
    """The live processes that were named; AgentError for a name without one."""
    for pid in pids:
        if not control.by_pid(live, pid):
            raise AgentError(
                f"no live process {pid} is observed here; `opscope ps` says which are, and why not"
            )
    for service in services:
        if not any(found.service == service for found in live):
            names = sorted({found.service for found in live})
            known = f"there are {', '.join(names)}" if names else "no process is observed here"
            raise AgentError(f"no live process of the service {service!r}; {known}")
    chosen = [found for found in live if found.pid in pids or found.service in services]
    if len(chosen) > _MOST_PROCESSES:
        raise AgentError(
            f"{len(chosen)} processes are too many for one file, at most {_MOST_PROCESSES}; name "
            "some by their PIDs"
        )
    return chosen


def _source(found: Found, taken: Trace) -> chrome.Source:
    notes = found.notes
    ranks = [f"{key} {notes[key]}" for key in _RANKS[:1] if key in notes]
    title = " ".join([found.service, *ranks])
    header = found.header
    facts: dict[str, object] = {
        "program": found.program,
        **{key: notes[key] for key in (*_NOTES, *_RANKS) if key in notes},
        "recorder": {
            "sampling_prob": header.sampling_prob,
            "window_ms": header.window_ns / 1e6,
            "period_ms": header.period_ns / 1e6,
        },
    }
    return chrome.Source(taken, title, facts, pid=found.pid)
