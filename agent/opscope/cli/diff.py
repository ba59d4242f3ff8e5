"""`opscope diff`: show operators that got slower between recordings or versions of a service.

reports/comparison.py defines the numbers.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from opscope import config
from opscope.cli._numbers import Finite, duration
from opscope.cli._shared_options import CHECK, DIRECTORY, LIMIT, MIN_CHANGE
from opscope.errors import AgentError
from opscope.reports.numbers import rate, seconds
from opscope.segments import directories

if TYPE_CHECKING:
    from opscope.reports.comparison import Change, Comparison
    from opscope.reports.recording import Operator, Recording

_SLICE_S = 2.0
_STYLES = {"slower": "red", "faster": "green"}
_GREY = {"unsure": "dim", "?": "dim"}


@click.command("diff")
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@click.option(
    "--seconds",
    "length_s",
    type=duration(5),
    default=30.0,
    show_default=True,
    help="How long to record versions that run now.",
)
@click.option(
    "--confidence",
    type=Finite(0.5, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Confidence level of the intervals.",
)
@MIN_CHANGE
@LIMIT
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@CHECK
@DIRECTORY
def command(
    before: str,
    after: str,
    length_s: float,
    confidence: float,
    min_change: float,
    limit: int,
    as_json: bool,
    check: bool,
    places: tuple[str, ...],
) -> None:
    """Compare the operators of A and B.

    A and B are each a file that `opscope record` wrote, or SERVICE[@VERSION] of processes that run
    now. Times are means per call: of self time if it is known, else of total time. "same" means
    that a change of --min-change is ruled out; "unsure" means that the slices vary too much to
    tell: record for longer.
    """
    from opscope.reports.comparison import compare

    patterns = directories.exactly(places) or directories.patterns(config.load().directory)
    a, b = _recordings((before, after), patterns, length_s)
    found = compare(a, b, confidence)
    verdicts = [change.verdict(confidence, min_change / 100) for change in found.changes]
    if as_json:
        click.echo(json.dumps(_for_scripts(a, b, found, verdicts), indent=1))
    else:
        _show(a, b, found, verdicts, confidence, limit)
    if check and "slower" in verdicts:
        sys.exit(1)


def _recordings(
    names: Sequence[str], patterns: Sequence[str], length_s: float
) -> tuple[Recording, Recording]:
    """The two recordings; running services are recorded at the same time."""
    from opscope.reports.comparison import LEAST_SLICES
    from opscope.reports.recording import Recording, Selection, record

    now = [name for name in names if not os.path.exists(name)]
    for name in now:
        if os.sep in name:
            raise AgentError(f"{name}: no such file; `opscope record -o FILE` writes one")
    slices = max(LEAST_SLICES, round(length_s / _SLICE_S))
    live: dict[str, Recording] = {}
    if now:
        selections = [Selection.parse(name) for name in now]
        made = record(patterns, selections, slices=slices, slice_s=length_s / slices)
        live = dict(zip(now, made, strict=True))
    a, b = (live.get(name) or Recording.load(name) for name in names)
    return a, b


def _for_scripts(
    a: Recording, b: Recording, found: Comparison, verdicts: Sequence[str]
) -> dict[str, object]:
    return {
        "before": a.what,
        "after": b.what,
        "operators": [
            {
                "operator": change.operator.name,
                "phase": change.operator.phase,
                "verdict": verdict,
                "calls_per_s": change.calls_per_s,
                "call_s": change.call_s,
                "time": "self" if change.is_self else "total",
                "ratio": _known(change.ratio),
                "low": _known(change.low),
                "high": _known(change.high),
                "p": change.p,
                "lost_s_per_s": change.lost_s,
            }
            for change, verdict in zip(found.changes, verdicts, strict=True)
        ],
        "gone": [operator._asdict() for operator in found.gone],
        "new": [operator._asdict() for operator in found.new],
    }


def _known(value: float) -> float | None:
    """JSON has no infinity."""
    return value if math.isfinite(value) else None


def _show(
    a: Recording,
    b: Recording,
    found: Comparison,
    verdicts: Sequence[str],
    confidence: float,
    limit: int,
) -> None:
    console = Console()
    _dim(console, f"A: {_title(a)}", f"B: {_title(b)}")
    table = Table(box=None, pad_edge=False, header_style="bold", expand=True, padding=(0, 1))
    table.add_column("operator", no_wrap=True, overflow="ellipsis", ratio=1, min_width=12)
    for heading in ("calls/s", "A", "B", "B/A", f"{confidence:.0%}".replace("%", " %"), "", "cost"):
        table.add_column(heading, justify="right", no_wrap=True)
    rows = sorted(zip(found.changes, verdicts, strict=True), key=lambda row: row[1] not in _STYLES)
    for change, verdict in rows[:limit]:
        table.add_row(*_cells(change, verdict), style=(_STYLES | _GREY).get(verdict))
    if rows:
        console.print(table)
    else:
        console.print("no operator ran in both")
    _dim(console, *_below(found, verdicts, len(rows) - limit))


def _dim(console: Console, *lines: str) -> None:
    for line in lines:
        console.print(Text(line, style="dim"))


def _cells(change: Change, verdict: str) -> tuple[str, ...]:
    sure = "" if math.isnan(change.low) else f"{change.low:.2f}..{change.high:.2f}"
    name, phase = change.operator
    return (
        name if phase == "other" else f"{name} ({phase})",
        rate(change.calls_per_s[1]),
        seconds(change.call_s[0]),
        seconds(change.call_s[1]),
        f"{change.ratio:.2f}" if math.isfinite(change.ratio) else "-",
        sure,
        verdict,
        f"{change.lost_s:+.1%}".replace("%", " %"),
    )


def _below(found: Comparison, verdicts: Sequence[str], more: int) -> list[str]:
    from opscope.reports.comparison import LEAST_SLICES

    lines = [f"{verdicts.count('slower')} slower, {verdicts.count('faster')} faster"]
    if "unsure" in verdicts:
        lines[0] += f", {verdicts.count('unsure')} unsure: the slices vary too much"
    if "?" in verdicts:
        lines[0] += f", {verdicts.count('?')} seen in fewer than {LEAST_SLICES} slices (?)"
    lines[0] += "; cost: share of a thread's time, at B's calls/s"
    if more > 0:
        lines.append(f"{more} more operators; --limit shows them")
    for heading, operators in (("only in A", found.gone), ("only in B", found.new)):
        if operators:
            lines.append(f"{heading}: {_names(operators)}")
    return lines


def _names(operators: Sequence[Operator]) -> str:
    names = sorted({operator.name for operator in operators})
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _title(recording: Recording) -> str:
    processes = f"{recording.processes} process{'' if recording.processes == 1 else 'es'}"
    length = seconds(sum(recording.seconds))
    return f"{recording.what}, {processes}, {length} in {len(recording.seconds)} slices"
