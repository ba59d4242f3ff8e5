"""Find operators that got slower between two versions of a service, over the hosts of each.

For an operator, each host counts once, by the median of its calls; a mean would reflect the few
calls that wait for a processor. The median hosts are compared. The confidence interval of the ratio
combines the spread between hosts (the standard error of a median of n values is
1.2533 sigma / sqrt(n), with sigma from the quartiles of the logarithms) and the width of the
histograms' buckets (medians.py). If it allows no verdict, none is given.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opscope.errors import FleetError
from opscope.fleet import promql
from opscope.fleet.medians import QUANTILES, Cell, Reading, between, reading
from opscope.fleet.rankings import quantile

if TYPE_CHECKING:
    from opscope.fleet.store import Sample, Store

LEAST_HOSTS = 3
"""Minimum hosts on both sides for a verdict."""
_SURE = 1.96
_DAY_S = 86400.0
_STEPS = 2000
_LEAST_S, _MOST_S = 1e-12, 1e12
"""Bounds of a duration in seconds; stores have no others from Opscope."""


@dataclass(frozen=True)
class Change:
    op: str
    phase: str
    model_id: str
    call_s: tuple[float, float]
    hosts: tuple[int, int]
    low: float
    high: float
    """95 % confidence interval of the ratio; NaN with too few hosts, 0 to infinity if the buckets
    determine nothing."""

    @property
    def ratio(self) -> float:
        return self.call_s[1] / self.call_s[0]

    def verdict(self, least: float) -> str:
        """`slower`, `faster`, `same` (a change of `least` is ruled out), `unsure` (the data allow
        no verdict), or `?` (too few hosts); `least`: the smallest change that counts, a share."""
        if math.isnan(self.low):
            return "?"
        if self.low > 1 and self.ratio >= 1 + least:
            return "slower"
        if self.high < 1 and self.ratio <= 1 / (1 + least):
            return "faster"
        return "same" if self.low > 1 / (1 + least) and self.high < 1 + least else "unsure"


Key = tuple[str, str, str]


def diff(
    store: Store, service: str, versions: tuple[str, str], window: str, days: float, now_s: float
) -> list[Change]:
    """Changes, the largest first. Each version is measured at the last time, within `days`, when
    hosts ran it. Raises FleetError, also if no host ran it."""
    before, after = (_cells(store, service, version, window, days, now_s) for version in versions)
    found = {sample.labels.get("le", "") for sample in store.query(promql.bounds(service), now_s)}
    bounds = sorted(bound for bound in map(_bound, found) if bound is not None)
    changes = [_change(key, before[key], after[key], bounds) for key in after if key in before]
    return sorted(changes, key=lambda one: (-one.ratio, one.op, one.phase, one.model_id))


def _cells(
    store: Store, service: str, version: str, window: str, days: float, now_s: float
) -> dict[Key, list[Cell]]:
    """The durations on each host, by operator."""
    span_s = days * _DAY_S
    hosts = promql.hosts_of(service, version)
    # The present first: a new version may lie between two steps of a long search.
    at_s: float | None = now_s
    if not store.query(hosts, now_s):
        at_s = store.last_time(hosts, now_s - span_s, now_s, max(span_s / _STEPS, 15.0))
    if at_s is None:
        raise FleetError(_none_of(store, service, version, days))
    found: dict[Key, list[Cell]] = defaultdict(list)
    for is_classic in (False, True):
        quantiles = [
            _by_cell(
                store.query(
                    promql.of_version(service, version, window, p, classic=is_classic), at_s
                )
            )
            for p in QUANTILES
        ]
        for (_, *key), values in _in_all(quantiles):
            found[key[0], key[1], key[2]].append(Cell(values[0], values[1], values[2], is_classic))
    return found


_CELL = "instance", "op", "phase", "model_id"


def _by_cell(samples: Sequence[Sample]) -> dict[tuple[str, ...], float]:
    """By the values of _CELL."""
    return {
        tuple(sample.labels.get(key, "") for key in _CELL): sample.value
        for sample in samples
        if _LEAST_S < sample.value < _MOST_S
    }


def _bound(le: str) -> float | None:
    """The bound in seconds; None for a bound that Opscope does not use, except the last one."""
    try:
        bound = float(le)
    except ValueError:
        return None
    return bound if _LEAST_S < bound < _MOST_S else None


def _in_all(
    parts: Sequence[Mapping[tuple[str, ...], float]],
) -> Iterator[tuple[tuple[str, ...], list[float]]]:
    first, *rest = parts
    for key, value in first.items():
        if all(key in one for one in rest):
            yield key, [value, *(one[key] for one in rest)]


def _none_of(store: Store, service: str, version: str, days: float) -> str:
    known = sorted(
        sample.labels.get("version", "")
        for sample in store.query(f"count by (version) ({promql.hosts_of(service)})")
    )
    now = f"; running now: {', '.join(known)}" if known else "; no version is running now"
    return (
        f"no host ran {service} {version} as its only version of it within {days:g} days"
        f"{now}; a version is service.version of OTEL_RESOURCE_ATTRIBUTES"
    )


def _change(
    key: Key, before: Sequence[Cell], after: Sequence[Cell], bounds: Sequence[float]
) -> Change:
    known, now = ([reading(cell, bounds) for cell in cells] for cells in (before, after))
    a, b = (statistics.median(cell.median for cell in cells) for cells in (before, after))
    low = high = math.nan
    if min(len(before), len(after)) >= LEAST_HOSTS:
        low, high = between(known, now, _SURE * math.hypot(_error(known), _error(now)))
        low, high = math.exp(low), math.exp(high)
    return Change(*key, (a, b), (len(before), len(after)), low, high)


def _error(readings: Sequence[Reading]) -> float:
    """Standard error of the logarithm of the median."""
    logs = sorted(one.value for one in readings)
    sigma = (quantile(logs, 0.75) - quantile(logs, 0.25)) / 1.349
    return 1.2533 * sigma / math.sqrt(len(logs))
