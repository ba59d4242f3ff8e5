"""Which operators got slower from one version of a service to another, over the hosts of each.

A host counts once for an operator, by its typical call. Compared are the median hosts; how sure the
ratio is comes from the spread between hosts: a median of n values is off by 1.2533 sigma / sqrt(n),
with sigma from the quartiles of the logarithms.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from opscope.errors import FleetError
from opscope.fleet import promql
from opscope.fleet.rankings import quantile
from opscope.fleet.store import Store

LEAST_HOSTS = 3
"""On both sides, for a verdict."""
_SURE = 1.96
_DAY_S = 86400.0
_STEPS = 2000


@dataclass(frozen=True)
class Change:
    op: str
    phase: str
    model_id: str
    call_s: tuple[float, float]
    hosts: tuple[int, int]
    low: float
    high: float
    """Between these the ratio is, with 95 %; NaN where there are too few hosts."""

    @property
    def ratio(self) -> float:
        return self.call_s[1] / self.call_s[0]

    def verdict(self, least: float) -> str:
        """`slower`, `faster`, `same`, or `?` (too few hosts); `least`: the share to care for."""
        if math.isnan(self.low):
            return "?"
        if self.low > 1 and self.ratio >= 1 + least:
            return "slower"
        return "faster" if self.high < 1 and self.ratio <= 1 / (1 + least) else "same"


Key = tuple[str, str, str]


def diff(
    store: Store, service: str, versions: tuple[str, str], window: str, days: float, now_s: float
) -> list[Change]:
    """Changes, the largest first. Each version is looked at as of the last time there were hosts
    of it within so many days. Raises FleetError, also where there were none."""
    before, after = (_cells(store, service, version, window, days, now_s) for version in versions)
    changes = [_change(key, before[key], after[key]) for key in after if key in before]
    return sorted(changes, key=lambda one: (-one.ratio, one.op, one.phase, one.model_id))


def _cells(
    store: Store, service: str, version: str, window: str, days: float, now_s: float
) -> dict[Key, list[float]]:
    """The sorted seconds of a call on each host, by operator."""
    span_s = days * _DAY_S
    hosts = promql.hosts_of(service, version)
    # First of now: a version that has just come is between two moments of a long time.
    at_s: float | None = now_s
    if not store.query(hosts, now_s):
        at_s = store.last_time(hosts, now_s - span_s, now_s, max(span_s / _STEPS, 15.0))
    if at_s is None:
        raise FleetError(_none_of(store, service, version, days))
    found: dict[Key, list[float]] = defaultdict(list)
    for sample in store.query(promql.of_version(service, version, window), at_s):
        op, phase, model_id = (sample.labels.get(key, "") for key in ("op", "phase", "model_id"))
        if sample.value > 0:
            found[op, phase, model_id].append(sample.value)
    return {key: sorted(values) for key, values in found.items()}


def _none_of(store: Store, service: str, version: str, days: float) -> str:
    known = sorted(
        sample.labels.get("version", "")
        for sample in store.query(f"count by (version) ({promql.hosts_of(service)})")
    )
    now = f"; now there are: {', '.join(known)}" if known else "; now there is none with a version"
    return (
        f"no host ran {service} {version}, and no other version of it beside, within {days:g} days"
        f"{now}; a version is service.version of OTEL_RESOURCE_ATTRIBUTES"
    )


def _change(key: Key, before: Sequence[float], after: Sequence[float]) -> Change:
    middles = statistics.median(before), statistics.median(after)
    low = high = math.nan
    if min(len(before), len(after)) >= LEAST_HOSTS:
        reach = math.exp(_SURE * math.hypot(_error(before), _error(after)))
        ratio = middles[1] / middles[0]
        low, high = ratio / reach, ratio * reach
    return Change(*key, middles, (len(before), len(after)), low, high)


def _error(values: Sequence[float]) -> float:
    """Standard error of the logarithm of the median."""
    logs = [math.log(value) for value in values]
    sigma = (quantile(logs, 0.75) - quantile(logs, 0.25)) / 1.349
    return 1.2533 * sigma / math.sqrt(len(values))
