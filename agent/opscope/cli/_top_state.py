"""What the keys of `opscope top` change: order, filter, phase, the marked row, the screen.

No terminal: keys in, state out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from opscope.reports.choices import SORTS

if TYPE_CHECKING:
    from opscope.host.snapshot import SeriesKey
    from opscope.reports.view import Row

HELP = """\
Keys
  q         quit; in another screen, back to the table
  s, S      the next order of the rows, the one before
  f         filter by a part of the operator's name;
            Enter keeps it, Escape removes it
  p         only the next phase (forward, backward, ...),
            after the last one all
  up, down  mark a row (also k and j); page up, page down,
            home and end go farther
  enter     the marked operator by service and phase
  space     hold the numbers, and go on
  escape    without filter, phase and mark
  ?         this help

calls/s, self %: with a standard error (±) where the
estimate is imprecise; such rows are dim.
p50, p95, p99: half, 95 % and 99 % of the calls are at
most that long; - means too few samples."""


class Screen(Enum):
    TABLE = "table"
    FILTER = "filter"
    DETAILS = "details"
    HELP = "help"


@dataclass
class TopState:
    sort: str
    screen: Screen = Screen.TABLE
    filter: str = ""
    phase: str | None = None
    """None: all."""
    marked: SeriesKey | None = None
    """What the marked row is of; None: no row is marked."""
    first: int = 0
    """The number of the first row on the screen."""
    is_held: bool = False

    def press(self, key: str, rows: Sequence[Row], room: int, phases: Sequence[str]) -> bool:
        """Applies a key. `rows`: all of the table, of which the screen has `room`; `phases`: those
        there are. False: quit."""
        if self.screen is Screen.FILTER:
            self._type(key)
        elif key in ("q", "escape"):
            return self._back(key)
        elif key == "?":
            self.screen = Screen.HELP
        elif key == " ":
            self.is_held = not self.is_held
        elif key in ("s", "S"):
            step = 1 if key == "s" else -1
            self.sort = SORTS[(SORTS.index(self.sort) + step) % len(SORTS)]
            self.first = 0
        elif key == "f":
            self.screen, self.first = Screen.FILTER, 0
        elif key == "p":
            every = [None, *phases]
            at = every.index(self.phase) if self.phase in every else 0
            self.phase = every[(at + 1) % len(every)]
            self.first = 0
        elif self.screen is Screen.TABLE and rows:
            keys = [row.key for row in rows]
            if key == "enter":
                self.marked = self.marked or keys[min(self.first, len(keys) - 1)]
                self.screen = Screen.DETAILS
            else:
                self._move(key, keys, room)
        return True

    def takes(self, row: Row) -> bool:
        """Whether the filter lets the row through; upper and lower case are alike."""
        return self.filter.lower() in row.key.op.lower()

    def _type(self, key: str) -> None:
        if key == "enter":
            self.screen = Screen.TABLE
        elif key == "escape":
            self.filter, self.screen = "", Screen.TABLE
        elif key == "backspace":
            self.filter = self.filter[:-1]
        elif len(key) == 1:
            self.filter += key

    def _back(self, key: str) -> bool:
        if self.screen is not Screen.TABLE:
            self.screen = Screen.TABLE
            return True
        if key == "escape":
            self.filter, self.phase, self.marked, self.first = "", None, None, 0
            return True
        return False

    def _move(self, key: str, keys: Sequence[SeriesKey], room: int) -> None:
        """Marks another row, and scrolls to it."""
        last = len(keys) - 1
        steps = {"down": 1, "j": 1, "up": -1, "k": -1, "page down": room, "page up": -room}
        if key in ("home", "end"):
            at = 0 if key == "home" else last
        elif step := steps.get(key, 0):
            if self.marked in keys:
                at = keys.index(self.marked)
            else:  # from outside of the screen into it
                at = self.first - 1 if step > 0 else min(self.first + room, len(keys))
            at = min(max(at + step, 0), last)
        else:
            return
        self.marked = keys[at]
        self.first = min(max(self.first, at - room + 1), at)
