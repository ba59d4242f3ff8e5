"""What a segment states of its main thread's off-CPU time within ranges: `opscope_off_cpu` in
opscope/segment.h. host/stops.py uses it.

A key without an entry had none. Its variance is the one that `opscope_variance` states.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from opscope.segments import variance
from opscope.segments.dictionary import Dictionary
from opscope.segments.layout import U64
from opscope.segments.variance import F64, Variances

_STATED = "self_ticks", "total_ticks", "exact_ticks", "variance", "owed"


class OffCpu(NamedTuple):
    """Of a segment's rows."""

    times: F64
    """(n, 2) ticks of off-CPU time that the estimated self and total times contain. Of an outer
    range: that of the windows' estimates for the ranges directly inside, and these estimates."""
    exact: F64
    """(n,) ticks of the outer ranges directly inside an outer one; else 0."""
    counts: F64
    """(n,) recorded ranges with such self time; 0 of outer ranges."""
    variances: Variances
    """Of self times without it; of calls as stated."""


def checked(entries: NDArray[Any], dictionary: Dictionary) -> NDArray[Any]:
    """The same entries of layout.OFF_CPU. Raises SegmentError if they are invalid."""
    if len(entries):
        variance.checked_keys(entries["key"], dictionary)
    for name in _STATED if len(entries) else ():
        variance.check_amounts(entries[name], f"off-CPU times: {name}")
    return entries


def of_rows(entries: NDArray[Any], keys: U64, stated: Variances, ticks_per_second: int) -> OffCpu:
    """`entries` as from `checked`; `stated`: the variances of the rows with these keys."""
    times, exact, counts = np.zeros((len(keys), 2)), np.zeros(len(keys)), np.zeros(len(keys))
    if not len(entries) or not len(keys):
        return OffCpu(times, exact, counts, stated)
    second2 = float(ticks_per_second) ** 2
    at, known = variance.places(entries["key"], keys)
    of = entries[known]
    times[at, 0], times[at, 1] = of["self_ticks"], of["total_ticks"]
    exact[at], counts[at] = of["exact_ticks"], of["count"]
    is_estimate = stated.rows[at, variance.CALLS] > 0
    at, of = at[is_estimate], of[is_estimate]
    rows, owed = stated.rows.copy(), np.array(stated.owed)
    rows[at, variance.SELF_S2] = of["variance"] / second2
    owed[at, variance.SELF_S2] = of["owed"] / second2
    phases = stated.phases.copy()
    whole = variance.of_phases(entries)
    at = variance.phases_of(whole["key"]).astype(np.intp)
    phases[at, variance.SELF_S2] = whole["variance"] / second2
    phases[at, variance.PHASE_SELF_OWED] = whole["owed"] / second2
    return OffCpu(times, exact, counts, Variances(rows, phases, owed))
