"""Render a view of operators for a terminal or a pipe; view.py defines its numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from opscope.host.snapshot import Snapshot
from opscope.reports import certainty
from opscope.reports.numbers import rate, seconds
from opscope.reports.shortened import shortened
from opscope.reports.view import Base, Row, View, overhead, sampling

_WIDTHS = {"service": 16, "labels": 28}
"""The most columns of the terminal that these columns of the table have."""
_OPERATOR_WIDTH = 28
"""What an operator's name has at least, if necessary in place of other columns."""
_LEAST_OPERATOR_WIDTH = 12
_GIVEN_UP = ("framework", "p95", "bytes", "p50")
"""The columns to drop first, in this order. An operator's name begins with its framework."""
_ONLY_BY = {
    "pid": ("process",),
    "service": ("process", "phase"),
    "labels": ("labels",),
    "phase": ("phase",),
}
"""The columns of which there is one only in a table with such rows."""
_PADDING = 2
_WRAPPED = 8
"""Columns that a line may leave free at its end, since a word does not fit there."""
_HEADINGS = (
    ("pid", "pid"),
    ("service", "service"),
    ("labels", "labels"),
    ("op", "operator"),
    ("phase", "phase"),
    ("framework", "framework"),
    ("calls", "calls/s"),
    ("total", "total %"),
    ("self", "self %"),
    ("p50", "p50"),
    ("p95", "p95"),
    ("p99", "p99"),
    ("bytes", "alloc/s"),
)


def screen(
    snapshot: Snapshot,
    shown: View,
    *,
    sort: str,
    limit: int,
    by: str,
    width: int,
    first: int = 0,
    selected: int | None = None,
    more: str = "--limit shows them",
    without: Sequence[str] = (),
) -> RenderableType:
    """The table with the line above and the lines below it.

    `first`: the number of the first row on the screen; `selected`: that of the row to mark; `more`:
    how to see the others; `without`: columns to leave out.
    """
    rows = shown.rows[first : first + limit]
    if not snapshot.processes:
        return Text("no process is observed; start one with: opscope run -- COMMAND")
    return Group(
        Text(_title(snapshot, shown), style="dim", no_wrap=True, overflow="ellipsis"),
        _table(
            shown, rows, sort, by, width, None if selected is None else selected - first, without
        )
        if shown.rows
        else Text(f"\n  {_nothing(snapshot)}\n"),
        *(Text(line, style="dim") for line in _footer(snapshot, shown, rows, more)),
    )


def lines_around(snapshot: Snapshot, shown: View, width: int, more: str) -> int:
    """Lines of the screen that are no rows, if it shows only some of many rows."""
    footer = _footer(snapshot, shown, shown.rows, more)
    wrapped = sum(-(-cell_len(line) // max(width - _WRAPPED, 1)) for line in footer)
    return len((_title(snapshot, shown), "headings", "more")) + wrapped


def _title(snapshot: Snapshot, shown: View) -> str:
    alive = snapshot.process_count
    ended = sum(not process.is_alive for process in snapshot.processes)
    processes = f"{alive} process{'' if alive == 1 else 'es'}"
    if ended:
        processes += f", {ended} ended"
    span = "since the start," if shown.is_since_start else "in the last"
    return f"opscope: {processes}, {span} {seconds(shown.seconds)}"


def _nothing(snapshot: Snapshot) -> str:
    if all(process.is_exact for process in snapshot.processes):
        return "no operator ran"
    return "no operator was sampled; `opscope run --sampling 1` records every call"


def _table(
    shown: View,
    rows: Sequence[Row],
    sort: str,
    by: str,
    width: int,
    selected: int | None,
    without: Sequence[str],
) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, _PADDING // 2))
    cells = [_cells(row) for row in rows]
    left_out = {name for name in _ONLY_BY if by not in _ONLY_BY[name]} | {*without}
    if all(row.bytes_per_s is None for row in shown.rows):
        left_out.add("bytes")
    headings = _fitting(
        {name: text for name, text in _HEADINGS if name not in left_out}, cells, sort, width
    )
    short = _names(headings, cells, width)
    for name, heading in headings.items():
        style = "bold" if name == sort else ""
        if name == "op":
            table.add_column(
                heading, no_wrap=True, overflow="ellipsis", min_width=_LEAST_OPERATOR_WIDTH
            )
        elif name in _WIDTHS:
            table.add_column(heading, no_wrap=True, overflow="ellipsis", max_width=_WIDTHS[name])
        elif name in ("framework", "phase"):
            table.add_column(heading, no_wrap=True)
        else:
            table.add_column(heading, justify="right", no_wrap=True, style=style)
    for number, (row, texts) in enumerate(zip(rows, cells, strict=True)):
        style = "dim" if row.is_unsure else ""
        if number == selected:
            style += " reverse"
        texts = {**texts, "op": short[texts["op"]]}
        table.add_row(*(Text(texts[name]) for name in headings), style=style.strip() or None)
    return table


def _names(headings: dict[str, str], cells: list[dict[str, str]], width: int) -> dict[str, str]:
    """The operators' names as they fit beside the other columns."""
    others = sum(_width_of(name, headings, cells) for name in headings if name != "op")
    room = max(width - others - _PADDING, _LEAST_OPERATOR_WIDTH)
    return shortened([texts["op"] for texts in cells], room)


def _width_of(name: str, headings: dict[str, str], cells: list[dict[str, str]]) -> int:
    """Columns of the terminal, with the padding."""
    longest = max((cell_len(texts[name]) for texts in cells), default=0)
    longest = max(longest, cell_len(headings[name]))
    return _PADDING + min(longest, _WIDTHS.get(name, longest))


def _fitting(
    headings: dict[str, str], cells: list[dict[str, str]], sort: str, width: int
) -> dict[str, str]:
    """The columns that leave room for the operators' names."""

    def width_of(name: str) -> int:
        return _width_of(name, headings, cells)

    kept = dict(headings)
    wanted = min(width_of("op"), _OPERATOR_WIDTH) if "op" in kept else 0
    for name in _GIVEN_UP:
        if width - sum(width_of(other) for other in kept if other != "op") >= wanted:
            break
        if name != sort:
            kept.pop(name, None)
    return kept


def _cells(row: Row) -> dict[str, str]:
    pid = "-" if row.key.process is None else str(row.key.process)
    names = {"service": row.key.service, "op": row.key.op, "framework": row.key.framework}
    names["phase"] = row.key.phase
    names["labels"] = ", ".join(f"{key}={value}" for key, value in row.key.labels) or "-"
    return {"pid": pid, **names, **_numbers(row)}


def _numbers(row: Row) -> dict[str, str]:
    return {
        "calls": rate(row.calls_per_s) + _error(row.calls_per_s, row.calls_error, rate),
        "total": percent(row.total_share),
        "self": "-"
        if row.self_share is None
        else percent(row.self_share) + _error(row.self_share, row.self_error, percent),
        "p50": seconds(row.p50_s),
        "p95": seconds(row.p95_s),
        "p99": seconds(row.p99_s),
        "bytes": "-" if row.bytes_per_s is None else f"{rate(row.bytes_per_s)}B",
    }


def _error(value: float, error: float | None, text_of: Callable[[float], str]) -> str:
    """The text after an imprecise estimate."""
    if error is None or not certainty.is_unsure(value, error):
        return ""
    return f" ± {text_of(error)}"


def percent(value: float) -> str:
    """Without the percent sign, which is in the heading."""
    return f"{100 * value:.1f}"


def _footer(snapshot: Snapshot, shown: View, rows: Sequence[Row], more: str) -> list[str]:
    lines = []
    if others := len(shown.rows) - len(rows):
        lines.append(f"{others} more operator{'' if others == 1 else 's'}; {more}")
    if shown.base_is_self:
        is_exact = all(process.is_exact for process in snapshot.processes)
        about = "at least" if shown.base_is_least else "the" if is_exact else "an estimated"
        used = "" if shown.cpu_s is None else f"; CPU time: {seconds(shown.cpu_s)}"
        lines.append(
            f"% of {about} {seconds(shown.base_s)} spent in operators, over all threads{used}"
        )
    elif shown.base_of is Base.RUNNING:
        lines.append(
            f"% of {seconds(shown.base_s)} in which threads ran or waited for a processor, because "
            "some self times are unknown"
        )
    else:
        lines.append(
            f"% of {seconds(shown.base_s)}, the sum of all total times: nested time counts at each "
            "level, because some self times are unknown"
        )
    if any(row.is_unsure for row in rows):
        lines.append(certainty.in_words())
    missing = shown.unseen.in_words(rate), certainty.unmet_in_words(shown.unmet)
    lines += filter(None, missing)
    alive = tuple(process for process in snapshot.processes if process.is_alive)
    health = snapshot.health
    share = overhead(alive, snapshot.time_unix_ns)
    cost = seconds(health.overhead_s) if share is None else f"{share:.2%}".replace("%", " %")
    lines.append(
        f"samples {shown.samples:,} | sampling {sampling(alive or snapshot.processes)} | "
        f"dropped {health.dropped:,} | overhead {cost}"
    )
    bad = sum(snapshot.bad_segments.values())
    if bad:
        reasons = ", ".join(sorted({reason for (reason,) in snapshot.bad_segments}))
        lines.append(f"{bad} unreadable segment{'' if bad == 1 else 's'}: {reasons}")
    return lines
