"""``opscope record``: keeps in a file what processes do for a while, for ``opscope diff``."""

from __future__ import annotations

from dataclasses import replace

import click

from opscope import config
from opscope.agent import directories
from opscope.agent.recording import Selection, record


@click.command("record")
@click.argument("which", metavar="[SERVICE[@VERSION]]", required=False)
@click.option("-o", "--output", "path", required=True, help="The file to write.")
@click.option("--pid", "pids", type=int, multiple=True, help="Only this process; repeatable.")
@click.option(
    "--seconds", type=click.FloatRange(min=1), default=30.0, show_default=True, help="How long."
)
@click.option(
    "--slices",
    type=click.IntRange(min=5, max=1000),
    default=15,
    show_default=True,
    help="Into how many parts; more make a comparison surer.",
)
@click.option("--directory", "places", multiple=True, help="Where segments are; repeatable.")
def command(
    which: str | None,
    path: str,
    pids: tuple[int, ...],
    seconds: float,
    slices: int,
    places: tuple[str, ...],
) -> None:
    """Record what observed processes spend their time on, to compare it later.

    VERSION is the process's service.version, as OTEL_RESOURCE_ATTRIBUTES has it. The processes go
    on as they are; they are only read.
    """
    selection = replace(Selection.parse(which) if which else Selection(), pids=frozenset(pids))
    patterns = directories.exactly(places) or directories.patterns(config.load().directory)
    (found,) = record(patterns, [selection], slices=slices, slice_s=seconds / slices)
    found.save(path)
    processes = f"{found.processes} process{'' if found.processes == 1 else 'es'}"
    operators = f"{len(found.operators)} operator{'' if len(found.operators) == 1 else 's'}"
    click.echo(f"{path}: {selection}, {processes}, {operators}")
    if not found.operators:
        click.echo(
            "no operator was recorded in that time: they were idle, or sampled too rarely; "
            "give it more --seconds, or set them to sampling=1 meanwhile",
            err=True,
        )
