"""`opscope trace`: a timeline of running processes, as a file for Perfetto or chrome://tracing.

With --spans, its slow ranges become OpenTelemetry spans too. control/trace.py takes the trace,
timeline/chrome.py writes the file, opscope_exporters/otlp/spans.py sends the spans.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from opscope import __version__, config, extras
from opscope.cli._numbers import PID, duration
from opscope.cli._shared_options import DIRECTORY
from opscope.errors import AgentError, FleetError
from opscope.record.settings_change import time_ns
from opscope.segments import directories

if TYPE_CHECKING:
    from opscope.control.control_block import FoundProcess
    from opscope.timeline import chrome
    from opscope_exporters.otlp.spans import SpanSender

_MIB = 1 << 20
_MOST_PROCESSES = 256
# Largest number of spans sent to a receiver at once; a trace can have millions of ranges.
_MOST_SPANS = 10_000


@click.command("trace", short_help="Record a timeline of running processes.")
@click.argument("pids", type=PID, nargs=-1, metavar="[PID]...")
@click.option(
    "--service",
    "services",
    multiple=True,
    metavar="GLOB",
    help="All processes of services that match; repeatable.",
)
@click.option(
    "--seconds",
    type=duration(0.001, 3600),
    default=5.0,
    show_default=True,
    help="How long to record.",
)
@click.option(
    "-o",
    "--output",
    "path",
    type=click.Path(dir_okay=False, writable=True),
    help="File to write; compressed if its name ends in .gz. Required without --spans.",
)
@click.option(
    "--spans",
    "with_spans",
    is_flag=True,
    help="Send slow ranges as OpenTelemetry spans, as children of the active span.",
)
@click.option(
    "--slower",
    metavar="TIME",
    help="With --spans: least duration of a slow range, like 500us or 2s; default 10ms.",
)
@click.option(
    "--buffer",
    "buffer_mib",
    type=click.IntRange(1, 1024),
    default=64,
    show_default=True,
    help="MiB of shared memory for each process; 1 MiB holds about 40,000 ranges.",
)
@click.option(
    "--shapes", is_flag=True, help="Record the shapes of inputs; each range then costs more."
)
@click.option(
    "--annotate",
    "grafana",
    metavar="URL",
    help="Mark the recorded time on the graphs of the Grafana at URL; its token is GRAFANA_TOKEN.",
)
@DIRECTORY
def command(
    pids: tuple[int, ...],
    services: tuple[str, ...],
    seconds: float,
    path: str | None,
    with_spans: bool,
    slower: str | None,
    buffer_mib: int,
    shapes: bool,
    grafana: str | None,
    places: tuple[str, ...],
) -> None:
    """Record every operator of running processes for some seconds, as one timeline.

    Does not restart or stop the processes. The timeline shows threads, nested ranges, labels, and
    arrows from forward to backward operators and from a fork to its task. Open the file at
    https://ui.perfetto.dev or in chrome://tracing. Ctrl-C ends the recording early.

    With --spans, sends each slow range that ran under an active OpenTelemetry span as a child of
    that span. This command sends it, with the exporter that the OTEL_* variables select (by default
    OTLP over HTTP to localhost:4318); choose the receiver of the program's own spans. The program
    must have been started with OTEL_PYTHON_CONTEXT=opscope, which makes its active span known.
    """
    from opscope.control import control_block, trace
    from opscope.control.trace_source import source_of
    from opscope.timeline import layout

    if not pids and not services:
        raise click.UsageError("select processes: PIDs or --service GLOB; `opscope ps` lists them")
    if path is None and not with_spans:
        raise click.UsageError("select an output: -o FILE, --spans, or both")
    least_ns = _least_ns(slower, with_spans)
    patterns = directories.exactly(places) or directories.patterns(config.load().directory)
    problems: list[str] = []
    live = control_block.find(patterns, problems)
    for problem in problems:
        click.echo(problem, err=True)
    processes = _chosen(live, pids, services)
    if path is not None:
        folder = os.path.dirname(os.path.abspath(path))
        if not os.access(folder, os.W_OK):
            raise AgentError(f"{path}: cannot write to {folder}; choose another file with -o")
    # Before the recording, since it may fail.
    sender = _sender() if with_spans else None
    flags = layout.SHAPES if shapes else 0
    count = len(processes)
    click.echo(f"tracing {count} process{'es' * (count > 1)} for {seconds:g} s ...", err=True)
    began = time.time()
    taken = trace.take(processes, seconds, buffer_mib * _MIB, flags)
    sources, of_sources = [], []
    for one in taken:
        if one.trace is None:
            click.echo(f"pid {one.found.pid}, {one.found.program}: {one.text}", err=True)
        else:
            sources.append(source_of(one.found, one.trace))
            of_sources.append(one.found)
    if not sources:
        raise AgentError("no trace was recorded, for the reasons above")
    span_ms = round(began * 1000), round(time.time() * 1000)
    if path is not None:
        _write(path, sources, seconds)
    if grafana is not None:
        services_seen = sorted({source.service for source in of_sources})
        _annotate(grafana, services_seen, span_ms, path)
    if sender is not None:
        _send(sender, sources, of_sources, least_ns)
    lost = sum(source.trace.lost_count for source in sources)
    if lost:
        click.echo(
            f"{lost:,} events lost: a buffer was full, and later events are missing; use a larger "
            "--buffer or fewer --seconds",
            err=True,
        )


def _annotate(
    url: str, services: Sequence[str], span_ms: tuple[int, int], path: str | None
) -> None:
    """The trace is there, whether Grafana answers or not."""
    from opscope.fleet.annotation import CAPTURE, Annotation, post

    tags = [CAPTURE, *(f"service:{service}" for service in services)]
    text = " ".join(["trace of", ", ".join(services), *([os.path.basename(path)] if path else [])])
    try:
        post(
            url, Annotation(text, tags, *span_ms), token=os.environ.get("GRAFANA_TOKEN", "").strip()
        )
    except FleetError as error:
        click.echo(f"not annotated: {error}", err=True)


def _write(path: str, sources: Sequence[chrome.Source], seconds: float) -> None:
    from opscope.timeline import chrome

    with chrome.opened(path) as file:
        facts = {"opscope": __version__, "seconds": seconds}
        ranges = chrome.write(file, sources, facts, lambda *damage: _say_damage(sources, *damage))
    lost = sum(source.trace.lost_count for source in sources)
    threads = sum(len(source.trace.threads) for source in sources)
    click.echo(
        f"{path}: {len(sources)} process{'es' * (len(sources) > 1)}, {threads} "
        f"thread{'s' * (threads > 1)}, {ranges:,} ranges, {lost:,} events lost"
    )


def _say_damage(sources: Sequence[chrome.Source], index: int, error: object) -> None:
    click.echo(
        f"{sources[index].title}: only the beginning of its trace is readable: {error}", err=True
    )


def _least_ns(slower: str | None, with_spans: bool) -> int:
    if slower is not None and not with_spans:
        raise click.UsageError("--slower requires --spans")
    least_ns = time_ns(slower or "10ms")
    if least_ns is None or least_ns < 0:
        raise click.UsageError(f"--slower {slower}: must be a time like 500us, 10ms or 2s")
    return least_ns


def _sender() -> SpanSender:
    # Imports OpenTelemetry's SDK, which no other part of this command needs.
    with extras.needed("opscope trace --spans", "otlp"):
        from opscope_exporters.otlp.spans import SpanSender

        return SpanSender()


def _send(
    sender: SpanSender, sources: Sequence[chrome.Source], of: Sequence[FoundProcess], least_ns: int
) -> None:
    """Sends the slow ranges, and reports those that were not sent."""
    from opscope.timeline import slow
    from opscope_exporters.otlp.spans import Origin

    found = slow.find([source.trace for source in sources], least_ns, _MOST_SPANS)
    for index, error in found.damaged.items():
        _say_damage(sources, index, error)
    origins = [Origin(one.service, one.pid, one.notes) for one in of]
    try:
        sent = sender.send(found.ranges, origins)
    finally:
        sender.close()
    traces = len({one.trace_id for one in found.ranges})
    # Not to standard output: OTEL_TRACES_EXPORTER=console writes there.
    click.echo(
        f"{sent.endpoint}: {sent.taken_count:,} span{'s' * (sent.taken_count != 1)} in {traces:,} "
        f"trace{'s' * (traces != 1)}",
        err=True,
    )
    for count, what in (
        (sent.rejected_count, f"that the receiver rejected: {sent.why}"),
        (found.left_out_count, f"shorter than the {_MOST_SPANS:,} sent; raise --slower"),
        (found.endless_count, "still open when the trace ended; use more --seconds"),
        (found.outside_count, f"under no active span{_HOW_TO * (not traces)}"),
    ):
        if count:
            click.echo(f"not sent: {count:,} slow range{'s' * (count > 1)} {what}", err=True)


_HOW_TO = "; start the program with OTEL_PYTHON_CONTEXT=opscope to make its active span known"


def _chosen(
    live: list[FoundProcess], pids: tuple[int, ...], services: tuple[str, ...]
) -> list[FoundProcess]:
    """The live processes selected; AgentError for a pid or glob without one."""
    from opscope.attachment.settings_file import matches
    from opscope.control import control_block

    def is_of(found: FoundProcess, service: str) -> bool:
        """A name may have brackets, which a glob reads otherwise."""
        return found.service == service or matches(found.service, service)

    for pid in pids:
        if not control_block.by_pid(live, pid):
            raise AgentError(
                f"pid {pid}: no such observed process; `opscope ps` lists them, and why others are "
                "not observed"
            )
    for service in services:
        if not any(is_of(found, service) for found in live):
            names = sorted({found.service for found in live})
            known = f"known: {', '.join(names)}" if names else "no process is observed here"
            raise AgentError(f"no live process of the service {service!r}; {known}")
    chosen = [
        found
        for found in live
        if found.pid in pids or any(is_of(found, service) for service in services)
    ]
    if len(chosen) > _MOST_PROCESSES:
        raise AgentError(
            f"{len(chosen)} processes are too many for one file (at most {_MOST_PROCESSES}); "
            "select some by PID"
        )
    return chosen
