"""``opscope top``: a live table of operators, read from the segments of this host.

Reads only: it neither takes in nor removes what dead processes left. What the numbers mean is in
agent/view.py, how they look in agent/table.py.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import click
from rich.console import Console, RenderableType
from rich.live import Live

from opscope import config
from opscope.agent import directories
from opscope.agent.host import Host
from opscope.agent.snapshot import Snapshot
from opscope.agent.table import screen
from opscope.agent.view import SORTS, View, by_operator, by_process, view

_SERIES_LIMIT = 20_000
_ROWS_IN_A_PIPE = 25
_LINES_AROUND = 7


class _Look(NamedTuple):
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
            by_process=self.by == "process",
            width=console.width,
        )

    def view(self, now: Snapshot, before: Snapshot | None) -> View:
        return view(now, before, by_process if self.by == "process" else by_operator, self.sort)


@click.command("top")
@click.option("--once", is_flag=True, help="Print one table of everything since the start.")
@click.option("--total", is_flag=True, help="Count since the start, not since the last look.")
@click.option("--by", type=click.Choice(["operator", "process"]), default="operator")
@click.option("--pid", "pids", type=int, multiple=True, help="Only this process; repeatable.")
@click.option("--sort", type=click.Choice(SORTS), default="total", show_default=True)
@click.option("--limit", type=click.IntRange(min=1), help="At most so many rows.")
@click.option(
    "--interval",
    type=click.FloatRange(min=0.1),
    default=2.0,
    show_default=True,
    help="Seconds between two looks.",
)
@click.option("--directory", "places", multiple=True, help="Where segments are; repeatable.")
def command(
    once: bool,
    total: bool,
    by: str,
    pids: tuple[int, ...],
    sort: str,
    limit: int | None,
    interval: float,
    places: tuple[str, ...],
) -> None:
    """Show what observed processes spend their time on, operator by operator.

    A live table; into a pipe, one table, as with --once.
    """
    host = Host(
        directories.exactly(places) or directories.patterns(config.load().directory),
        consume=False,
        max_series=_SERIES_LIMIT,
        pids=set(pids) or None,
        by_process=by == "process",
    )
    look = _Look(by, sort, limit)
    console = Console()
    before = host.collect()
    if once or not console.is_terminal:
        console.print(look.draw(before, look.view(before, None), console))
        return
    try:
        with Live(console=console, screen=True, auto_refresh=False) as live:
            shown = look.view(before, None)
            while True:
                live.update(look.draw(before, shown, console), refresh=True)
                time.sleep(interval)
                now = host.collect()
                shown = look.view(now, None if total else before)
                before = now
    except KeyboardInterrupt:
        return
