"""Export this process's own metrics from a program that exports metrics already.

- `prometheus_client.REGISTRY.register(Collector())`: all of Opscope on the page of that registry.
- `PeriodicExportingMetricReader(Beside(OTLPMetricExporter()))`, with `Beside` from otlp/beside.py:
  in each export of an OpenTelemetry SDK, with exponential histograms.
- `observe(meter_provider)`: observable instruments of any provider; there is no API for observable
  histograms, so durations appear only as their sum.

They read the process's own segment on request, in the requesting thread, as opscope.serve() does;
nothing runs in between. attach() or `opscope run` enables recording; the exporters' own work is not
recorded. If the host's agent exports the process too, it is counted in both.
"""

from __future__ import annotations

import functools
import os
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from opscope import config
from opscope.host.snapshot import Exemplar, Snapshot
from opscope.metric_definition import Kind, Metric
from opscope.metrics import METRICS
from opscope.record.ranges import recording
from opscope.server.series_filter import SeriesFilter
from opscope.server.serve import own_snapshots
from opscope_exporters.distinct import Distinct
from opscope_exporters.samples import (
    CLASSIC_METRICS,
    ClassicBuckets,
    Labels,
    has_run,
    labels_of,
    of_host,
    of_series,
    sample_name,
)

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation
    from prometheus_client.metrics_core import Metric as Family
    from prometheus_client.samples import Exemplar as ClientExemplar

# Metrics of the agent, which a process that exports itself does not have.
_NOT_HERE = ("opscope.agent.", "opscope.series.", "opscope.segments.", "opscope.processes")
METRICS_HERE = tuple(metric for metric in METRICS if not metric.name.startswith(_NOT_HERE))
_CLASSIC_HERE = tuple(metric for metric in METRICS_HERE if metric in CLASSIC_METRICS)

_P = ParamSpec("_P")
_T = TypeVar("_T")


def unrecorded(work: Callable[_P, _T]) -> Callable[_P, _T]:
    """Keeps work in a program's thread from being recorded as the program's NumPy operators."""

    @functools.wraps(work)
    def wrapped(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        with recording(False):
            return work(*args, **kwargs)

    return wrapped


class Own:
    """Snapshots of this process; after a fork, of the child."""

    def __init__(self) -> None:
        self._pid = 0
        self._served: set[str] = set()

    def snapshot(self) -> Snapshot:
        if os.getpid() != self._pid:
            self._pid, self._latest = os.getpid(), own_snapshots()
            self._filter = SeriesFilter.of(config.load())
        return self._filter.apply(self._latest.snapshot())

    def snapshot_for(self, asker: str) -> Snapshot:
        """One snapshot for several readers in turn: a new one when a reader asks again."""
        if asker in self._served or os.getpid() != self._pid:
            self._served.clear()
        if not self._served:
            self._shared = self.snapshot()
        self._served.add(asker)
        return self._shared


class Collector:
    """A collector for a registry of prometheus_client."""

    @unrecorded
    def __init__(self, octaves: float = 1.0) -> None:
        self._own = Own()
        self._buckets = ClassicBuckets(octaves)
        self._distinct = Distinct()

    def describe(self) -> Iterable[Family]:
        """The families without values, so that registering the collector reads nothing."""
        return [_family(metric) for metric in _CLASSIC_HERE]

    def collect(self) -> Iterable[Family]:
        """All current values."""
        return self._families()

    @unrecorded
    def _families(self) -> list[Family]:
        snapshot = self._distinct.of(self._own.snapshot())
        families = []
        for metric in _CLASSIC_HERE:
            family = _family(metric)
            if metric.kind is Kind.HISTOGRAM:
                self._add_durations(family, snapshot)
            else:
                for labels, value in _values(metric, snapshot):
                    family.add_sample(sample_name(metric), dict(labels), value)
            families.append(family)
        return families

    def _add_durations(self, family: Family, snapshot: Snapshot) -> None:
        les = [*map(repr, self._buckets.bounds), "+Inf"]
        upto, first = self._buckets.upto(snapshot)
        for row in has_run(snapshot).nonzero()[0].tolist():
            labels = dict(labels_of(snapshot.keys[row]))
            counts = upto[row].round().tolist()
            marks = self._exemplars(snapshot.exemplars.get(row, ()))
            for place in range(first[row], len(les)):
                of_bucket = {**labels, "le": les[place]}
                name = f"{family.name}_bucket"
                family.add_sample(name, of_bucket, counts[place], None, marks.get(place))
            family.add_sample(f"{family.name}_count", labels, counts[-1])
            family.add_sample(f"{family.name}_sum", labels, float(snapshot.total_s[row]))

    def _exemplars(self, found: Iterable[Exemplar]) -> dict[int, ClientExemplar]:
        """By bucket, the latest exemplar in it."""
        from prometheus_client.samples import Exemplar as ClientExemplar

        return {
            bisect_left(self._buckets.bounds, one.duration_s): ClientExemplar(
                {"trace_id": one.trace_id, "span_id": one.span_id},
                one.duration_s,
                one.time_unix_ns / 1e9,
            )
            for one in sorted(found, key=lambda one: one.time_unix_ns)
        }


def _family(metric: Metric) -> Family:
    from prometheus_client.metrics_core import Metric as Family

    return Family(metric.prometheus_name, metric.help, metric.kind.value, metric.prometheus_unit)


def _values(metric: Metric, snapshot: Snapshot) -> Iterator[tuple[Labels, float]]:
    if metric.of_series:
        rows, values = of_series(metric, snapshot)
        for row, value in zip(rows.tolist(), values.tolist(), strict=True):
            yield labels_of(snapshot.keys[row]), value
    else:
        yield from of_host(metric, snapshot)


def observe(provider: MeterProvider | None = None) -> None:
    """Registers observable instruments with the provider, by default the global one. Call it once:
    a second call would count everything twice. The number of ranges is opscope.op.calls."""
    from opentelemetry import metrics

    meter = (provider or metrics.get_meter_provider()).get_meter("opscope")
    own = Own()
    for metric in METRICS_HERE:
        callbacks, text = [_callback(metric, own)], metric.help
        if metric.kind is Kind.GAUGE:
            meter.create_observable_gauge(metric.name, callbacks, metric.unit, text)
        else:
            name = metric.name + ".sum" * (metric.kind is Kind.HISTOGRAM)
            meter.create_observable_counter(name, callbacks, metric.unit, text)


def _callback(metric: Metric, own: Own) -> Callable[[CallbackOptions], list[Observation]]:
    from opentelemetry.metrics import Observation

    @unrecorded
    def observed(_: CallbackOptions) -> list[Observation]:
        snapshot = own.snapshot_for(metric.name)
        values = (
            (
                (labels_of(key), total)
                for key, total in zip(snapshot.keys, snapshot.total_s.tolist(), strict=True)
            )
            if metric.kind is Kind.HISTOGRAM
            else _values(metric, snapshot)
        )
        return [Observation(value, dict(labels)) for labels, value in values]

    return observed
