"""The numbers in a table of operators: rates, shares and quantiles of a snapshot. No terminal.

Shares are of the time spent inside operators by all threads: the sum of all self times. Windows
may meet none of the operators in an outer range, whose time is known exactly: then the shares are
of that time, which is the least that was spent. The known self times are the least, too, if those
of a few calls are unknown. If those of many are, such as of an integrator that calls the program
back for longer than a window, shares are of the time in which the programs' threads had a processor
or waited for one. Where operators took longer than that, because they wait for something else,
shares are of the known self times if these are most of the time, else of the sum of all total
times, in which nested time counts at each level. A view says which of these applies.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from opscope.host.snapshot import (
    OTHER,
    SELF_NS,
    SELF_UNKNOWN,
    WEIGHT,
    Process,
    SeriesKey,
    Snapshot,
)
from opscope.reports import certainty
from opscope.reports.certainty import Unseen
from opscope.reports.choices import GROUPED_BY, SORT_FIELDS

_ROUNDED = 1e-6
"""What roundings change."""
_FEW = 0.1
"""Of the known self times: so much more may have been spent where shares are of these."""
_WORTH_TELLING = 0.01
"""Of all CPU time: a service with less has hardly any operators that windows could meet."""

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
    """Allocated bytes per second; None: unknown."""
    samples: int
    """Number of recorded ranges, on which the other fields rest."""
    calls_error: float
    """Standard error of `calls_per_s`; 0: exact."""
    self_error: float | None
    """Standard error of `self_share`; None: unknown."""

    @property
    def is_unsure(self) -> bool:
        """Whether any field is too imprecise to be shown without its error."""
        return certainty.is_unsure(self.calls_per_s, self.calls_error) or certainty.is_unsure(
            self.self_share, self.self_error
        )

    def facts(self) -> dict[str, Any]:
        """For JSON, which has no NaN."""
        return {
            "operator": self.key.op,
            "framework": self.key.framework,
            "samples": self.samples,
            "calls_per_s": self.calls_per_s,
            "calls_per_s_error": self.calls_error,
            "total_share": self.total_share,
            "self_share": self.self_share,
            "self_share_error": self.self_error,
            "is_unsure": self.is_unsure,
            "p50_s": _known(self.p50_s),
            "p95_s": _known(self.p95_s),
            "p99_s": _known(self.p99_s),
            "bytes_per_s": self.bytes_per_s,
        }


class Base(Enum):
    """What shares are of."""

    SELF = "self"
    """The sum of all self times."""
    RUNNING = "running"
    """What the programs' threads used of the processors, and waited for one."""
    TOTAL = "total"
    """The sum of all total times."""


@dataclass(frozen=True)
class View:
    rows: tuple[Row, ...]
    """Operators that ran in the period, or whose time counts in it."""
    seconds: float
    """Length of the period."""
    is_since_start: bool
    """Whether the period begins at the start, not at an earlier snapshot."""
    base_s: float
    """The total that shares are of, in seconds."""
    base_of: Base
    base_is_least: bool
    """Whether more was spent than the known self times, or than the exact time of outer ranges."""
    samples: int
    """Ranges recorded in the period."""
    unseen: Unseen
    """What may be missing of the period."""
    unmet: Mapping[str, float]
    """Services of which windows met no operator in the period: the CPU time of each in seconds, the
    largest first. Those with little of all CPU time are left out."""
    cpu_s: float | None
    """What the programs used of the processors, in seconds; None if it is unknown."""

    @property
    def base_is_self(self) -> bool:
        return self.base_of is Base.SELF

    @property
    def self_base_s(self) -> float | None:
        """`base_s`; None if self times are too little known to be shown for themselves."""
        return None if self.base_of is Base.TOTAL else self.base_s


def by_operator(key: SeriesKey) -> SeriesKey:
    return SeriesKey("", key.op, "", ())


def by_process(key: SeriesKey) -> SeriesKey:
    return SeriesKey(key.service, key.op, "", (), key.process)


def by_labels(key: SeriesKey) -> SeriesKey:
    return SeriesKey("", key.op, "", key.labels)


def by_phase(key: SeriesKey) -> SeriesKey:
    return SeriesKey(key.service, key.op, key.phase, ())


_OTHER_PHASES = SeriesKey("", "", "", ())


def within_phase(grouping: Grouping, phase: str) -> Grouping:
    """As `grouping`, for the series of one phase; a view leaves all others out of its rows, but not
    out of the time that shares are of."""
    return lambda key: grouping(key) if key.phase == phase else _OTHER_PHASES


GROUPINGS: dict[str, Grouping] = dict(
    zip(GROUPED_BY, (by_operator, by_process, by_labels), strict=True)
)


def view(
    snapshot: Snapshot,
    before: Snapshot | None,
    grouping: Grouping,
    sort: str = "total",
    services: Snapshot | None = None,
) -> View:
    """The view of the increase since an earlier snapshot of the same host, or of everything.

    `services`: the increase by service, if `snapshot` has sums over services."""
    used_s = _increase(snapshot.cpu_time_s, before.cpu_time_s if before is not None else {})
    waited_s = _increase(snapshot.cpu_wait_s, before.cpu_wait_s if before is not None else {})
    cpu_s = sum(used_s.values())
    if before is None:
        created = snapshot.created_unix_ns[snapshot.samples > 0]
        since_ns = int(created.min()) if len(created) else snapshot.time_unix_ns
    else:
        snapshot, since_ns = snapshot.since(before), before.time_unix_ns
    seconds = (snapshot.time_unix_ns - since_ns) / 1e9
    services = services or snapshot
    unseen, unmet = _unseen(services), _unmet(services, used_s)
    return _view(
        snapshot.grouped(grouping),
        seconds,
        before is None,
        sort,
        unseen,
        unmet,
        cpu_s if cpu_s > 0 else None,
        cpu_s + sum(waited_s.values()),
        _least_s(services),
    )


def is_self_known(snapshot: Snapshot) -> bool:
    """Whether the known self times are more than what the others can be: their total times."""
    unknown_s = _unknown_self_s(snapshot)
    return unknown_s == 0 or float(known_self_s(snapshot).sum()) > unknown_s


def _unknown_self_s(snapshot: Snapshot) -> float:
    """What the unknown self times are at most: the total times of their calls."""
    share = snapshot.counters[:, SELF_UNKNOWN] / np.maximum(snapshot.counters[:, WEIGHT], 1)
    return float((snapshot.total_s * share).sum())


def known_self_s(snapshot: Snapshot) -> NDArray[np.float64]:
    """(n,) self times of the calls whose self time is known."""
    return snapshot.counters[:, SELF_NS] / 1e9


def _increase(
    now: Mapping[tuple[str], float], earlier: Mapping[tuple[str], float]
) -> dict[str, float]:
    """By service. What a process had which has changed its service moves: the service it left may
    have lost some."""
    return {
        key[0]: now.get(key, 0.0) - earlier.get(key, 0.0) for key in dict.fromkeys((*now, *earlier))
    }


def _least_s(snapshot: Snapshot) -> float:
    """What was spent in operators at least: of each service that is sampled, the sum of all self
    times, or the exact time of one operator if that is more."""
    sampled = {one.service for one in snapshot.processes if not one.is_exact}
    self_s, total_s = known_self_s(snapshot).tolist(), snapshot.total_s.tolist()
    by_service: defaultdict[str, float] = defaultdict(float)
    exact: defaultdict[tuple[str, str], float] = defaultdict(float)
    for row, is_estimate in enumerate((certainty.calls_variance(snapshot) > 0).tolist()):
        key = snapshot.keys[row]
        by_service[key.service] += self_s[row]
        if key.service in sampled:
            exact[key.service, key.op] += math.nan if is_estimate else total_s[row]
    for (service, _), seconds in exact.items():
        if seconds > by_service[service]:
            by_service[service] = seconds
    return sum(by_service.values())


def _unseen(snapshot: Snapshot) -> Unseen:
    """Of the service that is sampled most rarely: a sum over services would be about those with the
    most samples."""
    sums: dict[str, tuple[float, float]] = {}
    estimated = np.flatnonzero(certainty.calls_variance(snapshot) > 0).tolist()
    samples, calls = snapshot.samples, snapshot.calls
    for row in estimated:
        service = snapshot.keys[row].service
        known = sums.get(service, (0.0, 0.0))
        sums[service] = known[0] + float(samples[row]), known[1] + float(calls[row])
    windows: dict[str, list[float]] = {}
    for (service, _), one in snapshot.phase_variances.items():
        windows.setdefault(service, []).append(one.window_calls2)
    most = certainty.NOTHING_UNSEEN
    for service, (recorded, stands_for) in sums.items():
        of_it = certainty.unseen(recorded, stands_for, windows.get(service, ()))
        most = most.most(of_it)
    return most


def _unmet(snapshot: Snapshot, used_s: Mapping[str, float]) -> dict[str, float]:
    in_windows = {one.service for one in snapshot.processes if one.window_ns}
    is_met = (certainty.calls_variance(snapshot) > 0) & (snapshot.samples > 0)
    met = {snapshot.keys[row].service for row in np.flatnonzero(is_met).tolist()}
    if OTHER.service in met:
        return {}  # beyond the limit of series: it may be any service's
    least_s = _WORTH_TELLING * sum(used_s.values())
    found = {
        service: seconds
        for service, seconds in used_s.items()
        if service in in_windows - met and 0 < seconds >= least_s
    }
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _view(
    snapshot: Snapshot,
    seconds: float,
    is_since_start: bool,
    sort: str,
    unseen: Unseen,
    unmet: Mapping[str, float],
    cpu_s: float | None,
    running_s: float,
    least_s: float,
) -> View:
    self_s, total_s = snapshot.self_s, snapshot.total_s
    # Time that was kept back counts later, without a new call: native/SAMPLING.md.
    ran = (snapshot.samples > 0) | (snapshot.counters[:, SELF_NS] > 0)
    base_of, base_s = _base(snapshot, ran, running_s)
    base_is_least = base_of is Base.SELF and least_s > base_s * (1 + _ROUNDED)
    base_s = least_s if base_is_least else base_s
    base_is_least |= base_of is Base.SELF and bool(np.isnan(self_s[ran]).any())
    p50, p95, p99 = (certainty.quantile(snapshot, p).tolist() for p in certainty.LEAST_SAMPLES)
    calls_errors = np.sqrt(certainty.calls_variance(snapshot)).tolist()
    self_errors = [certainty.error_of(one) for one in certainty.self_variance(snapshot).tolist()]
    samples = snapshot.samples.tolist()
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
            samples[i],
            calls_errors[i] / seconds if seconds > 0 else 0.0,
            _error_share(self_errors[i], base_s),
        )
        for i, calls in enumerate(snapshot.calls.tolist())
        if ran[i] and snapshot.keys[i] != _OTHER_PHASES
    ]
    rows.sort(key=lambda row: _order(row, sort))
    return View(
        tuple(rows),
        seconds,
        is_since_start,
        base_s,
        base_of,
        base_is_least,
        int(snapshot.samples.sum()),
        unseen,
        unmet,
        cpu_s,
    )


def _base(snapshot: Snapshot, ran: NDArray[np.bool_], running_s: float) -> tuple[Base, float]:
    """`ran`: (n,) the rows to count; `running_s`: as of Base.RUNNING; 0 if it is unknown."""
    self_s, total_s = known_self_s(snapshot)[ran], snapshot.total_s[ran]
    known_s = float(self_s.sum())
    is_running_more = known_s <= running_s >= float(total_s.max(initial=0.0))
    if is_running_more and _unknown_self_s(snapshot) > _FEW * known_s:
        return Base.RUNNING, running_s
    if is_self_known(snapshot):
        return Base.SELF, known_s
    return Base.TOTAL, float(total_s.sum())


def _order(row: Row, sort: str) -> tuple[float, str, int]:
    """Largest first; unknown values last."""
    value = getattr(row, SORT_FIELDS[sort]) if sort != "op" else 0.0
    return (1.0 if value is None else -value, row.key.op, row.key.process or 0)


def _share(part: float, whole: float) -> float:
    return float(part) / whole if whole > 0 else 0.0


def _error_share(error: float | None, whole: float) -> float | None:
    return None if error is None else _share(error, whole)


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def sampling(processes: tuple[Process, ...]) -> str:
    """The sampling of these processes, as text."""
    modes = {_mode(process) for process in processes}
    return modes.pop() if len(modes) == 1 else ("mixed" if modes else "-")


def _mode(process: Process) -> str:
    if process.is_disabled:
        return "turned off by opscope set"
    if process.window_ns:
        window_ms, period_ms = process.window_ns / 1e6, process.period_ns / 1e6
        return f"windows of {window_ms:g} ms or more every {period_ms:g} ms"
    if process.sampling_prob == 1:
        return "every range"
    return f"{process.sampling_prob * 100:.3g} % of ranges"


def overhead(processes: tuple[Process, ...], now_unix_ns: int) -> float | None:
    """The share of these processes' wall time that recording took; None without processes."""
    wall_ns = sum(max(now_unix_ns - process.created_unix_ns, 0) for process in processes)
    if not wall_ns:
        return None
    return sum(process.health.overhead_ns for process in processes) / wall_ns
