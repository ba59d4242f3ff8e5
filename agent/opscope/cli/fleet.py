"""``opscope fleet``: questions about all hosts, to whatever stores their metrics."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from opscope.agent.table import rate, seconds
from opscope.fleet import promql, rankings, versions
from opscope.fleet.store import Store

_DEFAULT_URL = "http://127.0.0.1:9090"
_Command = TypeVar("_Command", bound=Callable[..., Any])
_STYLES = {"slower": "red", "faster": "green"}


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


_WINDOW = click.option(
    "--window", default="15m", show_default=True, help="How far to look back, as PromQL has it."
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
    rows = rankings.top(_store(url, headers), by, selector, window, limit)
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
    """Hosts that are slower than the others of their service and model.

    Compared is how long operators typically take; the median of all operators of a host counts.
    """
    found = rankings.stragglers(_store(url, headers), promql.where(service=service), window)
    rows = [row for row in found if row.is_straggler or shows_all][:limit]
    if as_json:
        _print_json([asdict(row) for row in rows])
        return
    named = sum(row.is_straggler for row in found)
    _show(
        ("host", "service", "model", "slowness", "spread", "of hosts", ""),
        [
            (
                row.host,
                row.service,
                row.model_id or "-",
                f"{row.slowness:.2f}",
                f"{row.spread:.1%}".replace("%", " %"),
                str(row.hosts),
                "straggler" if row.is_straggler else "",
            )
            for row in rows
        ],
        f"{named} of {len(found)} hosts; slowness: times as long as on the median host",
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
    rows = rankings.usage(_store(url, headers), selector)
    if as_json:
        _print_json([asdict(row) for row in rows])
        return
    _show(
        ("api", "service", "processes", "hosts"),
        [(row.api, row.service, f"{row.processes:,.0f}", str(row.hosts)) for row in rows],
        "processes: alive and ended",
    )


def _store(url: str, headers: Sequence[str]) -> Store:
    given = {}
    for header in headers:
        name, colon, value = header.partition(":")
        if not colon or not name.strip():
            raise click.BadParameter(f"{header!r} is not NAME:VALUE", param_hint="--header")
        given[name.strip()] = value.strip()
    return Store(url, given)


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
) -> None:
    console = Console()
    if rows:
        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1))
        for number, heading in enumerate(headings):
            is_text = heading in ("service", "model", "host", "api") or number == 0
            table.add_column(
                heading,
                justify="left" if is_text else "right",
                no_wrap=True,
                overflow="ellipsis",
                min_width=12 if number == 0 else None,
            )
        for row, style in zip(rows, styles or [""] * len(rows), strict=True):
            table.add_row(*map(Text, row), style=style or None)
        console.print(table)
    else:
        console.print("nothing found")
    console.print(Text(below, style="dim"))
