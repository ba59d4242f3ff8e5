"""`opscope doctor`: check that observation works on this host, and suggest remedies.

The checks are in installation/: checks.py, lost_windows.py and trial.py.
"""

from __future__ import annotations

import itertools
import json
import sys
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from opscope.installation.checks import Check


@click.command("doctor", short_help="Check that programs can be observed.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(as_json: bool) -> None:
    """Check that programs of this user and environment can be observed.

    Checks directory, permissions, free space, clock, kernel and agent, and runs each framework that
    has a bridge in a process of its own. Says how to fix each problem. Exits with status 1 if a
    check fails.
    """
    from opscope.installation import lost_windows, trial
    from opscope.installation.checks import all_of_host

    checks = list(itertools.chain(all_of_host(), lost_windows.windows(), trial.frameworks()))
    if as_json:
        listed = [check._asdict() for check in checks]
        click.echo(json.dumps({"ok": not _has_failed(checks), "checks": listed}, indent=1))
    else:
        Console().print(_table(checks))
    if _has_failed(checks):
        sys.exit(1)


def _has_failed(checks: list[Check]) -> bool:
    from opscope.installation.checks import FAILS

    return any(check.verdict == FAILS for check in checks)


def _table(checks: list[Check]) -> Table:
    from opscope.installation.checks import FAILS, FINE, WARNS

    styles = {FINE: "green", WARNS: "yellow", FAILS: "bold red"}
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold", ratio=1)
    for check in checks:
        said = Text(check.found)
        if check.advice:
            said.append(f"\n→ {check.advice}", style="italic")
        table.add_row(Text(check.verdict, style=styles[check.verdict]), check.name, said)
    return table
