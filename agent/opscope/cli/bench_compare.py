"""`opscope bench-compare`: run two commands in turns, and show what got slower. For CI.

opscope/ci measures and judges; this prints.
"""

from __future__ import annotations

import json
import math
import shlex
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from opscope.cli._numbers import Finite, duration
from opscope.cli._shared_options import LIMIT
from opscope.errors import OpscopeError
from opscope.reports.numbers import rate, seconds

if TYPE_CHECKING:
    from opscope.ci import runs
    from opscope.ci.verdicts import Comparison, Measure

_STYLES = {
    "slower": "red",
    "more calls": "red",
    "faster": "green",
    "same": "",
    "unsure": "dim",
    "?": "dim",
}
_CHANGED = ("slower", "more calls", "faster")
_FILE_WIDTH = 120
"""Columns if the output is no terminal."""
_USAGE = "write the two commands as: opscope bench-compare -- A... -- B..."


def _two(
    context: click.Context, parameter: click.Parameter, words: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if words.count("--") != 1:
        raise click.UsageError(_USAGE)
    at = words.index("--")
    a, b = words[:at], words[at + 1 :]
    if not a or not b:
        raise click.UsageError(_USAGE)
    return a, b


def _thresholds(
    context: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> dict[str, float]:
    found = {}
    for text in given:
        name, _, percent = text.rpartition("=")
        try:
            value = float(percent.removesuffix("%"))
        except ValueError:
            value = math.nan
        if not name or not 0 <= value <= 1e6:
            raise click.BadParameter(f"{text!r} is not NAME=PERCENT, such as cpu=3")
        found[name] = value / 100
    return found


@click.command("bench-compare", short_help="Run two commands in turns; show what got slower.")
@click.argument(
    "commands", metavar="-- A... -- B...", nargs=-1, type=click.UNPROCESSED, callback=_two
)
@click.option(
    "--rounds",
    type=click.IntRange(min=2, max=10_000),
    default=15,
    show_default=True,
    help="Runs of each command that count.",
)
@click.option(
    "--warmup",
    type=click.IntRange(min=0, max=1000),
    default=1,
    show_default=True,
    help="Runs of each command before these, which do not count.",
)
@click.option(
    "--confidence",
    type=Finite(0.5, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Confidence level: of each whole measure, and of all operators together.",
)
@click.option(
    "--min-change",
    type=Finite(min=0, max=1e6),
    default=5.0,
    show_default=True,
    help="Smallest change that counts, in percent.",
)
@click.option(
    "--threshold",
    "thresholds",
    metavar="NAME=PERCENT",
    multiple=True,
    callback=_thresholds,
    help="Another smallest change for wall, cpu, instructions, or the operators that a pattern "
    "with * and ? matches; repeatable, the last that matches applies.",
)
@click.option(
    "--min-share",
    type=Finite(min=0, max=100),
    default=1.0,
    show_default=True,
    help="Judge operators with at least this share of all operators' time, in percent.",
)
@click.option(
    "--sampling",
    metavar="P|windows",
    default="1",
    show_default=True,
    help="Probability of recording a range, or windows; 1 counts exactly.",
)
@click.option("--timeout", type=duration(0, min_open=True), help="Longest run, in seconds.")
@LIMIT
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--markdown", metavar="FILE", help="Also append a table for people, as Markdown, to FILE."
)
def command(
    commands: tuple[tuple[str, ...], tuple[str, ...]],
    rounds: int,
    warmup: int,
    confidence: float,
    min_change: float,
    thresholds: dict[str, float],
    min_share: float,
    sampling: str,
    timeout: float | None,
    limit: int,
    as_json: bool,
    markdown: str | None,
) -> None:
    """Run the commands A and B in turns, observed, and compare them.

    \b
        opscope bench-compare -- python old.py -- python new.py
        opscope bench-compare --threshold cpu=2 -- env -C base make bench -- make bench

    Compared are the wall time, the CPU time, the instructions where the machine counts them, and
    the time of each operator, per run. B/A is the median over the rounds, with its confidence
    interval. "same" means that a change of --min-change is ruled out; "unsure" means that the
    rounds differ too much to tell: run more --rounds. Without such certainty about its time, an
    operator that every run of B calls more often than every run of A has "more calls".

    The exit status is 1 if something got slower or has more calls, 2 for a usage error or a command
    that fails, and 0 otherwise.
    """
    from opscope.ci import runs, verdicts

    _check_sampling(sampling)
    show_progress = sys.stderr.isatty()
    try:
        pair = runs.interleaved(
            commands,
            rounds=rounds,
            warmup=warmup,
            sampling=sampling,
            timeout_s=timeout,
            told=lambda line: click.echo(line, err=True) if show_progress else None,
        )
    except OpscopeError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2)
    found = verdicts.compare(
        pair,
        confidence=confidence,
        threshold=min_change / 100,
        thresholds=thresholds,
        least_share=min_share / 100,
    )
    if as_json:
        click.echo(json.dumps(_for_scripts(commands, pair, found), indent=1))
    else:
        _show(commands, pair, found, confidence, limit)
    if markdown is not None:
        _append(markdown, _markdown(commands, pair, found, confidence, limit))
    sys.exit(1 if found.regressions else 0)


def _check_sampling(text: str) -> None:
    from opscope.config import load

    load({"OPSCOPE_SAMPLING": text})


def _for_scripts(
    commands: Sequence[Sequence[str]], pair: runs.Pair, found: Comparison
) -> dict[str, object]:
    return {
        "a": list(commands[0]),
        "b": list(commands[1]),
        "rounds": len(pair.a),
        "rounds_needed": found.rounds_needed,
        "no_instructions": pair.no_instructions or None,
        "measures": list(map(_fields, found.measures)),
        "operators": list(map(_fields, found.operators)),
        "only_a": found.only_a,
        "only_b": found.only_b,
        "regressions": [one.name for one in found.regressions],
    }


def _fields(one: Measure) -> dict[str, object]:
    fields: dict[str, object] = {
        "name": one.name,
        "unit": one.unit,
        "a": one.a,
        "b": one.b,
        "ratio": _finite(one.ratio),
        "low": _finite(one.low),
        "high": _finite(one.high),
        "threshold": one.threshold,
        "verdict": one.verdict,
    }
    return fields if one.calls is None else fields | {"calls": one.calls}


def _finite(value: float) -> float | None:
    """JSON has no NaN."""
    return value if math.isfinite(value) else None


def _headings(confidence: float) -> tuple[str, ...]:
    return ("per run", "calls", "A", "B", "B/A", f"{100 * confidence:g} %", "")


def _rows(found: Comparison, limit: int) -> Iterator[tuple[Measure, tuple[str, ...]]]:
    shown = sorted(found.operators, key=lambda one: one.verdict not in _CHANGED)
    for one in (*found.measures, *shown[:limit]):
        yield (
            one,
            (
                one.name,
                _calls(one),
                _amount(one, one.a),
                _amount(one, one.b),
                "-" if math.isnan(one.ratio) else f"{one.ratio:.3f}",
                "" if math.isnan(one.low) else f"{one.low:.3f}..{one.high:.3f}",
                one.verdict,
            ),
        )


def _calls(one: Measure) -> str:
    if one.calls is None:
        return ""
    a, b = map(rate, one.calls)
    return a if one.calls[0] == one.calls[1] else f"{a} -> {b}"


def _amount(one: Measure, value: float) -> str:
    return seconds(value) if one.unit == "s" else rate(value)


def _below(pair: runs.Pair, found: Comparison, limit: int) -> Iterator[str]:
    every = (*found.measures, *found.operators)
    counts = {word: sum(one.verdict == word for one in every) for word in _STYLES}
    yield ", ".join(f"{count} {word}" for word, count in counts.items() if count and word != "?")
    if counts["?"]:
        yield f"{counts['?']} not judged (?): --rounds {found.rounds_needed} or more judges all"
    if len(found.operators) > limit:
        yield f"{len(found.operators) - limit} more operators; --limit shows them"
    if found.small:
        yield f"{found.small} operators have too little time to be judged (--min-share)"
    for heading, names in (("only in A", found.only_a), ("only in B", found.only_b)):
        if names:
            more = f" and {len(names) - 8} more" if len(names) > 8 else ""
            yield f"{heading}: {', '.join(names[:8])}{more}"
    if pair.no_instructions:
        yield f"instructions are not counted: {pair.no_instructions}"


def _title(commands: Sequence[Sequence[str]], pair: runs.Pair) -> tuple[str, ...]:
    return (
        f"A: {shlex.join(commands[0])}",
        f"B: {shlex.join(commands[1])}",
        f"{len(pair.a)} rounds in turns; medians",
    )


def _show(
    commands: Sequence[Sequence[str]],
    pair: runs.Pair,
    found: Comparison,
    confidence: float,
    limit: int,
) -> None:
    console = Console(width=None if sys.stdout.isatty() else _FILE_WIDTH)
    for line in _title(commands, pair):
        console.print(Text(line, style="dim"))
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1))
    first, *others = _headings(confidence)
    table.add_column(first, no_wrap=True, overflow="ellipsis", min_width=12)
    for heading in others:
        table.add_column(heading, justify="right", no_wrap=True)
    for one, cells in _rows(found, limit):
        table.add_row(*map(Text, cells), style=_STYLES.get(one.verdict))
    console.print(table)
    for line in _below(pair, found, limit):
        console.print(Text(line, style="dim"))


def _markdown(
    commands: Sequence[Sequence[str]],
    pair: runs.Pair,
    found: Comparison,
    confidence: float,
    limit: int,
) -> str:
    verdict = "slower" if found.regressions else "nothing is surely slower"
    lines = [f"### opscope bench-compare: {verdict}", ""]
    lines += [f"- `{line}`" for line in _title(commands, pair)]
    headings = _headings(confidence)
    lines += ["", "| " + " | ".join(headings) + " |", "|---" + "|---:" * (len(headings) - 1) + "|"]
    for one, cells in _rows(found, limit):
        bold = "**" if one.verdict in _CHANGED else ""
        texts = [cell.replace("|", "\\|") for cell in cells]
        lines.append("| " + " | ".join((*texts[:-1], f"{bold}{texts[-1]}{bold}")) + " |")
    return "\n".join([*lines, "", *(f"{line}  " for line in _below(pair, found, limit)), ""])


def _append(path: str, text: str) -> None:
    try:
        with open(path, "a", encoding="utf-8") as file:
            file.write(text + "\n")
    except OSError as error:
        raise OpscopeError(f"{path}: {error.strerror}") from error
