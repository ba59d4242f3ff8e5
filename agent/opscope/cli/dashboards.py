"""`opscope dashboards`: the package's files for Grafana, Prometheus and systemd."""

from __future__ import annotations

import os
from pathlib import Path

import click

from opscope import _native
from opscope.errors import OpscopeError
from opscope.replace_file import replace_file

# Installed there by the build (native/CMakeLists.txt).
_SHIPPED = "shipped"


@click.group("dashboards", short_help="Export dashboards, alerts, rules and the systemd unit.")
def command() -> None:
    """Export this version's dashboards, alerts, recording rules and systemd unit."""


@command.command("export")
@click.argument("directory", type=click.Path(file_okay=False))
@click.option("--force", is_flag=True, help="Replace existing files that differ.")
def export(directory: str, force: bool) -> None:
    """Write the files into DIRECTORY; create it if it is missing.

    \b
        grafana/*.json        dashboards, for Grafana 10.1 and later
        rules/alerts.yml      alerts; their runbook is RUNBOOK.md
        rules/fleet.yml       recording rules
        agent.service         systemd unit of the host agent
    """
    source = Path(_native.__file__).parent / _SHIPPED
    names = sorted(str(one.relative_to(source)) for one in source.rglob("*") if one.is_file())
    if not names:
        raise OpscopeError(f"{source}: the package lacks these files; reinstall opscope")
    target = Path(directory)
    try:
        others = [name for name in names if _differs(source / name, target / name)]
        if others and not force:
            raise OpscopeError(
                f"{directory} already has different files of these names: {', '.join(others)}; "
                "--force replaces them"
            )
        for name in names:
            _copy(source / name, target / name)
            click.echo(target / name)
    except OSError as error:
        raise OpscopeError(f"{error.filename or directory}: {error.strerror}") from error


def _differs(source: Path, target: Path) -> bool:
    return os.path.lexists(target) and (
        not target.is_file() or target.read_bytes() != source.read_bytes()
    )


def _copy(source: Path, target: Path) -> None:
    """Copies atomically."""
    target.parent.mkdir(parents=True, exist_ok=True)
    replace_file(str(target), source.read_bytes(), mode=0o644)
