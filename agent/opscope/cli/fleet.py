"""``opscope fleet``: questions about all hosts, to whatever stores their metrics."""

from __future__ import annotations

import json
import math
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

import click
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from opscope.agent.table import rate, seconds
from opscope.fleet import promql, rankings, versions
from opscope.fleet.store import Store

_DEFAULT_URL = "http://127.0.0.1:9090"
_Command = TypeVar("_Command", bound=Callable[..., Any])
_STYLES = {"slower": "red", "faster": "green"}
_TEXTS = ("service", "version", "model", "host", "api")
_LEAST_TEXT = 6
_NOT_A_TERMINAL = 1000
"""Columns: what goes into a file or a pipe is not cut."""


def _asking(command: _Command) -> _Command:
    """Adds the options that all questions have."""
    for option in (
        click.option(
            "--url",
            envvar="OPSCOPE_FLEET_URL",
            default=_DEFAULT_URL,
            show_default=True,
            help="The store: Prometheus, Mimir, Thanos, VictoriaMetrics.",
        ),
        click.option(
            "--header",
            "headers",
            multiple=True,
            metavar="NAME:VALUE",
            help="Goes with every request, as an authorization or a tenant does; repeatable.",
        ),
        click.option("--json", "as_json", is_flag=True, help="For scripts."),
    ):
        command = option(command)
    return command


def _duration(context: click.Context, option: click.Parameter, value: str) -> str:
    if not re.fullmatch(r"(?=.)(\d+y)?(\d+w)?(\d+d)?(\d+h)?(\d+m)?(\d+s)?(\d+ms)?", value):
        raise click.BadParameter(f"{value!r} is no duration as PromQL has it, such as 15m or 1h30m")
    return value


_WINDOW = click.option(
    "--window",
    default="15m",
    show_default=True,
    callback=_duration,
    help="How far to look back, as PromQL has it.",
)
_SERVICE = click.option("--service", help="Only of this service.")


@click.group("fleet")
def command() -> None:
    """Ask about all hosts: whatever answers PromQL and has their metrics will do.

    The store is --url, or OPSCOPE_FLEET_URL.
    """


@command.command("top")
@click.option("--by", type=click.Choice(rankings.BY), default="op", show_default=True)
@_SERVICE
@click.option("--model", help="Only of this model_id.")
@_WINDOW
@click.option("--limit", type=click.IntRange(min=1), default=25, show_default=True)
@_asking
def top(
    by: str,
    service: str | None,
    model: str | None,
    window: str,
    limit: int,
    url: str,
    headers: Sequence[str],
    as_json: bool,
) -> None:
    """What takes most time in the fleet."""
    selector = promql.where(service=service, model_id=model)
    store = _store(url, headers)
    rows = rankings.top(store, by, selector, window, limit)
    if as_json:
        _print_json([{by: row.name} | _without(asdict(row), "name") for row in rows])
        return
    _show(
        (by, "threads", "time %", "calls/s", "hosts", "p50", "p95", "p99"),
        [
            (
                row.name or "-",
                rate(row.threads),
                f"{100 * row.share:.1f}",
                rate(row.calls_per_s),
                str(row.hosts),
                *(_known(value) for value in (row.p50_s, row.p95_s, row.p99_s)),
            )
            for row in rows
        ],
        f"over the last {window}; threads: how many are within these operators at a time",
        nothing="" if rows else _nothing(store, service),
    )


@command.command("stragglers")
@_SERVICE
@_WINDOW
@click.option("--all", "shows_all", is_flag=True, help="Also the hosts that are none.")
@click.option("--limit", type=click.IntRange(min=1), default=25, show_default=True)
@_asking
def stragglers(
    service: str | None,
    window: str,
    shows_all: bool,
    limit: int,
    url: str,
    headers: Sequence[str],
    as_json: bool,
) -> None:
    """Hosts that are slower than the others of their service, version and model.

    Compared is how long operators typically take; the median of all operators of a host counts.
    It takes five hosts: whether a version that fewer run is slower, is for diff to say. A host
    whose version changed within the window is left out.
    """
    store = _store(url, headers)
    found = rankings.stragglers(store, promql.where(service=service), window)
    rows = [row for row in found if row.is_straggler or shows_all][:limit]
    if as_json:
        _print_json([asdict(row) | {"is_judged": row.is_judged} for row in rows])
        return
    hosts = {row.host for row in found}
    named = {row.host for row in found if row.is_straggler}
    few = hosts - {row.host for row in found if row.is_judged}
    _show(
        ("host", "service", "version", "model", "slowness", "spread", "of hosts", ""),
        [
            (
                row.host,
                row.service,
                row.version or "-",
                row.model_id or "-",
                f"{row.slowness:.2f}",
                f"{row.spread:.1%}".replace("%", " %") if row.is_judged else "-",
                str(row.hosts),
                "straggler" if row.is_straggler else "" if row.is_judged else "?",
            )
            for row in rows
        ],
        f"{len(named)} of {len(hosts)} hosts; slowness: times as long as on the median host"
        + (
            f"; {len(few)} cannot be judged, of fewer than {rankings.LEAST_HOSTS} of a version (?)"
            if few
            else ""
        ),
        nothing="no straggler" if found else _nothing(store, service),
    )


@command.command("diff")
@click.option("--service", required=True)
@click.option("--from", "before", required=True, metavar="VERSION")
@click.option("--to", "after", required=True, metavar="VERSION")
@_WINDOW
@click.option(
    "--within",
    "days",
    type=click.FloatRange(min=0, min_open=True),
    default=7.0,
    show_default=True,
    help="Days in which a version that runs no more is looked for.",
)
@click.option(
    "--least",
    type=click.FloatRange(min=0),
    default=5.0,
    show_default=True,
    help="Percent: smaller changes are no change.",
)
@click.option("--limit", type=click.IntRange(min=1), default=25, show_default=True)
@click.option("--check", is_flag=True, help="Exit with status 1 where an operator got slower.")
@_asking
def diff(
    service: str,
    before: str,
    after: str,
    window: str,
    days: float,
    least: float,
    limit: int,
    check: bool,
    url: str,
    headers: Sequence[str],
    as_json: bool,
) -> None:
    """Which operators got slower from one version of a service to another.

    A version is service.version of OTEL_RESOURCE_ATTRIBUTES; each is looked at as of the last time
    that it ran. Hosts with several versions of the service at a time are left out.
    """
    pair = before, after
    changes = versions.diff(_store(url, headers), service, pair, window, days, time.time())
    verdicts = [change.verdict(least / 100) for change in changes]
    if as_json:
        _print_json(
            [
                asdict(change) | {"ratio": change.ratio, "verdict": verdict}
                for change, verdict in zip(changes, verdicts, strict=True)
            ]
        )
    else:
        _show_diff(changes, verdicts, pair, limit)
    if check and "slower" in verdicts:
        click.get_current_context().exit(1)


def _show_diff(
    changes: Sequence[versions.Change],
    verdicts: Sequence[str],
    pair: tuple[str, str],
    limit: int,
) -> None:
    ordered = sorted(zip(changes, verdicts, strict=True), key=lambda row: row[1] not in _STYLES)
    unknown = verdicts.count("?")
    _show(
        ("operator", "model", pair[0], pair[1], "ratio", "95 %", "hosts", ""),
        [
            (
                f"{change.op} ({change.phase})",
                change.model_id or "-",
                *map(seconds, change.call_s),
                f"{change.ratio:.2f}",
                "" if math.isnan(change.low) else f"{change.low:.2f}..{change.high:.2f}",
                f"{change.hosts[0]}, {change.hosts[1]}",
                verdict,
            )
            for change, verdict in ordered[:limit]
        ],
        f"{verdicts.count('slower')} slower, {verdicts.count('faster')} faster of {len(changes)}"
        + (f", {unknown} on fewer than {versions.LEAST_HOSTS} hosts (?)" if unknown else ""),
        [_STYLES.get(verdict, "") for _, verdict in ordered[:limit]],
    )


@command.command("usage")
@_SERVICE
@click.option("--api", help="Only of this one.")
@_asking
def usage(
    service: str | None, api: str | None, url: str, headers: Sequence[str], as_json: bool
) -> None:
    """Which services use which API."""
    selector = promql.where(service=service, api=api)
    store = _store(url, headers)
    rows = rankings.usage(store, selector)
    if as_json:
        _print_json([asdict(row) for row in rows])
        return
    _show(
        ("api", "service", "processes", "hosts"),
        [(row.api, row.service, f"{row.processes:,.0f}", str(row.hosts)) for row in rows],
        "processes: alive and ended",
        nothing="" if rows else _nothing(store, service),
    )


def _store(url: str, headers: Sequence[str]) -> Store:
    given = {}
    for header in headers:
        name, colon, value = header.partition(":")
        if not colon or not name.strip():
            raise click.BadParameter(f"{header!r} is not NAME:VALUE", param_hint="--header")
        given[name.strip()] = value.strip()
    return Store(url, given)


def _nothing(store: Store, service: str | None) -> str:
    """Why there is no row: in words that say what to do."""
    calls = promql.name("opscope.op.calls")
    known = {one.labels.get("service", "") for one in store.query(f"count by (service) ({calls})")}
    if not known:
        return (
            f"{store.url} has no metrics of Opscope now: it is to scrape the agents (see "
            "dashboards/README.md), and a program is to run under one"
        )
    if service is not None and service not in known:
        return f"no service {service!r}; now there are: {', '.join(sorted(known))}"
    return "nothing found: nothing of that ran, or it was scraped less than twice as yet"


def _print_json(found: object) -> None:
    def plain(value: Any) -> Any:
        """JSON has no NaN."""
        if isinstance(value, dict):
            return {key: plain(one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [plain(one) for one in value]
        return None if isinstance(value, float) and not math.isfinite(value) else value

    click.echo(json.dumps(plain(found), indent=1))


def _without(row: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != key}


def _known(value: float | None) -> str:
    return "-" if value is None else seconds(value)


def _show(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    below: str,
    styles: Sequence[str] = (),
    nothing: str = "nothing found",
) -> None:
    console = Console(width=None if sys.stdout.isatty() else _NOT_A_TERMINAL)
    if rows:
        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1))
        texts = [number == 0 or heading in _TEXTS for number, heading in enumerate(headings)]
        widths = _widths([headings, *rows], texts, console.width)
        for heading, is_text, width in zip(headings, texts, widths, strict=True):
            justify: JustifyMethod = "left" if is_text else "right"
            table.add_column(
                heading, justify=justify, no_wrap=True, overflow="ellipsis", width=width
            )
        for row, style in zip(rows, styles or [""] * len(rows), strict=True):
            table.add_row(*map(Text, row), style=style or None)
        console.print(table)
    else:
        console.print(Text(nothing))
    console.print(Text(below, style="dim"))


def _widths(lines: Sequence[Sequence[str]], texts: Sequence[bool], whole: int) -> list[int]:
    """Of columns with two blanks between. Where there is no room for all, names are cut, the
    longest first: a number that is cut is another."""
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    shrinking = [number for number, is_text in enumerate(texts) if is_text]
    while sum(widths) + 2 * (len(widths) - 1) > whole:
        longest = max(shrinking, key=lambda number: widths[number])
        if widths[longest] <= _LEAST_TEXT:
            break
        widths[longest] -= 1
    return widths
