"""Convert a snapshot to OpenTelemetry's MetricsData, the input of the SDK's exporters.

There is one resource for each service observed on the host, or for each group of its processes with
common resource attributes (host/identity.py), and one for the agent itself. Durations are
exponential histograms of scale 3, as recorded; each series has a start time. `service_name` is also
an attribute of each point, beside the resource's service.name, so that dashboards work with both
Prometheus and OTLP.

Delta temporality: only the increase since an earlier snapshot, which delta.py keeps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from opentelemetry.sdk.metrics._internal.exemplar import Exemplar
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Buckets,
    ExponentialHistogram,
    ExponentialHistogramDataPoint,
    Gauge,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.metrics.export import Metric as MetricData
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from opscope import __version__
from opscope.host import snapshot as snapshot_model
from opscope.host.snapshot import SeriesKey, Snapshot
from opscope.metric_definition import Kind, Metric
from opscope.metrics import METRICS
from opscope.segments import layout
from opscope_exporters.otlp.delta import Base, since
from opscope_exporters.resource import SCHEMA_URL, SDK, agent_resource, service_resource
from opscope_exporters.samples import PerSeries, of_host, of_series

CUMULATIVE, DELTA = AggregationTemporality.CUMULATIVE, AggregationTemporality.DELTA

_SCALE = 3
_NONE = Buckets(offset=0, bucket_counts=())
SCOPE = "opscope"


class Temporality(NamedTuple):
    counters: AggregationTemporality
    histograms: AggregationTemporality


Attributes = Mapping[str, str]
Points = dict[tuple[str, str], list[Any]]
"""By service and group of its processes; ("", "") is the agent itself."""


class Builder:
    """Builds MetricsData; caches the attributes of series between calls."""

    def __init__(self, temporality: Temporality, environ: Mapping[str, str] | None = None) -> None:
        self._temporality = temporality
        self._agent = agent_resource(environ)
        self._attributes = PerSeries(_attributes)
        self._started_unix_ns = 0
        self._told_unix_ns = 0

    def build(self, snapshot: Snapshot, base: Base | None) -> MetricsData:
        """The whole snapshot; metrics with delta temporality have the increase since `base`."""
        if not self._started_unix_ns:
            began = [process.created_unix_ns for process in snapshot.processes]
            began += [snapshot.time_unix_ns, *snapshot.created_unix_ns.tolist()]
            self._started_unix_ns = min(began)
        attributes = self._attributes.of(snapshot)
        whole = snapshot, snapshot.created_unix_ns
        new = since(snapshot, base) if base and DELTA in self._temporality else whole
        resources: dict[tuple[str, str], list[MetricData]] = {}
        for metric in METRICS:
            if metric.kind is Kind.HISTOGRAM:
                is_delta = self._temporality.histograms is DELTA
                points = _histograms(*(new if is_delta else whole), attributes, self._told_unix_ns)
            elif metric.of_series:
                is_delta = self._temporality.counters is DELTA
                points = _sums(metric, *(new if is_delta else whole), attributes)
            else:
                is_delta = self._temporality.counters is DELTA and metric.kind is Kind.COUNTER
                points = self._host(metric, snapshot, base if is_delta else None)
            for source, of_source in points.items():
                data = MetricData(
                    metric.name, metric.help, metric.unit, self._data(metric, of_source)
                )
                resources.setdefault(source, []).append(data)
        self._told_unix_ns = snapshot.time_unix_ns
        scope = InstrumentationScope(SCOPE, __version__)
        return MetricsData(
            [
                ResourceMetrics(
                    resource_of(self._agent, *source, snapshot),
                    [ScopeMetrics(scope, metrics, "")],
                    SCHEMA_URL,
                )
                for source, metrics in resources.items()
            ]
        )

    def _data(self, metric: Metric, points: list[Any]) -> Sum | Gauge | ExponentialHistogram:
        if metric.kind is Kind.GAUGE:
            return Gauge(points)
        if metric.kind is Kind.COUNTER:
            return Sum(points, self._temporality.counters, True)
        return ExponentialHistogram(points, self._temporality.histograms)

    def _host(self, metric: Metric, snapshot: Snapshot, base: Base | None) -> Points:
        points: Points = {}
        start = base.time_unix_ns if base else self._started_unix_ns
        for labels, value in of_host(metric, snapshot):
            of_labels = dict(labels)
            if base:
                key = (metric.name, *of_labels.values())
                value = max(value - base.host.get(key, 0.0), 0.0)
            # A group's info metric belongs to its resource; a service's other metrics to no group.
            source = of_labels.get("service_name", ""), of_labels.get("group", "")
            points.setdefault(source, []).append(
                NumberDataPoint(of_labels, start, snapshot.time_unix_ns, value)
            )
        return points


def resource_of(agent: Mapping[str, str], service: str, group: str, snapshot: Snapshot) -> Resource:
    """The resource of a service's group of processes; of the agent itself if `service` is ""."""
    if not service:
        return Resource({**SDK, **agent}, SCHEMA_URL)
    resource = service_resource(agent, service, snapshot.groups.get(group, ()))
    return Resource({**resource, **SDK}, SCHEMA_URL)


def _sums(
    metric: Metric,
    snapshot: Snapshot,
    start_unix_ns: NDArray[np.int64],
    attributes: Sequence[Attributes],
) -> Points:
    rows, values = of_series(metric, snapshot)
    starts, time_unix_ns = start_unix_ns.tolist(), snapshot.time_unix_ns
    points: Points = {}
    for row, value in zip(rows.tolist(), values.tolist(), strict=True):
        point = NumberDataPoint(attributes[row], starts[row], time_unix_ns, value)
        key = snapshot.keys[row]
        points.setdefault((key.service, key.group), []).append(point)
    return points


def _histograms(
    snapshot: Snapshot,
    start_unix_ns: NDArray[np.int64],
    attributes: Sequence[Attributes],
    told_unix_ns: int,
) -> Points:
    """With the exemplars that ended after `told_unix_ns`, so that each is sent once."""
    shape = len(snapshot.keys), math.prod(snapshot.buckets.shape[1:])
    # OpenTelemetry's counts are integers; counts rounded one by one never decrease.
    counts = np.rint(snapshot.buckets.reshape(shape) / layout.WEIGHT_ONE).astype(np.int64)
    totals, sums = counts.sum(axis=1).tolist(), snapshot.total_s.tolist()
    filled = counts > 0
    first = filled.argmax(axis=1).tolist() if shape[1] else [0] * shape[0]
    last = (shape[1] - filled[:, ::-1].argmax(axis=1)).tolist() if shape[1] else [0] * shape[0]
    starts = start_unix_ns.tolist()
    points: Points = {}
    for row, key in enumerate(snapshot.keys):
        if not totals[row] and not sums[row]:
            continue
        within = counts[row, first[row] : last[row]].tolist() if totals[row] else []
        point = ExponentialHistogramDataPoint(
            attributes=attributes[row],
            start_time_unix_nano=starts[row],
            time_unix_nano=snapshot.time_unix_ns,
            count=totals[row],
            sum=sums[row],
            scale=_SCALE,
            zero_count=0,
            positive=Buckets(snapshot.bucket_offset + first[row], within),
            negative=_NONE,
            flags=0,
            # Unknown; the protocol treats them as absent.
            min=None,  # type: ignore[arg-type]
            max=None,  # type: ignore[arg-type]
            exemplars=[
                _exemplar(one)
                for one in snapshot.exemplars.get(row, ())
                if one.time_unix_ns > told_unix_ns
            ],
        )
        points.setdefault((key.service, key.group), []).append(point)
    return points


def _exemplar(one: snapshot_model.Exemplar) -> Exemplar:
    trace_id, span_id = int(one.trace_id, 16), int(one.span_id, 16)
    return Exemplar({}, one.duration_s, one.time_unix_ns, span_id, trace_id)


def host_counts(snapshot: Snapshot) -> dict[tuple[str, ...], float]:
    """All counters without series, as delta.Base needs them."""
    return {
        (metric.name, *(text for _, text in labels)): value
        for metric in METRICS
        if metric.kind is Kind.COUNTER and not metric.of_series
        for labels, value in of_host(metric, snapshot)
    }


def _attributes(key: SeriesKey, created_unix_ns: int) -> Attributes:
    attributes = {
        "service_name": key.service,
        "op": key.op,
        "phase": key.phase,
        "framework": key.framework,
    }
    if key.group:
        attributes["group"] = key.group
    for name, value in key.labels:
        attributes[name if name not in attributes else f"label.{name}"] = value
    return attributes
