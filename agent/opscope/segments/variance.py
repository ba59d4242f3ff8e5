"""Variances of a segment's estimates: of calls and of self time.

With window sampling, the process states them (`opscope_variance` in opscope/segment.h). With
sampling by probability they follow from the records: n ranges of total weight W have the variance
W^2/n - W in calls, and exact counts have none. Variances of processes add up. Standard errors are
their square roots.

A part of a stated variance, here called owed, may fall: it is for work that no window represents
yet, and because few windows tell their spread imprecisely. The variance of an increase between two
snapshots is the difference without this part, plus this part of both: what was owed at the first
may have come since, and what is owed at the second is missing.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import add
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from opscope.segments import layout
from opscope.segments.dictionary import Dictionary
from opscope.segments.layout import U64
from opscope.segments.segment_file import SegmentError

F64 = NDArray[np.float64]

# Columns: calls squared, seconds squared.
CALLS, SELF_S2 = range(2)
COLUMNS = 2
# Of phases also the sum over the windows of their calls, squared; and the owed parts.
WINDOW_CALLS2 = 2
OWED = slice(3, 5)
PHASE_SELF_OWED = 4
PHASE_COLUMNS = 5

_ALL_OPS = 0
"""The operator id of the sums over all operators of a phase."""
# Above the square of any accepted counter; the sum over all accepted files stays finite.
_LIMIT = float(1 << 124)
_STATED = "calls", "total_ticks", "self_ticks", "calls_squared", "calls_owed", "self_owed"

_ZERO = bytes(8)


class Parts(NamedTuple):
    """Both parts of variances, (n, COLUMNS) each, as the processes state them now."""

    settled: F64
    """Without the owed part: these only grow."""
    owed: F64

    @classmethod
    def without_owed(cls, variances: F64) -> Parts:
        return cls(variances, np.zeros_like(variances))

    def summed(self, group: NDArray[np.intp], count: int) -> Parts:
        return Parts(sum_by(group, self.settled, count), sum_by(group, self.owed, count))

    def since(self, earlier: Parts, now: NDArray[np.intp], then: NDArray[np.intp]) -> Parts:
        """Those of the increase; `now`, `then`: the rows, here and earlier, of the same things."""
        settled, owed = self.settled.copy(), self.owed.copy()
        settled[now] = np.maximum(settled[now] - earlier.settled[then], 0)
        owed[now] += earlier.owed[then]
        return Parts(settled, owed)


class PhaseVariance(NamedTuple):
    """Of all operators of a phase together."""

    calls: float
    self_s2: float
    window_calls2: float = 0.0
    """Sum over the windows of their calls, squared; 0: no windows, or an older process."""
    calls_owed: float = 0.0
    """The owed part of `calls`."""
    self_s2_owed: float = 0.0


PhaseVariances = dict[tuple[str, str], PhaseVariance]
"""By service and phase."""
_NO_VARIANCE = PhaseVariance(0.0, 0.0)


class Variances(NamedTuple):
    rows: F64
    """(n, COLUMNS) of each row of a segment; never NaN, even if the self time is unknown. Those of
    exact counts may be read-only."""
    phases: F64
    """(phases, PHASE_COLUMNS) of all operators of a phase together, whose errors correlate."""
    owed: F64
    """(n, COLUMNS) the owed part of `rows`; may be read-only."""


def checked(entries: NDArray[Any], dictionary: Dictionary) -> NDArray[Any]:
    """The same entries of layout.VARIANCE. Raises SegmentError if they are invalid."""
    if not len(entries):
        return entries
    checked_keys(entries["key"], dictionary)
    for name in _STATED:
        check_amounts(entries[name], f"variances: {name}")
    return entries


def checked_keys(keys: U64, dictionary: Dictionary) -> None:
    """Raises SegmentError if they are not those of different sums."""
    ops = set((keys & np.uint64(layout.KEY_OP_MASK)).tolist())
    if not dictionary.ops.keys() | {_ALL_OPS} >= ops:
        raise SegmentError("corrupt", "a variance of an unknown operator")
    labels = set((keys >> np.uint64(layout.KEY_LABELS_SHIFT)).tolist())
    if not dictionary.labels.keys() >= labels:
        raise SegmentError("corrupt", "a variance of an unknown label set")
    if (phases_of(keys) >= len(layout.PHASES)).any():
        raise SegmentError("corrupt", "a variance of an unknown phase")
    if len(set(keys.tolist())) < len(keys):
        raise SegmentError("corrupt", "duplicate variance of a key")


def check_amounts(values: F64, what: str) -> None:
    """Raises SegmentError if one is negative or impossibly large."""
    # NaN is out of range too.
    if not (values.min() >= 0 and values.max() < _LIMIT):
        raise SegmentError("corrupt", what)


def places(keys: U64, of_rows: U64) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """The rows with these keys, and which of the keys have one. `of_rows`: of all rows."""
    if not len(of_rows):
        return np.zeros(0, np.intp), np.zeros(len(keys), np.bool_)
    order = np.argsort(of_rows)
    at = order[np.minimum(np.searchsorted(of_rows, keys, sorter=order), len(of_rows) - 1)]
    # An entry without a row is of ranges that ran after the cells were read.
    known = of_rows[at] == keys
    return at[known], known


def of_phases(entries: NDArray[Any]) -> NDArray[Any]:
    """The entries of the sums over all operators of a phase."""
    whole = entries[entries["key"] & np.uint64(layout.KEY_OP_MASK) == _ALL_OPS]
    found: NDArray[Any] = whole[whole["key"] >> np.uint64(layout.KEY_LABELS_SHIFT) == 0]
    return found


def phases_of(keys: U64) -> U64:
    phases: U64 = keys >> np.uint64(layout.KEY_PHASE_SHIFT) & np.uint64(layout.KEY_PHASE_MASK)
    return phases


def variances(
    entries: NDArray[Any],
    keys: U64,
    samples: U64,
    weights: U64,
    self_s: F64,
    ticks_per_second: int,
) -> Variances:
    """The variances of rows with these keys; `entries` as from `checked`.

    `self_s`: (n,) the estimated seconds of self time, ranges with an unknown self time included, as
    they are in the stated variances.
    """
    calls = weights / layout.WEIGHT_ONE
    if not len(entries) and (calls <= samples).all():
        none = _none(len(keys), COLUMNS)
        return Variances(none, _none(len(layout.PHASES), PHASE_COLUMNS), none)
    second2 = float(ticks_per_second) ** 2
    owed = _none(len(keys), COLUMNS)
    rows = np.zeros((len(keys), COLUMNS))
    if len(keys):
        # Not negative even for weights below 1, which valid files do not have.
        rows[:, CALLS] = np.maximum(calls * (calls / np.maximum(samples, 1) - 1), 0)
        call_s = np.divide(self_s, calls, out=np.zeros(len(keys)), where=calls > 0)
        rows[:, SELF_S2] = call_s**2 * rows[:, CALLS]
    if len(entries) and len(keys):
        at, known = places(entries["key"], keys)
        of_rows = entries[known]
        rows[at, CALLS] = of_rows["calls"]
        rows[at, SELF_S2] = of_rows["self_ticks"] / second2
        if of_rows["calls_owed"].any():
            owed = np.zeros((len(keys), COLUMNS))
            owed[at, CALLS] = of_rows["calls_owed"]
            owed[at, SELF_S2] = of_rows["self_owed"] / second2
    phases = np.zeros((len(layout.PHASES), PHASE_COLUMNS))
    phases[:, :COLUMNS] = sum_by(phases_of(keys).astype(np.intp), rows, len(layout.PHASES))
    whole = of_phases(entries)
    at = phases_of(whole["key"]).astype(np.intp)
    phases[at, CALLS] = whole["calls"]
    phases[at, SELF_S2] = whole["self_ticks"] / second2
    phases[at, WINDOW_CALLS2] = whole["calls_squared"]
    phases[at, OWED] = np.stack((whole["calls_owed"], whole["self_owed"] / second2), axis=1)
    return Variances(rows, phases, owed)


def _none(count: int, columns: int) -> F64:
    """(count, columns) zeros, read-only and without memory of their own."""
    return np.ndarray((count, columns), np.float64, _ZERO, strides=(0, 0))


def by_phase(phases: F64, service: str) -> PhaseVariances:
    """The nonzero variances of a segment, by service and phase."""
    return {
        (service, layout.PHASES[number]): PhaseVariance(*values)
        for number, values in enumerate(phases.tolist())
        if any(values)
    }


def summed(parts: Iterable[PhaseVariances]) -> PhaseVariances:
    found: PhaseVariances = {}
    for part in parts:
        for key, values in part.items():
            found[key] = PhaseVariance(*map(add, found.get(key, _NO_VARIANCE), values))
    return found


def nothing_owed(phases: PhaseVariances) -> PhaseVariances:
    """Those of processes that have ended."""
    return {key: one._replace(calls_owed=0.0, self_s2_owed=0.0) for key, one in phases.items()}


def since(now: PhaseVariances, before: PhaseVariances) -> PhaseVariances:
    """Those of the increase after `before`."""
    return {key: _since(one, before.get(key, _NO_VARIANCE)) for key, one in now.items()}


def _since(now: PhaseVariance, before: PhaseVariance) -> PhaseVariance:
    settled = now.calls - now.calls_owed - (before.calls - before.calls_owed)
    settled_s2 = now.self_s2 - now.self_s2_owed - (before.self_s2 - before.self_s2_owed)
    owed = now.calls_owed + before.calls_owed
    owed_s2 = now.self_s2_owed + before.self_s2_owed
    windows = max(now.window_calls2 - before.window_calls2, 0.0)
    return PhaseVariance(
        max(settled, 0.0) + owed, max(settled_s2, 0.0) + owed_s2, windows, owed, owed_s2
    )


def sum_by(group: NDArray[np.intp], values: F64, count: int) -> F64:
    """(count, COLUMNS) the rows of `values` summed by group."""
    summed = np.zeros((count, COLUMNS))
    for column in range(COLUMNS):
        summed[:, column] = np.bincount(group, values[:, column], count)
    return summed


def rows_of(count: int, known: F64) -> F64:
    """`known`, extended by zeros to `count` rows."""
    out = np.zeros((count, COLUMNS))
    out[: len(known)] = known
    return out
