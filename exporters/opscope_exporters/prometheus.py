"""The Prometheus page: text or OpenMetrics, as the client accepts, from the table of metrics.

Durations become classic histograms whose bounds are powers of two: sums of the recorder's finer
buckets, so no approximation. Native histograms need a protobuf scrape and are not here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.samples import Sample

from opscope.agent import layout
from opscope.agent.exporter import PageExporter
from opscope.agent.snapshot import SeriesKey, Snapshot
from opscope.errors import AgentError
from opscope.metrics import METRICS, SERIES_LABELS, Kind, Metric

OPTIONS = {"octaves": "octaves between two bounds of a histogram: 1, 2 (default) or 4"}

# Bounds reach from 2^-22 s (0.24 us) to 2^4 s; the operators worth seeing last between these.
_LOWEST, _HIGHEST = -22, 4
_RESERVED = {*SERIES_LABELS, "le"}


def create(options: Mapping[str, str]) -> PageExporter:
    """Raises AgentError for an option's value that is none of those named in OPTIONS."""
    octaves = options.get("octaves", "2")
    if octaves not in ("1", "2", "4"):
        raise AgentError(f"exporter prometheus: octaves={octaves!r}: must be 1, 2 or 4")
    return Prometheus(int(octaves))


class Prometheus:
    def __init__(self, octaves: int) -> None:
        self._exponents = np.arange(_HIGHEST, _LOWEST - 1, -octaves)[::-1]
        bounds = (2.0**self._exponents).tolist()
        self._les = [*map(repr, bounds), "+Inf"]
        self._labels: dict[SeriesKey, dict[str, str]] = {}

    def page(self, snapshot: Snapshot, accept: str) -> tuple[bytes, str]:
        encode, content_type = choose_encoder(accept)
        with_created = content_type.startswith("application/openmetrics-text")
        return encode(_Collected(self._families(snapshot, with_created))), content_type

    def close(self) -> None:
        self._labels.clear()

    def _families(self, snapshot: Snapshot, with_created: bool) -> Iterator[Family]:
        labels = [self._labels_of(key) for key in snapshot.keys]
        for metric in METRICS:
            if metric.kind is Kind.HISTOGRAM:
                samples = self._histogram(metric, snapshot, labels, with_created)
            elif metric.of_series:
                samples = _series(metric, snapshot, labels)
            else:
                samples = _host(metric, snapshot)
            yield _family(metric, samples)

    def _labels_of(self, key: SeriesKey) -> dict[str, str]:
        labels = self._labels.get(key)
        if labels is None:
            labels = self._labels[key] = _labels(key)
        return labels

    def _histogram(
        self, metric: Metric, snapshot: Snapshot, labels: list[dict[str, str]], with_created: bool
    ) -> Iterator[Sample]:
        upto = self._cumulative(snapshot).tolist()
        sums, created = snapshot.total_s.tolist(), (snapshot.created_unix_ns / 1e9).tolist()
        name = metric.prometheus_name
        bucket, count, total = f"{name}_bucket", f"{name}_count", f"{name}_sum"
        for row, of_row in enumerate(labels):
            for le, value in zip(self._les, upto[row], strict=True):
                yield Sample(bucket, {**of_row, "le": le}, value)
            yield Sample(count, of_row, upto[row][-1])
            yield Sample(total, of_row, sums[row])
            if with_created:
                yield Sample(f"{name}_created", of_row, created[row])

    def _cumulative(self, snapshot: Snapshot) -> NDArray[np.float64]:
        """(n, bounds + 1) ranges no longer than each bound, then all of them."""
        octaves = snapshot.buckets.shape[1]
        upto = np.zeros((len(snapshot.keys), octaves + 1), np.uint64)
        np.cumsum(snapshot.buckets.sum(axis=2), axis=1, out=upto[:, 1:])
        # Column c has the octaves that end at 2^(first_octave - 40 + c) s or before.
        columns = self._exponents + layout.SECOND_LOG2 - snapshot.first_octave
        # OpenMetrics takes whole numbers only; estimates from samples may be others.
        return np.rint(upto[:, [*np.clip(columns, 0, octaves), octaves]] / layout.WEIGHT_ONE)


class _Collected:
    """What prometheus_client's encoders take for a registry."""

    def __init__(self, families: Iterator[Family]) -> None:
        self._families = families

    def collect(self) -> Iterator[Family]:
        return self._families


def _family(metric: Metric, samples: Iterator[Sample]) -> Family:
    family = Family(metric.prometheus_name, metric.help, metric.kind.value, metric.prometheus_unit)
    # The encoders go through the samples once; a list of a large page's would take 20 MiB.
    family.samples = samples  # type: ignore[assignment]
    return family


def _series(metric: Metric, snapshot: Snapshot, labels: list[dict[str, str]]) -> Iterator[Sample]:
    values: NDArray[np.float64] = attrgetter(metric.source)(snapshot)
    known = ~np.isnan(values)
    name = _sample_name(metric)
    for of_row, value, is_known in zip(labels, values.tolist(), known.tolist(), strict=True):
        if is_known:
            yield Sample(name, of_row, value)


def _host(metric: Metric, snapshot: Snapshot) -> Iterator[Sample]:
    values = attrgetter(metric.source)(snapshot)
    by_labels = values if metric.labels else {(): values}
    for key, value in sorted(by_labels.items()):
        yield Sample(_sample_name(metric), dict(zip(metric.labels, key, strict=True)), value)


def _sample_name(metric: Metric) -> str:
    total = "_total" if metric.kind is Kind.COUNTER else ""
    return metric.prometheus_name + total


def _labels(key: SeriesKey) -> dict[str, str]:
    labels = dict(zip(SERIES_LABELS, (key.service, key.op, key.phase, key.framework), strict=True))
    if key.process is not None:
        labels["pid"] = str(key.process)
    for name, value in key.labels:
        name = re.sub(r"[^a-zA-Z0-9_]", "_", name)
        if name in _RESERVED or name[:1].isdigit() or name.startswith("__"):
            name = f"label_{name}"
        # As OpenTelemetry has it where two names become one.
        labels[name] = f"{labels[name]};{value}" if name in labels else value
    return labels
