"""`opscope top`: a live table of operators, read from the segments of this host.

It only reads: it neither adds up nor removes segments of ended processes. reports/view.py defines
the numbers, reports/table.py the layout.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from opscope import config
from opscope.cli._keys import Keys
from opscope.cli._numbers import PID, duration
from opscope.cli._shared_options import DIRECTORY
from opscope.cli._top_state import HELP, Screen, TopState
from opscope.reports.choices import GROUPED_BY, SORTS
from opscope.segments import directories

if TYPE_CHECKING:
    from opscope.host.host import Host
    from opscope.host.snapshot import Snapshot
    from opscope.reports.view import Row, View

_SERIES_LIMIT = 20_000
_ROWS_IN_A_PIPE = 25
_LINES_AROUND = 8
_MORE = "down, page down, end and f show them"


class _Options(NamedTuple):
    by: str
    sort: str
    limit: int | None

    def draw(self, now: Snapshot, shown: View, console: Console) -> RenderableType:
        from opscope.reports.table import screen

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
        from opscope.reports.view import GROUPINGS, view

        return view(now, before, GROUPINGS[self.by], self.sort)


class _Browser:
    """The live table, and what the keys have made of it."""

    def __init__(self, options: _Options, console: Console, since_start: bool) -> None:
        self._by, self._limit = options.by, options.limit
        self._console = console
        self._since_start = since_start
        self.state = TopState(options.sort)
        self._rows: Sequence[Row] = ()
        self._room = 1

    def run(self, host: Host, interval: float) -> None:
        """Until the user quits. Raises KeyboardInterrupt."""
        before, now = None, host.collect()
        keys = Keys() if sys.stdin.isatty() else None
        with (
            keys or nullcontext(),
            Live(console=self._console, screen=True, auto_refresh=False) as live,
        ):
            while True:
                live.update(self._draw(now, before), refresh=True)
                deadline = time.monotonic() + interval
                while (left := deadline - time.monotonic()) > 0:
                    if keys is None:
                        time.sleep(left)
                        continue
                    for key in keys.read(left):
                        if not self.state.press(key, self._rows, self._room, _phases(now)):
                            return
                        live.update(self._draw(now, before), refresh=True)
                if not self.state.is_held:
                    before, now = None if self._since_start else now, host.collect()

    def _draw(self, now: Snapshot, before: Snapshot | None) -> RenderableType:
        from opscope.reports.table import lines_around, screen
        from opscope.reports.view import GROUPINGS, by_phase, view, within_phase

        state, console = self.state, self._console
        if state.screen is Screen.HELP:
            return Text(HELP)
        opened = state.marked if state.screen is Screen.DETAILS else None
        if opened is not None:
            shown = view(now, before, by_phase, state.sort)
            rows = [row for row in shown.rows if row.key.op == opened.op]
        else:
            grouping = GROUPINGS[self._by]
            if state.phase is not None:
                grouping = within_phase(grouping, state.phase)
            shown = view(now, before, grouping, state.sort)
            rows = [row for row in shown.rows if state.takes(row)]
        shown = replace(shown, rows=tuple(rows))
        room = max(console.height - lines_around(now, shown, console.width, _MORE) - 1, 1)
        room = min(self._limit or room, room)
        first, selected = 0, None
        if opened is None:
            self._rows, self._room = rows, room
            first = state.first = min(state.first, max(len(rows) - room, 0))
            marked = (number for number, row in enumerate(rows) if row.key == state.marked)
            selected = next(marked, None)
        table = screen(
            now,
            shown,
            sort=state.sort,
            limit=room,
            by=self._by if opened is None else "phase",
            width=console.width,
            first=first,
            selected=selected,
            more=_MORE,
            without=() if opened is None else ("op", "framework"),
        )
        return Group(table, Text(self._line(), style="bold", no_wrap=True, overflow="ellipsis"))

    def _line(self) -> str:
        """The last line: what is chosen, or how to go on."""
        state = self.state
        if state.screen is Screen.FILTER:
            return f"filter: {state.filter}_   (Enter keeps it, Escape removes it)"
        if state.screen is Screen.DETAILS:
            return f"{state.marked.op if state.marked else ''}   (q: back)"
        chosen = [f"sort {state.sort}"]
        chosen += [f"filter {state.filter!r}"] if state.filter else []
        chosen += [f"phase {state.phase}"] if state.phase is not None else []
        chosen += ["held"] if state.is_held else []
        return f"{' | '.join(chosen)}   (?: keys, q: quit)"


def _phases(snapshot: Snapshot) -> list[str]:
    return sorted({key.phase for key in snapshot.keys})


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
    type=click.Choice(GROUPED_BY),
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

    A live table; one table, as with --once, if standard output is not a terminal. The key ? lists
    the keys: they sort, filter, and open the details of an operator.
    """
    from opscope.host.host import Host

    host = Host(
        directories.exactly(places) or directories.patterns(config.load().directory),
        consume=False,
        max_series=_SERIES_LIMIT,
        pids=set(pids) or None,
        by_process=by == "process",
    )
    options = _Options(by, sort, limit)
    console = Console()
    if as_json:
        click.echo(json.dumps(_for_scripts(options.view(host.collect(), None)), indent=1))
        return
    if once or not console.is_terminal:
        now = host.collect()
        console.print(options.draw(now, options.view(now, None), console))
        return
    try:
        _Browser(options, console, since_start).run(host, interval)
    except (EOFError, KeyboardInterrupt):
        return


def _for_scripts(shown: View) -> dict[str, Any]:
    """All operators since the start; each error is a standard error."""
    return {
        "seconds": shown.seconds,
        "samples": shown.samples,
        "unseen_calls": shown.unseen.calls,
        "unseen_time_share": shown.unseen.time_share,
        "unmet_cpu_s": shown.unmet,
        "cpu_s": shown.cpu_s,
        "shares_of": {
            "seconds": shown.base_s,
            "time": shown.base_of.value,
            "is_least": shown.base_is_least,
        },
        "operators": [
            {"pid": row.key.process, "service": row.key.service or None}
            | {"labels": dict(row.key.labels)}
            | row.facts()
            for row in shown.rows
        ],
    }
