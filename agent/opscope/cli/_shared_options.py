"""Options that several commands share."""

from __future__ import annotations

import click

from opscope.cli._numbers import Finite

DIRECTORY = click.option(
    "--directory",
    "places",
    metavar="DIR",
    multiple=True,
    help="Directory of segment files; repeatable.",
)
LIMIT = click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=25,
    show_default=True,
    help="Maximum number of rows.",
)
MIN_CHANGE = click.option(
    "--min-change",
    type=Finite(min=0, max=1e6),
    default=5.0,
    show_default=True,
    help="Smallest change that counts, in percent.",
)
CHECK = click.option("--check", is_flag=True, help="Exit with status 1 if an operator got slower.")
