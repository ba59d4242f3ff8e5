"""Self times of a segment's rows, within the time that its threads had.

A window that happens to contain a rare long wait, such as the moment in which the kernel stops a
thread for its CPU quota, represents many such waits. The estimate is right on average, but for a
while it may exceed the time that has passed. Such an excess is not an amount that any thread can
have spent, so `PossibleTimes` keeps it back until that much time has passed. If the process ends
before, host/kept_back.py continues: a service of short processes needs what is kept back, because
windows do not meet many of its processes at all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from opscope.segments.layout import U64

F64 = NDArray[np.float64]

# Columns of segment.Rows.values.
_WHOLE, _TOTAL, _SELF = 2, 3, 4
NO_LIMIT = float("inf")
_MAINLY = 0.95


def known_share(values: U64) -> F64:
    """(n,) the factor that extrapolates the measured self time of rows; 0 if none was measured.

    `values`: as segment.Rows.values. Self time is known for a part of the total time; the rest is
    assumed to have the same share of it. Extrapolation by the number of ranges would be biased:
    ranges that outlast a window are long, and the self time of some is unknown.
    """
    whole, total = values[:, _WHOLE], values[:, _TOTAL]
    share: F64 = np.divide(total, whole, out=np.zeros(len(total)), where=whole > 0)
    return share


def estimated(values: U64) -> F64:
    """(n,) the self time of rows, in ticks."""
    return values[:, _SELF] * known_share(values)


def wanted(values: U64) -> F64:
    """(n, 2) the self and total time of rows, in ticks."""
    times = np.empty((len(values), 2))
    times[:, 0], times[:, 1] = estimated(values), values[:, _TOTAL]
    return times


def possible_ticks(
    elapsed_ticks: int,
    cells: NDArray[Any],
    table: NDArray[np.uint32],
    row: NDArray[np.intp] | None,
    values: U64,
) -> float:
    """The most self time of all rows together; NO_LIMIT if the estimates keep within it.

    A table belongs to one thread at a time, so its share of the estimates is at most the time
    since the segment was made. `elapsed_ticks`: that time; 0 or less: unknown. `cells`, `table`:
    all cells and the table of each; `row`: of each cell, None: the same index.
    """
    if elapsed_ticks <= 0 or float(estimated(values).sum()) <= elapsed_ticks:
        return NO_LIMIT
    share = known_share(values)
    of_cells = cells["self_ticks"] * (share if row is None else share[row])
    of_tables = np.bincount(np.unique(table, return_inverse=True)[1], of_cells)
    if (of_tables <= elapsed_ticks).all():
        return NO_LIMIT
    return float(np.minimum(of_tables, elapsed_ticks).sum())


def elapsed_ticks_of_all(elapsed_ticks: int, table: NDArray[np.uint32]) -> float:
    """The time of all threads together since the segment was made; NO_LIMIT if unknown.

    As above. A program's main thread had that time though it may have recorded nothing."""
    if elapsed_ticks <= 0:
        return NO_LIMIT
    threads = min(int(table.max(initial=0)) + 1, max(1, len(table)))
    return float(elapsed_ticks) * threads


def is_mainly_main(
    main_table: int,
    cells: NDArray[Any],
    table: NDArray[np.uint32],
    row: NDArray[np.intp] | None,
    values: U64,
) -> bool:
    """Whether nearly all self time is in the main thread's table. `main_table`: its number + 1; 0:
    unknown. The other arguments: as above."""
    of_main = table == main_table - 1
    if not main_table or of_main.all():
        return main_table != 0
    share = known_share(values)
    self_ticks = cells["self_ticks"] * (share if row is None else share[row])
    return float(self_ticks[of_main].sum()) >= _MAINLY * float(self_ticks.sum())


class PossibleTimes:
    """The times of one segment's rows that have been possible so far; they only grow.

    Of the growth of all rows together, each shows the same part if it is more than is possible.
    The rest is shown when time has passed. A row's total time follows its self time.
    """

    def __init__(self) -> None:
        self._keys: U64 = np.zeros(0, np.uint64)
        self._shown: F64 = np.zeros((0, 2))
        self.kept_back: F64 | None = None
        """(n, 2) self and total ticks of the rows that were not possible in the last read."""

    @property
    def nbytes(self) -> int:
        return self._keys.nbytes + self._shown.nbytes

    def of(self, keys: U64, wanted: F64, limit: float) -> tuple[F64, F64]:
        """(n,) self and total ticks of the rows `keys`. `wanted`: (n, 2) the estimates of both;
        `limit`: `possible_ticks` of this read."""
        shown = wanted  # which may have fallen a little since the last read
        self.kept_back = None
        if limit < NO_LIMIT:
            before = self._aligned(keys)
            hidden = np.maximum(wanted - before, 0.0)
            room, growth = limit - float(before[:, 0].sum()), float(hidden[:, 0].sum())
            if growth > room:
                shown = before + hidden * (max(room, 0.0) / growth)
                self.kept_back = np.maximum(wanted - shown, 0.0)
        self._keys, self._shown = keys, shown
        return shown[:, 0], shown[:, 1]

    @property
    def shown_ticks(self) -> float:
        """Self time of all rows together."""
        return float(self._shown[:, 0].sum())

    def _aligned(self, keys: U64) -> F64:
        """What was shown of each row, 0 of a new one."""
        if np.array_equal(keys, self._keys):
            return self._shown
        shown = np.zeros((len(keys), 2))
        if len(self._keys):
            order = np.argsort(self._keys)
            known = self._keys[order]
            at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
            is_known = known[at] == keys
            shown[is_known] = self._shown[order[at[is_known]]]
        return shown
