"""What takes most time in the fleet, which hosts are slow, and who uses which API."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from opscope.fleet import promql
from opscope.fleet.store import Sample, Store

LEAST_HOSTS, LEAST_EXCESS, SPREADS = 5, 0.1, 5.0
"""When a host is a straggler: as in the alert OpscopeStraggler (dashboards/rules/alerts.yml)."""
_IQR = 1.349
"""Interquartile range of the normal distribution, in standard deviations."""

BY = ("op", "service", "framework", "phase", "model_id", "instance")


@dataclass(frozen=True)
class Row:
    name: str
    threads: float
    """Seconds a second in its operators but not in those they call."""
    share: float
    calls_per_s: float
    hosts: int
    p50_s: float | None
    p95_s: float | None
    p99_s: float | None


@dataclass(frozen=True)
class HostRow:
    host: str
    service: str
    version: str
    """Of the service; empty where it is not known."""
    model_id: str
    slowness: float
    """How many times as long its median operator takes as on the median host."""
    spread: float
    """Standard deviation between the hosts of the service, version and model, by the quartiles."""
    hosts: int
    is_straggler: bool

    @property
    def is_judged(self) -> bool:
        """Whether there are enough hosts to compare it with."""
        return self.hosts >= LEAST_HOSTS


@dataclass(frozen=True)
class Use:
    api: str
    service: str
    processes: float
    hosts: int


def top(store: Store, by: str, selector: str, window: str, limit: int) -> list[Row]:
    """The `limit` largest by time. Raises FleetError."""
    times = _by(store.query(promql.rates("opscope.op.self_time", by, selector, window)), by)
    calls = _by(store.query(promql.rates("opscope.op.calls", by, selector, window)), by)
    of_hosts = promql.rates("opscope.op.calls", f"instance, {by}", selector, window)
    hosts = _by(store.query(f"count by ({by}) ({of_hosts})"), by)
    quantiles = [
        _by(store.query(promql.quantile(p, by, selector, window)), by) for p in (0.5, 0.95, 0.99)
    ]
    whole = sum(times.values())
    rows = [
        Row(
            name,
            times.get(name, 0.0),
            times.get(name, 0.0) / whole if whole else 0.0,
            rate,
            round(hosts.get(name, 0)),
            *(found.get(name) for found in quantiles),
        )
        for name, rate in calls.items()
        if rate > 0
    ]
    return sorted(rows, key=lambda row: (-row.threads, -row.calls_per_s, row.name))[:limit]


def stragglers(store: Store, selector: str, window: str) -> list[HostRow]:
    """All hosts of which something can be said, the slowest first. Raises FleetError."""
    groups: dict[tuple[str, ...], list[Sample]] = defaultdict(list)
    for sample in store.query(promql.slowness(selector, window)):
        alike = tuple(sample.labels.get(key, "") for key in ("service", "version", "model_id"))
        groups[alike].append(sample)
    rows = []
    for (service, version, model_id), samples in groups.items():
        values = sorted(sample.value for sample in samples)
        middle = statistics.median(values)
        spread = (quantile(values, 0.75) - quantile(values, 0.25)) / _IQR
        limit = max(SPREADS * spread, LEAST_EXCESS)
        rows += [
            HostRow(
                sample.labels.get("instance", ""),
                service,
                version,
                model_id,
                sample.value,
                spread,
                len(values),
                len(values) >= LEAST_HOSTS and sample.value - middle > limit,
            )
            for sample in samples
        ]
    return sorted(rows, key=lambda row: (not row.is_straggler, -row.slowness, row.host))


def usage(store: Store, selector: str) -> list[Use]:
    """Who uses which API, by the number of processes. Raises FleetError."""
    metric = f"{promql.name('opscope.api.usage')}{{{selector}}}"
    hosts = {_use(one): one.value for one in store.query(f"count by (api, service) ({metric})")}
    return sorted(
        (
            Use(*_use(one), one.value, round(hosts.get(_use(one), 0)))
            for one in store.query(f"sum by (api, service) ({metric})")
        ),
        key=lambda use: (use.api, -use.processes, use.service),
    )


def _use(sample: Sample) -> tuple[str, str]:
    return sample.labels.get("api", ""), sample.labels.get("service", "")


def _by(samples: Sequence[Sample], label: str) -> dict[str, float]:
    return {sample.labels.get(label, ""): sample.value for sample in samples}


def quantile(values: Sequence[float], p: float) -> float:
    """Of sorted values, linear between them, as PromQL's."""
    place = p * (len(values) - 1)
    low = int(place)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (place - low)
