"""`opscope bench`: measure the costs of the package, and compare them with their bounds.

opscope/bench measures; this prints. A missed bound is marked, but does not fail the command: the
numbers are its result.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table

from opscope.cli._numbers import duration
from opscope.errors import OpscopeError

if TYPE_CHECKING:
    from opscope import bench

# Columns if the output is no terminal.
_FILE_WIDTH = 120
_JSON_KEYS = ("bench", "case", "value", "unit", "against", "bound", "rounds", "interval")
_VERDICTS = {True: "kept", False: "MISSED", None: ""}


def _known(context: click.Context, parameter: click.Parameter, names: tuple[str, ...]) -> list[str]:
    from opscope import bench

    known = bench.names()
    for name in names:
        if name not in known:
            raise click.BadParameter(f"no bench {name!r}; known: {', '.join(known)}")
    return list(dict.fromkeys(names)) or known


def table(results: Iterable[bench.Result]) -> Table:
    """The results as a table for people."""
    shown = Table("bench", "case", box=None, pad_edge=False, header_style="bold")
    for heading in ("value", "95 %", "bound"):
        shown.add_column(heading, justify="right")
    for heading in ("unit", "against", "verdict"):
        shown.add_column(heading)
    for result in results:
        shown.add_row(
            result.bench,
            result.case,
            f"{result.value:.3f}",
            "{:.3f} to {:.3f}".format(*result.interval) if result.interval is not None else "",
            _bound(result),
            result.unit,
            result.against or "",
            _VERDICTS[result.kept],
            style="red" if result.kept is False else "",
        )
    return shown


def _bound(result: bench.Result) -> str:
    if result.bound is None:
        return ""
    if isinstance(result.bound, tuple):
        return "{:g} to {:g}".format(*result.bound)
    return f"{'≥≤'[not result.more_is_better]} {result.bound:g}"


def _json(result: bench.Result) -> str:
    told = {key: getattr(result, key) for key in _JSON_KEYS}
    return json.dumps(told if result.detail is None else told | {"detail": result.detail})


def summary(results: Iterable[bench.Result]) -> str:
    """One line with the number of bounds kept, or the names of missed ones."""
    bounded = [result for result in results if result.kept is not None]
    missed = [f"{result.bench}.{result.case}" for result in bounded if not result.kept]
    if missed:
        return f"{len(missed)} of {len(bounded)} bounds missed: {', '.join(missed)}"
    return f"all {len(bounded)} bounds kept"


@click.command("bench", short_help="Measure what opscope costs, and how accurate it is.")
@click.argument("names", nargs=-1, metavar="[NAME]...", callback=_known)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object per line, as results come."
)
@click.option("--rounds", type=click.IntRange(min=1), help="Rounds of each comparison.")
@click.option("--quick", is_flag=True, help="Fewer rounds and iterations: a rough estimate.")
@click.option(
    "--seconds",
    type=duration(0, min_open=True),
    help="How long the bench truth observes each program.",
)
@click.option(
    "--only", metavar="PATTERN", help="Only cases whose names match; * and ? are wildcards."
)
def command(
    names: list[str],
    as_json: bool,
    rounds: int | None,
    quick: bool,
    seconds: float | None,
    only: str | None,
) -> None:
    """Measure what opscope costs on this machine, and how accurate its estimates are.

    Without a NAME, runs every bench, which takes more than an hour, most of it for truth. Values
    are medians over interleaved rounds; a ratio compares two measurements of the same run. The
    table marks missed bounds; the exit status is 0 even then. It is 1 if a bench could not be
    measured; the others are.

    The bench serving needs h2load (Debian: nghttp2-client), Flask for its cases vs_flask. There,
    "one by one" is the same server, client, concurrency and model with batches off.
    """
    from opscope import bench

    effort = bench.Effort(rounds, quick, seconds, only)
    results = []
    failed = []
    for name in names:
        click.echo(f"measuring {name} ...", err=True)
        try:
            for result in bench.measure(name, effort):
                results.append(result)
                if as_json:
                    click.echo(_json(result))
        except OpscopeError as error:
            # The others have figures all the same.
            failed.append(f"{name}: {error}")
    if not as_json and results:
        Console(width=None if sys.stdout.isatty() else _FILE_WIDTH).print(table(results))
        click.echo(summary(results))
    if failed:
        raise click.ClickException("\n".join(failed))
