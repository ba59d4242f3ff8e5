"""How a view of operators looks in a terminal or a pipe. What its numbers mean is in view.py."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from opscope.agent.snapshot import Snapshot
from opscope.agent.view import Row, View, overhead, sampling

_NARROW = 100
_HEADINGS = (
    ("calls", "calls/s"),
    ("total", "total %"),
    ("self", "self %"),
    ("p50", "p50"),
    ("p95", "p95"),
    ("p99", "p99"),
    ("bytes", "alloc/s"),
)


def screen(
    snapshot: Snapshot, shown: View, *, sort: str, limit: int, by_process: bool, width: int
) -> RenderableType:
    """The table with the line above and the lines below it."""
    if not snapshot.processes:
        return Text("no process is observed; start one with: opscope run -- COMMAND")
    return Group(
        Text(_title(snapshot, shown), style="dim", no_wrap=True, overflow="ellipsis"),
        _table(shown, sort, limit, by_process, width)
        if shown.rows
        else Text(f"\n  {_nothing(snapshot)}\n"),
        *(Text(line, style="dim") for line in _footer(snapshot, shown, limit)),
    )


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
    return "no operator was sampled; `opscope run --sampling 1` records every one"


def _table(shown: View, sort: str, limit: int, by_process: bool, width: int) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", expand=True, padding=(0, 1))
    narrow = by_process and width < _NARROW
    left_out = {"p95"} if narrow else set()
    if all(row.bytes_per_s is None for row in shown.rows):
        left_out.add("bytes")
    headings = [heading for heading in _HEADINGS if heading[0] not in left_out]
    if by_process:
        table.add_column("pid", justify="right", no_wrap=True)
        table.add_column(
            "service", no_wrap=True, overflow="ellipsis", max_width=10 if narrow else 16
        )
    table.add_column("operator", no_wrap=True, overflow="ellipsis", ratio=1, min_width=12)
    if not narrow:
        table.add_column("framework", no_wrap=True, overflow="ellipsis", max_width=10)
    for name, heading in headings:
        style = "bold" if name == sort else ""
        table.add_column(heading, justify="right", no_wrap=True, style=style)
    for row in shown.rows[:limit]:
        cells = [row.key.op]
        if by_process:
            pid = "-" if row.key.process is None else str(row.key.process)
            cells = [pid, row.key.service, *cells]
        if not narrow:
            cells.append(row.key.framework)
        numbers = _numbers(row)
        cells += [numbers[name] for name, _ in headings]
        table.add_row(*map(Text, cells))
    return table


def _numbers(row: Row) -> dict[str, str]:
    return {
        "calls": rate(row.calls_per_s),
        "total": f"{100 * row.total_share:.1f}",
        "self": "-" if row.self_share is None else f"{100 * row.self_share:.1f}",
        "p50": seconds(row.p50_s),
        "p95": seconds(row.p95_s),
        "p99": seconds(row.p99_s),
        "bytes": "-" if row.bytes_per_s is None else f"{rate(row.bytes_per_s)}B",
    }


def _footer(snapshot: Snapshot, shown: View, limit: int) -> list[str]:
    lines = []
    if len(shown.rows) > limit:
        lines.append(f"{len(shown.rows) - limit} more operators; --limit shows them")
    if shown.base_is_self:
        is_exact = all(process.is_exact for process in snapshot.processes)
        about = "the" if is_exact else "an estimated"
        lines.append(f"% of {about} {seconds(shown.base_s)} spent in operators, over all threads")
    else:
        lines.append(
            f"% of {seconds(shown.base_s)}, all total times added up: "
            "nested time counts at each level, as not all self times are known"
        )
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
        lines.append(f"{bad} unreadable segments: {reasons}")
    return lines


def seconds(value: float) -> str:
    """Three digits and a unit; "-" for NaN."""
    if value != value:
        return "-"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size * 0.9995:
            return f"{_three_digits(value / size)} {unit}"
    return f"{value * 1e9:.0f} ns"


def rate(value: float) -> str:
    """Three digits and k, M or G."""
    for suffix, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size * 0.9995:
            return f"{_three_digits(value / size)}{suffix}"
    return _three_digits(value)


def _three_digits(value: float) -> str:
    if value >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"
