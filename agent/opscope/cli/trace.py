"""``opscope trace``: a timeline of running processes, as a file for Perfetto or chrome://tracing.

The taking is in agent/trace.py, the drawing in timeline/chrome.py.
"""

from __future__ import annotations

import os

import click

from opscope import __version__, config
from opscope.agent import control, directories, trace
from opscope.agent.control import Found
from opscope.errors import AgentError
from opscope.timeline import chrome, layout
from opscope.timeline.reader import Trace

_MIB = 1 << 20
_MOST_PROCESSES = 256
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
    required=True,
    help="The file to write; compressed where it ends with .gz.",
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
    path: str,
    buffer_mib: int,
    shapes: bool,
    places: tuple[str, ...],
) -> None:
    """Record every operator of running processes for some seconds, as one timeline.

    The processes go on; they are neither restarted nor stopped. Each shows its threads, what ran
    within what, labels, and arrows from forward to backward and from a fork to its task. Open the
    file at https://ui.perfetto.dev or in chrome://tracing. Ctrl-C ends it early.
    """
    if not pids and not services:
        raise click.UsageError(
            "which processes: give PIDs or --service NAME; opscope ps lists them"
        )
    patterns = directories.exactly(places) or directories.patterns(config.load().directory)
    processes = _chosen(control.find(patterns), pids, services)
    folder = os.path.dirname(os.path.abspath(path))
    if not os.access(folder, os.W_OK):
        raise AgentError(f"{path}: {folder} cannot be written to; name another file with -o")
    flags = layout.SHAPES if shapes else 0
    count = len(processes)
    click.echo(f"tracing {count} process{'es' * (count > 1)} for {seconds:g} s ...", err=True)
    taken = trace.take(processes, seconds, buffer_mib * _MIB, flags)
    sources = []
    for one in taken:
        if one.trace is None:
            click.echo(f"pid {one.found.pid}, {one.found.program}: {one.text}", err=True)
        else:
            sources.append(_source(one.found, one.trace))
    if not sources:
        raise AgentError("no trace was taken, for the reasons above")
    with chrome.opened(path) as file:
        ranges = chrome.write(file, sources, {"opscope": __version__, "seconds": seconds})
    lost = sum(source.trace.lost_count for source in sources)
    threads = sum(len(source.trace.threads) for source in sources)
    click.echo(
        f"{path}: {len(sources)} process{'es' * (len(sources) > 1)}, {threads} "
        f"thread{'s' * (threads > 1)}, {ranges:,} ranges, {lost:,} events lost"
    )
    if lost:
        click.echo(
            "a buffer was full: what came later is not there; ask for a larger --buffer, or for "
            "fewer --seconds",
            err=True,
        )


def _chosen(live: list[Found], pids: tuple[int, ...], services: tuple[str, ...]) -> list[Found]:
    """The live processes that were named; AgentError for a name without one."""
    for pid in pids:
        if not any(found.pid == pid for found in live):
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
    return chrome.Source(taken, title, facts)
