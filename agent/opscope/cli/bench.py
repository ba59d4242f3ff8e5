"""``opscope bench``: measure what the package costs and show it beside what is promised.

Prints; the measuring is in opscope/bench. A bound that is missed is said, but is no failure of the
command: the numbers are its result.
"""

import json
import sys
from collections.abc import Iterable

import click
from rich.console import Console
from rich.table import Table

from opscope import bench
from opscope.errors import OpscopeError

# Columns where the output is no terminal.
_FILE_WIDTH = 120
_JSON_KEYS = ("bench", "case", "value", "unit", "against", "bound", "rounds", "interval")
_VERDICTS = {True: "kept", False: "MISSED", None: ""}


def _known(context: click.Context, parameter: click.Parameter, names: tuple[str, ...]) -> list[str]:
    known = bench.names()
    for name in names:
        if name not in known:
            raise click.BadParameter(f"no bench {name!r}; there are {', '.join(known)}")
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
            "" if result.bound is None else f"{'≥≤'[not result.more_is_better]} {result.bound:g}",
            result.unit,
            result.against or "",
            _VERDICTS[result.kept],
            style="red" if result.kept is False else "",
        )
    return shown


def summary(results: Iterable[bench.Result]) -> str:
    """One line that says how many bounds hold, and names those that do not."""
    bounded = [result for result in results if result.kept is not None]
    missed = [f"{result.bench}.{result.case}" for result in bounded if not result.kept]
    if missed:
        return f"{len(missed)} of {len(bounded)} bounds missed: {', '.join(missed)}"
    return f"all {len(bounded)} bounds kept"


@click.command("bench")
@click.argument("names", nargs=-1, metavar="[NAME]...", callback=_known)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, as they come.")
@click.option("--rounds", type=click.IntRange(min=1), help="Rounds of each comparison.")
@click.option("--quick", is_flag=True, help="Fewer rounds and turns: a rough look.")
def command(names: list[str], as_json: bool, rounds: int | None, quick: bool) -> None:
    """Measure what opscope costs on this machine.

    Without a NAME, every bench runs. Values are medians over interleaved rounds; a ratio is to
    something measured in the same run. Missed bounds are marked; the exit code is 0 all the same.
    """
    effort = bench.Effort(rounds=rounds, quick=quick)
    results = []
    for name in names:
        click.echo(f"measuring {name} ...", err=True)
        try:
            for result in bench.measure(name, effort):
                results.append(result)
                if as_json:
                    click.echo(json.dumps({key: getattr(result, key) for key in _JSON_KEYS}))
        except OpscopeError as error:
            raise click.ClickException(f"{name}: {error}") from error
    if not as_json:
        Console(width=None if sys.stdout.isatty() else _FILE_WIDTH).print(table(results))
        click.echo(summary(results))
