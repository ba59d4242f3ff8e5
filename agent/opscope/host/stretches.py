"""The times of a segment's rows, with the kernel's count of waiting (host/stops.py).

Programs change, and so does the load beside them, so what is replaced is of a stretch of time.
What it has added stays when it is over: an operator of the last hour gets nothing of this hour's
waiting.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from opscope.host import stops
from opscope.host.processor_time import MainThread
from opscope.host.stops import NEGLIGIBLE, Growth, Replaced
from opscope.segments import variance
from opscope.segments.layout import U64
from opscope.segments.off_cpu import OffCpu
from opscope.segments.variance import F64, PHASE_SELF_OWED, SELF_S2, Variances

# Of CPU time: a stretch. It is long enough to know what to replace.
_STRETCH_NS = 20 * 10**9
# Likewise: the history of a process that an agent sees for the first time, or that waits for the
# first time, is not one stretch if it is longer.
_OLD_NS = 60 * 10**9


class Rows(NamedTuple):
    """What a segment states of its rows."""

    keys: U64
    is_estimate: NDArray[np.bool_]
    """(n,) whether windows estimate its times."""
    times_s: F64
    """(n, 2) self and total time."""
    stated: Variances
    off_cpu: OffCpu
    ticks_per_second: int


class Shown(NamedTuple):
    times_s: F64
    """(n, 2)."""
    variances: Variances
    part: float
    """Of the estimates: what does not rest on the waiting that windows have met."""


# Columns of what only grows, apart from roundings: times, off-CPU times, exact times and counts;
# settled variances, as stated and without off-CPU time.
_TIMES, _OFF_CPU, _EXACT, _COUNTS, _STATED, _ON_CPU = slice(0, 2), slice(2, 4), 4, 5, 6, 7


class _Stretch(NamedTuple):
    """What was there when it began, for rows with these keys, and what was shown then."""

    keys: U64
    sums: F64
    """(n, 8)."""
    phases_s2: F64
    """(phases, 2) settled variances, as stated and without off-CPU time."""
    main: MainThread
    shown_s: F64
    """(n, 2)."""
    shown_s2: F64
    """(n,) settled."""
    shown_phases_s2: F64


class Stretches:
    """Of one segment."""

    __slots__ = ("_last", "_now")

    def __init__(self) -> None:
        self._now: _Stretch | None = None
        self._last: Replaced | None = None

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self._now or () if isinstance(part, np.ndarray))

    def of(self, rows: Rows, main: MainThread, *, is_over: bool) -> Shown:
        """What is shown of the rows. `main`: what the main thread has had; if `is_over`, by the
        last reading, and the process has ended since."""
        if self._now is None:
            if is_over or main.waited <= NEGLIGIBLE * main.used:
                return Shown(rows.times_s, rows.stated, 0.0)
            self._now = _first(len(rows.stated.phases))
            if main.used >= _OLD_NS:
                # Long ago other operators may have run, and nothing may have stopped them.
                self._now = _as_stated(rows, main)
        begun = _aligned(self._now, rows.keys)
        sums, phases = _sums(rows), _phases_s2(rows)
        had = main.since(begun.main)
        more, more_phases = np.maximum(sums - begun.sums, 0.0), phases - begun.phases_s2
        growth = Growth(
            rows.is_estimate,
            more[:, _TIMES],
            more[:, _OFF_CPU],
            more[:, _EXACT],
            more[:, _COUNTS],
        )
        of = self._last = self._replaced(growth, had, is_over)
        of_phases = variance.phases_of(rows.keys).astype(np.intp)
        shown_s = begun.shown_s + stops.times(growth, of)
        shown_s2 = begun.shown_s2 + stops.self_s2(
            growth, more[:, _STATED], more[:, _ON_CPU], had, of
        )
        of_stated, of_on_cpu = np.maximum(more_phases, 0.0).T
        shown_phases_s2 = begun.shown_phases_s2 + stops.phases_s2(
            growth, of_phases, of_stated, of_on_cpu, had, of
        )
        if had.used >= _STRETCH_NS and not is_over:
            self._now = _Stretch(rows.keys, sums, phases, main, shown_s, shown_s2, shown_phases_s2)
        return Shown(shown_s, _variances(rows, shown_s2, shown_phases_s2, of), of.part)

    def _replaced(self, growth: Growth, had: MainThread, is_over: bool) -> Replaced:
        count, last = len(growth.counts), self._last
        if not is_over or last is None:
            return stops.replaced(growth, had)
        # As before the end; a row that came since is one that does not wait by itself.
        own, unsure = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
        if len(last.own) == count:
            own, unsure = last.own, last.unsure
        return last._replace(own=own, unsure=unsure)


def _sums(rows: Rows) -> F64:
    second, off_cpu = rows.ticks_per_second, rows.off_cpu
    sums = np.empty((len(rows.keys), 8))
    sums[:, _TIMES], sums[:, _OFF_CPU] = rows.times_s, off_cpu.times / second
    sums[:, _EXACT], sums[:, _COUNTS] = off_cpu.exact / second, off_cpu.counts
    for column, one in ((_STATED, rows.stated), (_ON_CPU, off_cpu.variances)):
        sums[:, column] = one.rows[:, SELF_S2] - one.owed[:, SELF_S2]
    return sums


def _phases_s2(rows: Rows) -> F64:
    both = rows.stated.phases, rows.off_cpu.variances.phases
    return np.stack([one[:, SELF_S2] - one[:, PHASE_SELF_OWED] for one in both], axis=1)


def _variances(rows: Rows, settled: F64, phases_settled: F64, of: Replaced) -> Variances:
    """With the parts that may fall, which are those of now."""
    stated, on_cpu = rows.stated, rows.off_cpu.variances
    now, better = 1.0 - of.part, of.part * (1.0 + of.waiting) ** 2
    owed = now * stated.owed[:, SELF_S2] + better * on_cpu.owed[:, SELF_S2]
    owed = np.where(of.own, stated.owed[:, SELF_S2], owed)
    of_phases = now * stated.phases[:, PHASE_SELF_OWED]
    of_phases = of_phases + better * on_cpu.phases[:, PHASE_SELF_OWED]
    found = Variances(stated.rows.copy(), stated.phases.copy(), np.array(stated.owed))
    found.rows[:, SELF_S2], found.owed[:, SELF_S2] = settled + owed, owed
    found.phases[:, SELF_S2] = phases_settled + of_phases
    found.phases[:, PHASE_SELF_OWED] = of_phases
    return found


def _as_stated(rows: Rows, main: MainThread) -> _Stretch:
    """The stretch that begins now, after one of which nothing is replaced."""
    sums, phases = _sums(rows), _phases_s2(rows)
    return _Stretch(rows.keys, sums, phases, main, rows.times_s, sums[:, _STATED], phases[:, 0])


def _first(phase_count: int) -> _Stretch:
    """The stretch that begins with the process."""
    return _Stretch(
        np.zeros(0, np.uint64),
        np.zeros((0, 8)),
        np.zeros((phase_count, 2)),
        MainThread(),
        np.zeros((0, 2)),
        np.zeros(0),
        np.zeros(phase_count),
    )


def _aligned(begun: _Stretch, keys: U64) -> _Stretch:
    """The same for rows with these keys; new ones had nothing."""
    if np.array_equal(begun.keys, keys):
        return begun
    at, known = variance.places(begun.keys, keys)

    def of(column: F64) -> F64:
        found = np.zeros((len(keys), *column.shape[1:]))
        found[at] = column[known]
        return found

    return begun._replace(
        keys=keys,
        sums=of(begun.sums),
        shown_s=of(begun.shown_s),
        shown_s2=of(begun.shown_s2),
    )
