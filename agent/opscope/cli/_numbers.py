"""Numbers on the command line: finite and within bounds; an error names both bounds."""

from __future__ import annotations

import math
from typing import Any

import click

MOST_S = 31 * 86400.0
"""Longest duration; the system's own clocks reject far longer ones."""
PID = click.IntRange(min=1, max=(1 << 31) - 1)


class Finite(click.FloatRange):
    """click.FloatRange accepts NaN, and infinity in an open range; this does not."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return found


def duration(least: float, most: float = MOST_S, *, min_open: bool = False) -> Finite:
    return Finite(min=least, max=most, min_open=min_open)
