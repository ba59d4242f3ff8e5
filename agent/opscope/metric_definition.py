"""What a metric is: its names, its kind and its unit.

Names follow OpenTelemetry; `Metric.prometheus_name` translates them to Prometheus's by
OpenTelemetry's own rule, so that a dashboard works with data from either path.
https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    COUNTER = "counter"
    """Only grows while the agent runs."""
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    """Of durations: base-2 exponential, scale 3."""


# Labels of every operator metric; allow-listed debug-info keys are added.
SERIES_LABELS: tuple[str, ...] = ("service_name", "op", "phase", "framework")

# OpenTelemetry's translation leaves unknown units unchanged.
_PROMETHEUS_UNITS = {"s": "seconds", "By": "bytes", "s2": "s2"}


@dataclass(frozen=True)
class Metric:
    name: str
    kind: Kind
    unit: str
    """UCUM, as in OpenTelemetry: s, By, s2, or a word in braces, which may have an exponent."""
    help: str
    source: str
    """Attribute path in the snapshot, with dots. Arrays have one value for each series; mappings
    have one for each combination of label values, which may be followed by pairs of more labels."""
    labels: tuple[str, ...] = ()
    is_histogram_count: bool = False
    """Whether a classic histogram of the same series has this number as its `_count`. Formats with
    classic histograms leave this metric out; formats in which a histogram is one sample have it."""

    @property
    def of_series(self) -> bool:
        """Whether there is a value for each operator series."""
        return self.labels == SERIES_LABELS

    @property
    def prometheus_unit(self) -> str:
        return _PROMETHEUS_UNITS.get(self.unit, "")

    @property
    def prometheus_name(self) -> str:
        """The name of the family: with the unit, without `_total`."""
        name = self.name.replace(".", "_")
        return f"{name}_{self.prometheus_unit}" if self.prometheus_unit else name
