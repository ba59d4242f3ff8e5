"""Rank operators by time, hosts by slowness, and services by the APIs that they use."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opscope.fleet import promql
from opscope.reports.certainty import LEAST_SAMPLES

if TYPE_CHECKING:
    from opscope.fleet.store import Sample, Store

LEAST_HOSTS, LEAST_EXCESS, SPREADS = 5, 0.1, 5.0
"""The threshold of a straggler, as in the alert OpscopeStraggler (dashboards/rules/alerts.yml)."""
_IQR = 1.349
"""Interquartile range of the normal distribution, in standard deviations."""

BY = ("op", "service", "framework", "phase", "model_id", "instance")
# Prometheus labels whose names differ from the fields here.
_LABELS = {"service": "service_name"}


@dataclass(frozen=True)
class Row:
    name: str
    threads: float
    """Self time in its operators, in seconds per second."""
    share: float
    calls_per_s: float
    hosts: int
    p50_s: float | None
    p95_s: float | None
    p99_s: float | None
    """Quantiles are None if they rest on too few samples."""
    samples: float
    """Ranges recorded in the window."""
    calls_error: float
    """Standard error of `calls_per_s`; 0: exact."""


@dataclass(frozen=True)
class HostRow:
    host: str
    service: str
    version: str
    """The service's version; empty if unknown."""
    model_id: str
    slowness: float
    """The duration of its median operator, relative to the median host."""
    spread: float
    """Standard deviation between the hosts of the service, version and model, from quartiles."""
    hosts: int
    is_straggler: bool

    @property
    def is_judged(self) -> bool:
        """Whether there are enough hosts for a comparison."""
        return self.hosts >= LEAST_HOSTS


@dataclass(frozen=True)
class Use:
    api: str
    service: str
    processes: float
    hosts: int


def top(store: Store, by: str, selector: str, window: str, limit: int) -> list[Row]:
    """The `limit` largest by time. Raises FleetError."""
    by = _LABELS.get(by, by)
    times = _by(store.query(promql.rates("opscope.op.self_time", by, selector, window)), by)
    calls = _by(store.query(promql.call_rates(by, selector, window)), by)
    of_hosts = promql.rates("opscope.op.samples", f"instance, {by}", selector, window)
    hosts = _by(store.query(f"count by ({by}) ({of_hosts})"), by)
    quantiles = {
        p: _by(store.query(promql.quantile(p, by, selector, window)), by) for p in LEAST_SAMPLES
    }
    samples = _by(store.query(promql.increases("opscope.op.samples", by, selector, window)), by)
    errors = _by(store.query(promql.error_of_calls(by, selector, window)), by)

    def quantile_of(name: str, p: float) -> float | None:
        is_enough = samples.get(name, 0.0) >= LEAST_SAMPLES[p] or name not in errors
        return quantiles[p].get(name) if is_enough else None

    whole = sum(times.values())
    rows = [
        Row(
            name,
            times.get(name, 0.0),
            times.get(name, 0.0) / whole if whole else 0.0,
            rate,
            round(hosts.get(name, 0)),
            quantile_of(name, 0.5),
            quantile_of(name, 0.95),
            quantile_of(name, 0.99),
            samples.get(name, 0.0),
            errors.get(name, 0.0),
        )
        for name, rate in calls.items()
        if rate > 0
    ]
    return sorted(rows, key=lambda row: (-row.threads, -row.calls_per_s, row.name))[:limit]


def stragglers(store: Store, selector: str, window: str) -> list[HostRow]:
    """All hosts with data, the slowest first. Raises FleetError."""
    groups: dict[tuple[str, ...], list[Sample]] = defaultdict(list)
    for sample in store.query(promql.slowness(selector, window)):
        alike = tuple(sample.labels.get(key, "") for key in ("service_name", "version", "model_id"))
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


def hosts_without_medians(store: Store, selector: str, window: str) -> set[str]:
    """Hosts with enough runs whose classic histograms locate no operator's median. Raises
    FleetError."""
    asked = f"group by (instance) ({promql.without_median(selector, window)})"
    return {sample.labels.get("instance", "") for sample in store.query(asked)}


def usage(store: Store, selector: str) -> list[Use]:
    """The services that use each API, sorted by the number of processes. Raises FleetError."""
    metric = f"{promql.name('opscope.api.usage')}{{{selector}}}"
    hosts = {
        _use(one): one.value for one in store.query(f"count by (api, service_name) ({metric})")
    }
    return sorted(
        (
            Use(*_use(one), one.value, round(hosts.get(_use(one), 0)))
            for one in store.query(f"sum by (api, service_name) ({metric})")
        ),
        key=lambda use: (use.api, -use.processes, use.service),
    )


def _use(sample: Sample) -> tuple[str, str]:
    return sample.labels.get("api", ""), sample.labels.get("service_name", "")


def _by(samples: Sequence[Sample], label: str) -> dict[str, float]:
    return {sample.labels.get(label, ""): sample.value for sample in samples}


def quantile(values: Sequence[float], p: float) -> float:
    """Quantile of sorted values, interpolated linearly as in PromQL."""
    place = p * (len(values) - 1)
    low = int(place)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (place - low)
