"""What a table of operators shows: rates, shares and quantiles, from a snapshot. Pure; no terminal.

Shares are of the time spent inside operators, all threads together: the sum of all self times.
Where a self time is not known they are of the sum of all total times instead, in which time in
nested operators counts at each level; a view says which of the two it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from opscope.agent.snapshot import Process, SeriesKey, Snapshot

_SORT_FIELDS = {
    "total": "total_share",
    "self": "self_share",
    "calls": "calls_per_s",
    "p50": "p50_s",
    "p95": "p95_s",
    "p99": "p99_s",
    "bytes": "bytes_per_s",
}
SORTS = (*_SORT_FIELDS, "op")


Grouping = Callable[[SeriesKey], SeriesKey]


class Row(NamedTuple):
    key: SeriesKey
    calls_per_s: float
    total_share: float
    self_share: float | None
    """None: not known."""
    p50_s: float
    p95_s: float
    p99_s: float
    bytes_per_s: float | None
    """Allocated; None: not known."""


@dataclass(frozen=True)
class View:
    rows: tuple[Row, ...]
    """Operators that ran in the time looked at."""
    seconds: float
    """How long that was."""
    is_since_start: bool
    """Rather than since an earlier look."""
    base_s: float
    """What shares are of."""
    base_is_self: bool
    samples: int
    """Ranges recorded in the time looked at."""


def by_operator(key: SeriesKey) -> SeriesKey:
    return SeriesKey("", key.op, "", ())


def by_process(key: SeriesKey) -> SeriesKey:
    return SeriesKey(key.service, key.op, "", (), key.process)


def view(
    snapshot: Snapshot, before: Snapshot | None, grouping: Grouping, sort: str = "total"
) -> View:
    """The view of what was counted after an earlier snapshot of the same host, or of everything."""
    if before is None:
        created = snapshot.created_unix_ns[snapshot.samples > 0]
        since_ns = int(created.min()) if len(created) else snapshot.time_unix_ns
    else:
        snapshot, since_ns = snapshot.since(before), before.time_unix_ns
    seconds = (snapshot.time_unix_ns - since_ns) / 1e9
    return _view(snapshot.grouped(grouping), seconds, before is None, sort)


def _view(snapshot: Snapshot, seconds: float, is_since_start: bool, sort: str) -> View:
    ran = snapshot.samples > 0
    self_s, total_s = snapshot.self_s, snapshot.total_s
    base_is_self = not np.isnan(self_s[ran]).any()
    base_s = float((self_s if base_is_self else total_s)[ran].sum())
    p50, p95, p99 = (snapshot.quantile(p).tolist() for p in (0.5, 0.95, 0.99))
    allocated = snapshot.bytes.tolist()
    rows = [
        Row(
            snapshot.keys[i],
            calls / seconds if seconds > 0 else 0.0,
            _share(total_s[i], base_s),
            None if np.isnan(self_s[i]) else _share(self_s[i], base_s),
            p50[i],
            p95[i],
            p99[i],
            allocated[i] / seconds if allocated[i] and seconds > 0 else None,
        )
        for i, calls in enumerate(snapshot.calls.tolist())
        if ran[i]
    ]
    rows.sort(key=lambda row: _order(row, sort))
    return View(
        tuple(rows), seconds, is_since_start, base_s, base_is_self, int(snapshot.samples.sum())
    )


def _order(row: Row, sort: str) -> tuple[float, str, int]:
    """Largest first; what is not known last."""
    value = getattr(row, _SORT_FIELDS[sort]) if sort != "op" else 0.0
    return (1.0 if value is None else -value, row.key.op, row.key.process or 0)


def _share(part: float, whole: float) -> float:
    return float(part) / whole if whole > 0 else 0.0


def sampling(processes: tuple[Process, ...]) -> str:
    """How these processes sample, for people."""
    modes = {_mode(process) for process in processes}
    return modes.pop() if len(modes) == 1 else ("mixed" if modes else "-")


def _mode(process: Process) -> str:
    if process.is_disabled:
        return "turned off by opscope set"
    if process.window_ns:
        return f"{process.window_ns / 1e6:g} ms windows every {process.period_ns / 1e6:g} ms"
    if process.sampling_prob == 1:
        return "every range"
    return f"{process.sampling_prob * 100:.3g} % of ranges"


def overhead(processes: tuple[Process, ...], now_unix_ns: int) -> float | None:
    """The share of these processes' wall time that recording took; None without any."""
    wall_ns = sum(max(now_unix_ns - process.created_unix_ns, 0) for process in processes)
    if not wall_ns:
        return None
    return sum(process.health.overhead_ns for process in processes) / wall_ns
