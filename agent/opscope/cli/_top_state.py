"""What the keys of `opscope top` change: order, filter, phase, the marked row, the screen.

No terminal: keys in, state out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from opscope.reports.view import SORTS, Row

HELP = """\
Keys
  q         quit; in another screen, back to the table
  s, S      the next order of the rows, the one before
  f         filter by a part of the operator's name;
            Enter keeps it, Escape removes it
  p         only the next phase (forward, backward, ...),
            after the last one all
  up, down  mark a row (also k and j)
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
    marked: str = ""
    """The operator of the marked row; empty: no row is marked."""
    is_held: bool = False

    def press(self, key: str, rows: Sequence[Row], phases: Sequence[str]) -> bool:
        """Applies a key. `rows`: those on the screen; `phases`: those there are. False: quit."""
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
        elif key == "f":
            self.screen = Screen.FILTER
        elif key == "p":
            every = [None, *phases]
            at = every.index(self.phase) if self.phase in every else 0
            self.phase = every[(at + 1) % len(every)]
        elif key in ("down", "j", "up", "k"):
            self._mark(1 if key in ("down", "j") else -1, [row.key.op for row in rows])
        elif key == "enter" and rows:
            self.marked = self.marked or rows[0].key.op
            self.screen = Screen.DETAILS
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
            self.filter, self.phase, self.marked = "", None, ""
            return True
        return False

    def _mark(self, step: int, names: Sequence[str]) -> None:
        if not names:
            self.marked = ""
        elif self.marked not in names:
            self.marked = names[0] if step > 0 else names[-1]
        else:
            self.marked = names[min(max(names.index(self.marked) + step, 0), len(names) - 1)]
