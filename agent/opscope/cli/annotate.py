"""`opscope annotate`: mark a release, or any other moment, on Grafana's graphs."""

from __future__ import annotations

import datetime
import math
import os
import time
from typing import IO

import click

from opscope.errors import FleetError

_TAG = "opscope"


def _moment(context: click.Context, parameter: click.Parameter, text: str | None) -> int | None:
    """Unix milliseconds of a Unix time in seconds, or of an ISO 8601 time."""
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        try:
            # Python before 3.11 does not know the Z of UTC.
            found = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
        except ValueError:
            seconds = math.nan
        else:
            seconds = found.timestamp()
    if not 0 <= seconds < 1e11:
        raise click.BadParameter(f"{text!r} is not a time such as 2026-01-31T12:00:00Z")
    return round(seconds * 1000)


@click.command("annotate", short_help="Mark a release on Grafana's graphs.")
@click.argument("text", required=False)
@click.option(
    "--url", envvar="GRAFANA_URL", metavar="URL", required=True, help="Address of Grafana."
)
@click.option(
    "--token-file",
    type=click.File(),
    help="File with the token of a service account; otherwise GRAFANA_TOKEN.",
)
@click.option("--service", metavar="NAME", help="The released service; a tag service:NAME.")
@click.option("--version", metavar="VERSION", help="The released version; a tag version:VERSION.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Another tag; repeatable.")
@click.option("--dashboard", metavar="UID", help="Only on this dashboard.")
@click.option(
    "--at",
    metavar="TIME",
    callback=_moment,
    help="ISO 8601 or Unix time; without a time zone, local.  [default: now]",
)
@click.option("--until", metavar="TIME", callback=_moment, help="The end, for a span.")
def command(
    text: str | None,
    url: str,
    token_file: IO[str] | None,
    service: str | None,
    version: str | None,
    tags: tuple[str, ...],
    dashboard: str | None,
    at: int | None,
    until: int | None,
) -> None:
    """Mark a release, or what TEXT says, on the graphs of Opscope's dashboards in Grafana.

    \b
        opscope annotate --service ranker --version 1.4.2
        opscope annotate --tag maintenance --until 2026-01-31T14:00:00Z 'new kernel'

    Each annotation has the tag opscope, which the dashboards ask for, and one with --version the
    tag release.
    """
    from opscope.fleet import annotation

    if text is None and version is None:
        raise click.UsageError("Give TEXT or --version.")
    start = round(time.time() * 1000) if at is None else at
    if until is not None and until < start:
        raise click.UsageError("--until is before the start.")
    token = os.environ.get("GRAFANA_TOKEN", "") if token_file is None else token_file.read()
    if not token.strip().isprintable():
        raise FleetError("the token must be one line of printable characters")
    every = [_TAG]
    if version is not None:
        every.append("release")
    if service is not None:
        every.append(f"service:{service}")
    if version is not None:
        every.append(f"version:{version}")
    released = " ".join(filter(None, (service, version)))
    found = annotation.post(
        url,
        annotation.Annotation(
            text or f"release {released}", [*every, *tags], start, until, dashboard
        ),
        token=token.strip(),
    )
    click.echo("annotated" if found is None else f"annotated: id {found}")
