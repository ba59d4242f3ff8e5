"""A snapshot as OpenTelemetry's MetricsData: what its SDK's exporters take.

A resource for each service observed on the host and one for the agent itself; durations as
exponential histograms of scale 3, which they are; a start time for each series. `service` stays an
attribute of each point beside the resource's service.name, so that one dashboard serves for both
ways in. Delta temporality: only what came after an earlier snapshot (delta.py keeps that).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from importlib import metadata
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

from opscope.agent import layout
from opscope.agent import snapshot as snapshot_model
from opscope.agent.snapshot import SeriesKey, Snapshot
from opscope.metrics import METRICS, Kind, Metric
from opscope_exporters.delta import Base, since
from opscope_exporters.resource import agent_resource, service_resource
from opscope_exporters.samples import PerSeries, of_host, of_series

CUMULATIVE, DELTA = AggregationTemporality.CUMULATIVE, AggregationTemporality.DELTA

_SCALE = 3
_NONE = Buckets(offset=0, bucket_counts=())
_SCOPE = "opscope"


class Temporality(NamedTuple):
    counters: AggregationTemporality
    histograms: AggregationTemporality


Attributes = Mapping[str, str]
Points = dict[str, list[Any]]
"""By service; "" is the agent itself."""


class Builder:
    """Builds MetricsData; attributes of series are kept from one to the next."""

    def __init__(self, temporality: Temporality, environ: Mapping[str, str] | None = None) -> None:
        self._temporality = temporality
        self._agent = agent_resource(environ)
        self._attributes = PerSeries(_attributes)
        self._started_unix_ns = 0
        self._told_unix_ns = 0

    def build(self, snapshot: Snapshot, base: Base | None) -> MetricsData:
        """The whole snapshot; of what is told by deltas, what came after `base`."""
        if not self._started_unix_ns:
            began = [process.created_unix_ns for process in snapshot.processes]
            began += [snapshot.time_unix_ns, *snapshot.created_unix_ns.tolist()]
            self._started_unix_ns = min(began)
        attributes = self._attributes.of(snapshot)
        whole = snapshot, snapshot.created_unix_ns
        new = since(snapshot, base) if base and DELTA in self._temporality else whole
        services: dict[str, list[MetricData]] = {}
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
            for service, of_service in points.items():
                data = MetricData(
                    metric.name, metric.help, metric.unit, self._data(metric, of_service)
                )
                services.setdefault(service, []).append(data)
        self._told_unix_ns = snapshot.time_unix_ns
        scope = InstrumentationScope(_SCOPE, metadata.version("opscope"))
        return MetricsData(
            [
                ResourceMetrics(
                    Resource(service_resource(self._agent, name) if name else self._agent),
                    [ScopeMetrics(scope, metrics, "")],
                    "",
                )
                for name, metrics in services.items()
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
            points.setdefault(of_labels.get("service", ""), []).append(
                NumberDataPoint(of_labels, start, snapshot.time_unix_ns, value)
            )
        return points


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
        points.setdefault(snapshot.keys[row].service, []).append(point)
    return points


def _histograms(
    snapshot: Snapshot,
    start_unix_ns: NDArray[np.int64],
    attributes: Sequence[Attributes],
    told_unix_ns: int,
) -> Points:
    """With the exemplars that ended after `told_unix_ns`: each is told once."""
    shape = len(snapshot.keys), math.prod(snapshot.buckets.shape[1:])
    # OpenTelemetry's counts are whole; rounded one by one, none of them ever steps back.
    counts = np.rint(snapshot.buckets.reshape(shape) / layout.WEIGHT_ONE).astype(np.int64)
    totals, sums = counts.sum(axis=1).tolist(), snapshot.total_s.tolist()
    filled = counts > 0
    first = filled.argmax(axis=1).tolist() if shape[1] else [0] * shape[0]
    last = (shape[1] - filled[:, ::-1].argmax(axis=1)).tolist() if shape[1] else [0] * shape[0]
    starts = start_unix_ns.tolist()
    points: Points = {}
    for row, key in enumerate(snapshot.keys):
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
            # Not known; the protocol takes them for absent.
            min=None,  # type: ignore[arg-type]
            max=None,  # type: ignore[arg-type]
            exemplars=[
                _exemplar(one)
                for one in snapshot.exemplars.get(row, ())
                if one.time_unix_ns > told_unix_ns
            ],
        )
        points.setdefault(key.service, []).append(point)
    return points


def _exemplar(one: snapshot_model.Exemplar) -> Exemplar:
    trace_id, span_id = int(one.trace_id, 16), int(one.span_id, 16)
    return Exemplar({}, one.duration_s, one.time_unix_ns, span_id, trace_id)


def host_counts(snapshot: Snapshot) -> dict[tuple[str, ...], float]:
    """All counters that are of no series, as delta.Base wants them."""
    return {
        (metric.name, *(text for _, text in labels)): value
        for metric in METRICS
        if metric.kind is Kind.COUNTER and not metric.of_series
        for labels, value in of_host(metric, snapshot)
    }


def _attributes(key: SeriesKey, created_unix_ns: int) -> Attributes:
    attributes = {
        "service": key.service,
        "op": key.op,
        "phase": key.phase,
        "framework": key.framework,
    }
    for name, value in key.labels:
        attributes[name if name not in attributes else f"label.{name}"] = value
    return attributes
