"""`opscope dashboards`: the package's files for Grafana, Prometheus and systemd."""

from __future__ import annotations

import os
import re
from pathlib import Path

import click

from opscope import _native
from opscope.errors import OpscopeError
from opscope.fleet.cluster_rules import of_cluster
from opscope.replace_file import replace_file

# Installed there by the build (native/CMakeLists.txt).
_SHIPPED = "shipped"


@click.group("dashboards", short_help="Export dashboards, alerts, rules and the systemd unit.")
def command() -> None:
    """Export this version's dashboards, alerts, recording rules and systemd unit."""


@command.command("export")
@click.argument("directory", type=click.Path(file_okay=False))
@click.option(
    "--runbook-url",
    metavar="URL",
    help="Address of the runbook for the alerts' links; without it they name RUNBOOK.md.",
)
@click.option(
    "--cluster",
    metavar="NAME",
    help="Rules of this cluster alone, by the label of that name.",
)
@click.option("--force", is_flag=True, help="Replace existing files that differ.")
def export(directory: str, runbook_url: str | None, cluster: str | None, force: bool) -> None:
    """Write the files into DIRECTORY; create it if it is missing.

    \b
        grafana/*.json        dashboards, for Grafana 10.1 and later
        rules/alerts.yml      alerts; their runbook is RUNBOOK.md
        rules/fleet.yml       recording rules
        agent.service         systemd unit of the host agent
    """
    if runbook_url is not None and not re.fullmatch(r"https?://[^\s\"'#]+", runbook_url):
        raise click.BadParameter(f"{runbook_url!r} is not an http(s) address without a fragment")
    if cluster is not None and not re.fullmatch(r"[\w.-]{1,63}", cluster):
        raise click.BadParameter(f"{cluster!r} is not letters, digits, '.', '_' and '-'")
    source = Path(_native.__file__).parent / _SHIPPED
    names = sorted(str(one.relative_to(source)) for one in source.rglob("*") if one.is_file())
    if not names:
        raise OpscopeError(f"{source}: the package lacks these files; reinstall opscope")
    target = Path(directory)
    try:
        contents = {name: _content(source / name, runbook_url, cluster) for name in names}
        others = [name for name in names if _differs(contents[name], target / name)]
        if others and not force:
            raise OpscopeError(
                f"{directory} already has different files of these names: {', '.join(others)}; "
                "--force replaces them"
            )
        for name in names:
            _write(target / name, contents[name])
            click.echo(target / name)
    except OSError as error:
        raise OpscopeError(f"{error.filename or directory}: {error.strerror}") from error


def _content(source: Path, runbook_url: str | None, cluster: str | None) -> bytes:
    """The file, with absolute links to the runbook if its address is known; rules of the cluster
    alone if one is named."""
    content = source.read_bytes()
    if source.suffix != ".yml":
        return content
    if cluster is not None:
        content = of_cluster(content.decode(), cluster).encode()
    if runbook_url is not None:
        content = content.replace(b"RUNBOOK.md#", f"{runbook_url}#".encode())
    return content


def _differs(content: bytes, target: Path) -> bool:
    return os.path.lexists(target) and (not target.is_file() or target.read_bytes() != content)


def _write(target: Path, content: bytes) -> None:
    """Writes atomically."""
    target.parent.mkdir(parents=True, exist_ok=True)
    replace_file(str(target), content, mode=0o644)
