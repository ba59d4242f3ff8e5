"""`opscope record`: record the operators of processes into a file, for `opscope diff`."""

from __future__ import annotations

from dataclasses import replace

import click

from opscope import config
from opscope.cli._numbers import PID, duration
from opscope.cli._shared_options import DIRECTORY
from opscope.segments import directories


@click.command("record", short_help="Record operator times, for `opscope diff`.")
@click.argument("which", metavar="[SERVICE[@VERSION]]", required=False)
@click.option("-o", "--output", "path", metavar="FILE", required=True, help="File to write.")
@click.option("--pid", "pids", type=PID, multiple=True, help="Only this process; repeatable.")
@click.option(
    "--seconds", type=duration(1), default=30.0, show_default=True, help="How long to record."
)
@click.option(
    "--slices",
    type=click.IntRange(min=5, max=1000),
    default=15,
    show_default=True,
    help="Parts to split the recording into; more make `opscope diff` more precise.",
)
@DIRECTORY
def command(
    which: str | None,
    path: str,
    pids: tuple[int, ...],
    seconds: float,
    slices: int,
    places: tuple[str, ...],
) -> None:
    """Record the operator times of observed processes, for `opscope diff`.

    VERSION is service.version in OTEL_RESOURCE_ATTRIBUTES. Only reads: the processes continue
    undisturbed.
    """
    from opscope.reports.recording import Selection, record

    selection = replace(Selection.parse(which) if which else Selection(), pids=frozenset(pids))
    patterns = directories.exactly(places) or directories.patterns(config.load().directory)
    (found,) = record(patterns, [selection], slices=slices, slice_s=seconds / slices)
    found.save(path)
    processes = f"{found.processes} process{'' if found.processes == 1 else 'es'}"
    operators = f"{len(found.operators)} operator{'' if len(found.operators) == 1 else 's'}"
    click.echo(f"{path}: {selection}, {processes}, {operators}")
    if not found.operators:
        click.echo(
            "no operator was recorded: the processes were idle, or sampled too rarely; record for "
            "more --seconds, or set them to sampling=1 first (see `opscope set`)",
            err=True,
        )
