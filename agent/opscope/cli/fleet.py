"""`opscope fleet`: queries about all hosts, to the store of their metrics."""

from __future__ import annotations

import json
import math
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, TypeVar

import click
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from opscope.cli._numbers import Finite
from opscope.cli._shared_options import CHECK, LIMIT, MIN_CHANGE
from opscope.fleet import promql, rankings
from opscope.reports import certainty
from opscope.reports.numbers import rate, seconds

if TYPE_CHECKING:
    from opscope.fleet import versions
    from opscope.fleet.store import Store

_DEFAULT_URL = "http://127.0.0.1:9090"
_Command = TypeVar("_Command", bound=Callable[..., Any])
_STYLES = {"slower": "red", "faster": "green"}
_GREY = {"unsure": "dim", "?": "dim"}
_TEXTS = ("service", "version", "model", "host", "api")
_LEAST_TEXT = 6
_NOT_A_TERMINAL = 1000
"""Columns for output to a file or pipe: no truncation."""


def _asking(command: _Command) -> _Command:
    """Adds the options that all queries share."""
    for option in (
        click.option(
            "--url",
            metavar="URL",
            envvar="OPSCOPE_FLEET_URL",
            default=_DEFAULT_URL,
            show_default=True,
            help="Address of Prometheus, Mimir, Thanos or VictoriaMetrics.",
        ),
        click.option(
            "--header",
            "headers",
            multiple=True,
            metavar="NAME:VALUE",
            help="HTTP header of every request, such as a token or a tenant; repeatable.",
        ),
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
    ):
        command = option(command)
    return command


def _duration(context: click.Context, option: click.Parameter, value: str) -> str:
    if not re.fullmatch(r"(?=.)(\d+y)?(\d+w)?(\d+d)?(\d+h)?(\d+m)?(\d+s)?(\d+ms)?", value):
        raise click.BadParameter(f"{value!r} is not a PromQL duration such as 15m or 1h30m")
    return value


_WINDOW = click.option(
    "--window",
    metavar="DURATION",
    default="15m",
    show_default=True,
    callback=_duration,
    help="Time range up to now, as a PromQL duration.",
)
_SERVICE = click.option(
    "--service", metavar="GLOB", help="Only services of this name; *, ? and [...] as in a shell."
)


@click.group("fleet", short_help="Query all hosts, through their Prometheus.")
def command() -> None:
    """Query all hosts, through the Prometheus-compatible store of their metrics.

    The store's address is --url or OPSCOPE_FLEET_URL.
    """


@command.command("top", short_help="Rank operators, services or hosts by time.")
@click.option(
    "--by",
    type=click.Choice(rankings.BY),
    default="op",
    show_default=True,
    help="Label to group by.",
)
@_SERVICE
@click.option("--model", metavar="NAME", help="Only this model_id.")
@_WINDOW
@LIMIT
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
    """Rank operators, services or hosts by the time they take in the fleet."""
    selector = promql.where(service, model_id=model)
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
                rate(row.calls_per_s) + (f" ± {rate(row.calls_error)}" if _is_unsure(row) else ""),
                str(row.hosts),
                *(_known(value) for value in (row.p50_s, row.p95_s, row.p99_s)),
            )
            for row in rows
        ],
        f"over the last {window}; threads: mean number of threads inside these operators"
        + (f"; {certainty.in_words()}" if any(map(_is_unsure, rows)) else ""),
        ["dim" if _is_unsure(row) else "" for row in rows],
        nothing="" if rows else _nothing(store, service),
    )


@command.command("stragglers", short_help="List hosts that are slower than comparable ones.")
@_SERVICE
@_WINDOW
@click.option("--all", "shows_all", is_flag=True, help="Include hosts that are not stragglers.")
@LIMIT
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
    """List hosts that are slower than others of the same service, version and model.

    Compares the typical duration of each operator; a host's slowness is the median over its
    operators. A comparison needs five hosts; for a version that fewer hosts run, use `opscope fleet
    diff`. Leaves out hosts whose version changed within the window, and hosts whose histograms are
    too coarse for a median.
    """
    store = _store(url, headers)
    found = rankings.stragglers(store, promql.where(service), window)
    rows = [row for row in found if row.is_straggler or shows_all][:limit]
    if as_json:
        _print_json([asdict(row) | {"is_judged": row.is_judged} for row in rows])
        return
    hosts = {row.host for row in found}
    coarse = rankings.hosts_without_medians(store, promql.where(service), window) - hosts
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
        f"{len(named)} of {len(hosts)} hosts; slowness: duration relative to the median host"
        + (
            f"; {len(few)} not judged: under {rankings.LEAST_HOSTS} hosts run their version (?)"
            if few
            else ""
        )
        + (
            f"; {len(coarse)} more not judged: classic histograms are too coarse for medians"
            if coarse
            else ""
        ),
        nothing="no straggler" if found or coarse else _nothing(store, service),
    )


@command.command("diff", short_help="Show what got slower between two versions.")
@click.option("--service", metavar="NAME", required=True, help="Service to compare.")
@click.option("--from", "before", required=True, metavar="VERSION", help="Version before.")
@click.option("--to", "after", required=True, metavar="VERSION", help="Version after.")
@_WINDOW
@click.option(
    "--within",
    "days",
    type=Finite(min=0, max=36500, min_open=True),
    default=7.0,
    show_default=True,
    help="Days to search back for a version that no longer runs.",
)
@MIN_CHANGE
@LIMIT
@CHECK
@_asking
def diff(
    service: str,
    before: str,
    after: str,
    window: str,
    days: float,
    min_change: float,
    limit: int,
    check: bool,
    url: str,
    headers: Sequence[str],
    as_json: bool,
) -> None:
    """Show which operators got slower between two versions of a service.

    A version is service.version in OTEL_RESOURCE_ATTRIBUTES; each is measured in the last window in
    which it ran. Leaves out hosts that run several versions of the service at a time. Compares
    medians: "same" means that a change of --min-change is ruled out; "unsure" means that the hosts
    are too few or too different to tell, or the histograms too coarse; native ones are the most
    precise.
    """
    from opscope.fleet import versions

    pair = before, after
    changes = versions.diff(_store(url, headers), service, pair, window, days, time.time())
    verdicts = [change.verdict(min_change / 100) for change in changes]
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
    from opscope.fleet import versions

    ordered = sorted(zip(changes, verdicts, strict=True), key=lambda row: row[1] not in _STYLES)
    unknown, unsure = verdicts.count("?"), verdicts.count("unsure")
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
        + (f", {unsure} unsure: not enough data" if unsure else "")
        + (f", {unknown} on fewer than {versions.LEAST_HOSTS} hosts (?)" if unknown else ""),
        [(_STYLES | _GREY).get(verdict, "") for _, verdict in ordered[:limit]],
    )


@command.command("usage")
@_SERVICE
@click.option("--api", metavar="NAME", help="Only this API.")
@_asking
def usage(
    service: str | None, api: str | None, url: str, headers: Sequence[str], as_json: bool
) -> None:
    """List which services use which API."""
    selector = promql.where(service, api=api)
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


def _is_unsure(row: rankings.Row) -> bool:
    return certainty.is_unsure(row.calls_per_s, row.calls_error)


def _store(url: str, headers: Sequence[str]) -> Store:
    from opscope.fleet.store import Store

    given = {}
    for header in headers:
        name, colon, value = header.partition(":")
        if not colon or not name.strip():
            raise click.BadParameter(f"{header!r} is not NAME:VALUE", param_hint="--header")
        given[name.strip()] = value.strip()
    return Store(url, given)


def _nothing(store: Store, service: str | None) -> str:
    """The reason for an empty result, with a remedy."""
    runs = promql.name("opscope.op.samples")
    known = {
        one.labels.get("service_name", "")
        for one in store.query(f"count by (service_name) ({runs})")
    }
    if not known:
        return (
            f"{store.url} has no current metrics of Opscope: configure it to scrape the agents "
            "(see dashboards/README.md), and run an observed program"
        )
    if service is not None and not any(fnmatchcase(name, service) for name in known):
        return f"no service {service!r}; known: {', '.join(sorted(known))}"
    return "nothing found: no such operator ran, or the store has scraped it only once so far"


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
    """Widths of columns with two blanks between. If they do not fit, truncates text columns, the
    widest first; a truncated number would be another number."""
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    shrinking = [number for number, is_text in enumerate(texts) if is_text]
    while sum(widths) + 2 * (len(widths) - 1) > whole:
        longest = max(shrinking, key=lambda number: widths[number])
        if widths[longest] <= _LEAST_TEXT:
            break
        widths[longest] -= 1
    return widths
