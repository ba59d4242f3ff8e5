"""Take places of living processes' series back if another user or service has too few.

division.py computes how many each may have. A user or service with more gives up the series that
have counted nothing for the longest time, and of these the smallest. From then on their rows count
under the service's `other`, and never get a series of their own again. The series itself stays
until it is exported; then its place becomes free (retirement.py), and rows that wait get series of
their own. So at each moment every call is in one series, and no series decreases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from opscope.host.division import Owner, targets
from opscope.host.key_tables import KeyTables
from opscope.host.series_table import SeriesTable
from opscope.host.snapshot import COUNTER_COLUMNS, SAMPLES, TOTAL_NS
from opscope.host.tracked_segment import TrackedSegment
from opscope.segments.layout import U64


class TakeBack:
    """The series of one host."""

    def __init__(self, idle_s: float) -> None:
        """`idle_s`: as Retirement's."""
        self._idle_ns = round(idle_s * 1e9)
        self._counters: U64 = np.zeros((0, COUNTER_COLUMNS), np.uint64)
        self._changed: NDArray[np.int64] = np.zeros(0, np.int64)
        """The pass in which each series last counted something."""
        self._passes = 0

    def note(self, counters: U64) -> None:
        """The sums of a pass by series."""
        self._passes += 1
        changed = np.full(len(counters), self._passes)
        known = min(len(self._counters), len(counters))
        same = counters[:known, SAMPLES] == self._counters[:known, SAMPLES]
        changed[:known][same] = self._changed[:known][same]
        self._counters, self._changed = counters, changed

    def divide(
        self,
        tables: KeyTables,
        files: Collection[TrackedSegment],
        now_ns: int,
    ) -> None:
        """Folds series into `other` if somebody waits for their places."""
        table, waiting = tables.series, _waiting(files)
        owned = table.owned() if waiting else {}
        have = {owner: len(numbers) for owner, numbers in owned.items()}
        goes_on = bool(table.targets)
        goal = targets(have, waiting, table.own_limit, table.alone_limit, goes_on)
        # An earlier agent may have stopped before the rows that waited asked.
        if goal != table.targets or (goal and self._passes == 0):
            table.targets = goal
            table.changes += 1
        folded: list[int] = []
        counted = _counted(files) if goal else set()
        for owner, numbers in owned.items():
            count = len(numbers) - goal.get(owner, len(numbers))
            if count > 0:
                idle = now_ns - self._idle_ns
                may_go = (n for n in numbers if n in counted or table.ended_unix_ns[n] <= idle)
                least = sorted(may_go, key=self._rank)
                folded += _given_up(table, owner, least[:count], files)
        if folded:
            gone = np.array(folded)
            for user in {table.users[number] for number in folded}:
                tables.limited.note(user, "series")
            for file in files:
                file.fold(gone, tables, now_ns)
            table.leave(folded, now_ns)

    def _rank(self, number: int) -> tuple[int, int]:
        if number >= len(self._changed):
            return self._passes, 0
        return int(self._changed[number]), int(self._counters[number, TOTAL_NS])


def above_part(table: SeriesTable, files: Collection[TrackedSegment]) -> set[int]:
    """The users who have or want more series than an equal part: others wait for a pass or two."""
    wants: Counter[int] = Counter()
    for owner, numbers in table.owned().items():
        wants[owner.user] += len(numbers)
    for owner, count in _waiting(files).items():
        wants[owner.user] += count
    part = table.own_limit // (len(wants) + 1) if len(wants) > 1 else 0
    return {user for user, count in wants.items() if count > part}


def _waiting(files: Collection[TrackedSegment]) -> dict[Owner, int]:
    """For each service, the most rows of one of its processes that wait for a series."""
    found: dict[Owner, int] = {}
    for file in files:
        count = len(file.moved.waiting)
        if count:
            owner = Owner(file.user, file.service)
            found[owner] = max(found.get(owner, 0), count)
    return found


def _counted(files: Collection[TrackedSegment]) -> set[int]:
    """The series that live processes count under."""
    maps = (file.series_map for file in files)
    return {number for one in maps if one is not None for number in one.series.tolist()}


def _given_up(
    table: SeriesTable, owner: Owner, numbers: Sequence[int], files: Collection[TrackedSegment]
) -> list[int]:
    """The numbers but those that another user's process counts under too: they become its own."""
    given_up = {*numbers}
    for file in files:
        if file.user != owner.user and file.series_map is not None:
            for number in given_up.intersection(file.series_map.series.tolist()):
                table.give(number, file.user)
                given_up.discard(number)
    return sorted(given_up)
