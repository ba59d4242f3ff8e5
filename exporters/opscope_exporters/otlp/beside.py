"""An OpenTelemetry SDK exporter that adds this process's operators to each export.

It is for programs with a MeterProvider of their own; see in_process.py. The metrics have the
program's own resource, and the temporality that the wrapped exporter prefers.
"""

from __future__ import annotations

from typing import Any

from opentelemetry.sdk.metrics.export import (
    MetricExporter,
    MetricExportResult,
    MetricsData,
    ResourceMetrics,
    ScopeMetrics,
)

from opscope.host.snapshot import Snapshot
from opscope.metrics import METRICS
from opscope_exporters.in_process import METRICS_HERE, Own, unrecorded
from opscope_exporters.otlp import delta
from opscope_exporters.otlp.data import DELTA, Builder, host_counts
from opscope_exporters.otlp.exporter import preferred_temporality

_ELSEWHERE = {metric.name for metric in METRICS} - {metric.name for metric in METRICS_HERE}


class Beside(MetricExporter):
    """Wraps another exporter, which does the sending."""

    def __init__(self, exporter: MetricExporter) -> None:
        temporality = preferred_temporality(exporter)
        super().__init__(exporter._preferred_temporality, exporter._preferred_aggregation)
        self._exporter = exporter
        self._own = Own()
        self._builder = Builder(temporality)
        self._is_delta = DELTA in temporality
        self._base: delta.Base | None = None

    def export(
        self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: Any
    ) -> MetricExportResult:
        given = list(metrics_data.resource_metrics)
        snapshot, scopes = self._own_scopes()
        if given:
            first = given[0]
            given[0] = ResourceMetrics(
                first.resource, [*first.scope_metrics, *scopes], first.schema_url
            )
        result = self._exporter.export(MetricsData(given), timeout_millis, **kwargs)
        if result is MetricExportResult.SUCCESS and self._is_delta:
            self._base = unrecorded(delta.base_of)(snapshot, host_counts(snapshot))
        return result

    @unrecorded
    def _own_scopes(self) -> tuple[Snapshot, list[ScopeMetrics]]:
        snapshot = self._own.snapshot()
        scopes = [
            ScopeMetrics(
                scope.scope,
                [metric for metric in scope.metrics if metric.name not in _ELSEWHERE],
                scope.schema_url,
            )
            for one in self._builder.build(snapshot, self._base).resource_metrics
            for scope in one.scope_metrics
        ]
        return snapshot, scopes

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        return self._exporter.force_flush(timeout_millis)

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: Any) -> None:
        self._exporter.shutdown(timeout_millis, **kwargs)
