"""Exported estimates only grow, though estimates may fall a little: a counter must not.

While a self time that has fallen keeps what was exported of it, the other estimates of its service
grow by so much less, each by the same part of its growth. So the exported sum is that of the
estimates, as soon as these have grown by what has fallen. Otherwise it would be that of every
estimate's highest value, which is more time than the threads had.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from opscope.host.processor_time import OnlyGrowing
from opscope.host.snapshot import SELF_NS, TOTAL_NS
from opscope.host.state import Held, State
from opscope.host.totals import Sums
from opscope.segments import variance
from opscope.segments.layout import U64


def hold(state: State, sums: Sums, processor: OnlyGrowing) -> None:
    """Replaces estimates in `sums` by what is exported, and keeps that in the state."""
    held, counters = state.held, sums.counters
    had = len(held.times_ns)
    counters[:, SELF_NS] = grown(
        counters[:, SELF_NS],
        held.times_ns[:, 0],
        sums.variances[:, variance.SELF_S2] > 0.0,
        state.tables.series.services,
    )
    counters[:had, TOTAL_NS] = np.maximum(counters[:had, TOTAL_NS], held.times_ns[:, 1])
    had = len(held.variances)
    sums.variances[:had] = np.maximum(sums.variances[:had], held.variances)
    overhead_ns = max(sums.health.overhead_ns, held.overhead_ns)
    sums.health = sums.health._replace(overhead_ns=overhead_ns)
    processor_ns = processor.hold(sums.measured, held.processor_ns)
    times_ns, variances = counters[:, [SELF_NS, TOTAL_NS]], sums.variances.copy()
    state.held = Held(times_ns, variances, overhead_ns, processor_ns)


def grown(
    now: U64,
    before: U64,
    is_estimate: NDArray[np.bool_],
    services: Callable[[], NDArray[np.intp]],
) -> U64:
    """(n,) the exported self times, in ns. `now`: (n,) the estimates; `before`: (m,) what was
    exported of the first m series; `is_estimate`: (n,) whether an increase may be late; `services`:
    (n,) a number for the service of each, asked for only if an estimate has fallen."""
    had = np.zeros_like(now)
    had[: len(before)] = before
    found: U64 = np.maximum(now, had)
    if not (had > now).any():
        return found
    of = services()
    count = int(of.max()) + 1
    growth = np.where(is_estimate, found - had, np.uint64(0)).astype(np.float64)
    fallen = np.bincount(of, (found - now).astype(np.float64), count)
    of_all = np.bincount(of, growth, count)
    part = np.minimum(np.divide(fallen, of_all, out=np.ones(count), where=of_all > 0.0), 1.0)
    late: U64 = np.minimum(np.rint(growth * part[of]).astype(np.uint64), found - had)
    return found - late
