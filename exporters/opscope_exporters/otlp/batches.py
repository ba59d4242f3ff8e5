"""Split MetricsData into parts of a bounded number of points.

By default, a Collector rejects messages above 4 MiB over gRPC and 20 MiB over HTTP, every time, so
a large host's metrics would never arrive. This is for cumulative data only: after a partial
failure, the parts that had arrived would repeat their deltas.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from opentelemetry.sdk.metrics.export import (
    ExponentialHistogram,
    Metric,
    MetricsData,
    ResourceMetrics,
    ScopeMetrics,
)

# With the longest names and all buckets in use for years, a part has 3.5 MiB.
MOST_WEIGHT = 5_000
_HISTOGRAM_WEIGHT = 3
"""The weight of a histogram's point; other points have 1."""


def parts(data: MetricsData, most: int = MOST_WEIGHT) -> Iterator[MetricsData]:
    """The same points in the same order; `most` is at least a histogram's weight."""
    part: list[ResourceMetrics] = []
    room = most
    for resource in data.resource_metrics:
        for scope in resource.scope_metrics:
            metrics: list[Metric] = []
            for metric in scope.metrics:
                weight = _HISTOGRAM_WEIGHT if isinstance(metric.data, ExponentialHistogram) else 1
                # Each kind of data has its own kind of points; the code here treats them alike.
                whole: Any = metric.data
                begin, points = 0, whole.data_points
                while begin < len(points):
                    if room < weight:
                        yield _whole([*part, _resource(resource, scope, metrics)])
                        part, metrics, room = [], [], most
                    here = points[begin : begin + room // weight]
                    metrics.append(replace(metric, data=replace(whole, data_points=here)))
                    begin += len(here)
                    room -= weight * len(here)
            part.append(_resource(resource, scope, metrics))
    if part:
        yield _whole(part)


def _whole(part: list[ResourceMetrics]) -> MetricsData:
    """Without resources that have no points here."""
    return MetricsData([one for one in part if one.scope_metrics[0].metrics])


def _resource(
    resource: ResourceMetrics, scope: ScopeMetrics, metrics: list[Metric]
) -> ResourceMetrics:
    return replace(resource, scope_metrics=[replace(scope, metrics=metrics)])
