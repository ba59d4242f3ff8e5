"""`opscope top`: a live table of operators, read from the segments of this host.

It only reads: it neither adds up nor removes segments of ended processes. reports/view.py defines
the numbers, reports/table.py the layout.
"""

from __future__ import annotations

import json
import time
from typing import Any, NamedTuple

import click
from rich.console import Console, RenderableType
from rich.live import Live

from opscope import config
from opscope.cli._numbers import PID, duration
from opscope.cli._shared_options import DIRECTORY
from opscope.host.host import Host
from opscope.host.snapshot import Snapshot
from opscope.reports.table import screen
from opscope.reports.view import GROUPINGS, SORTS, View, view
from opscope.segments import directories

_SERIES_LIMIT = 20_000
_ROWS_IN_A_PIPE = 25
_LINES_AROUND = 8


class _Options(NamedTuple):
    by: str
    sort: str
    limit: int | None

    def draw(self, now: Snapshot, shown: View, console: Console) -> RenderableType:
        room = console.height - _LINES_AROUND if console.is_terminal else _ROWS_IN_A_PIPE
        return screen(
            now,
            shown,
            sort=self.sort,
            limit=self.limit or max(room, 1),
            by=self.by,
            width=console.width,
        )

    def view(self, now: Snapshot, before: Snapshot | None) -> View:
        return view(now, before, GROUPINGS[self.by], self.sort)


@click.command("top", short_help="Show where observed processes spend their time.")
@click.option(
    "--once", is_flag=True, help="Print one table of everything since the start, and exit."
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON of everything since the start, and exit."
)
@click.option(
    "--since-start", is_flag=True, help="Count since the start, not since the last refresh."
)
@click.option(
    "--by",
    type=click.Choice(list(GROUPINGS)),
    default="operator",
    show_default=True,
    help="One row per operator, or per operator and process, or operator and labels (model_id).",
)
@click.option("--pid", "pids", type=PID, multiple=True, help="Only this process; repeatable.")
@click.option(
    "--sort",
    type=click.Choice(SORTS),
    default="total",
    show_default=True,
    help="Order of the rows.",
)
@click.option("--limit", type=click.IntRange(min=1), help="Maximum number of rows.")
@click.option(
    "--interval",
    type=duration(0.1),
    default=2.0,
    show_default=True,
    help="Seconds between refreshes.",
)
@DIRECTORY
def command(
    once: bool,
    as_json: bool,
    since_start: bool,
    by: str,
    pids: tuple[int, ...],
    sort: str,
    limit: int | None,
    interval: float,
    places: tuple[str, ...],
) -> None:
    """Show where observed processes spend their time, operator by operator.

    A live table; one table, as with --once, if standard output is not a terminal.
    """
    host = Host(
        directories.exactly(places) or directories.patterns(config.load().directory),
        consume=False,
        max_series=_SERIES_LIMIT,
        pids=set(pids) or None,
        by_process=by == "process",
    )
    options = _Options(by, sort, limit)
    console = Console()
    before = host.collect()
    if as_json:
        click.echo(json.dumps(_for_scripts(options.view(before, None)), indent=1))
        return
    if once or not console.is_terminal:
        console.print(options.draw(before, options.view(before, None), console))
        return
    try:
        with Live(console=console, screen=True, auto_refresh=False) as live:
            shown = options.view(before, None)
            while True:
                live.update(options.draw(before, shown, console), refresh=True)
                time.sleep(interval)
                now = host.collect()
                shown = options.view(now, None if since_start else before)
                before = now
    except KeyboardInterrupt:
        return


def _for_scripts(shown: View) -> dict[str, Any]:
    """All operators since the start; each error is a standard error."""
    return {
        "seconds": shown.seconds,
        "samples": shown.samples,
        "unseen_calls": shown.unseen_calls,
        "shares_of": {"seconds": shown.base_s, "time": "self" if shown.base_is_self else "total"},
        "operators": [
            {"pid": row.key.process, "service": row.key.service or None}
            | {"labels": dict(row.key.labels)}
            | row.facts()
            for row in shown.rows
        ],
    }
