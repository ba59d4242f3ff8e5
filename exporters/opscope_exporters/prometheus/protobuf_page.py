"""The page as delimited protobuf with native histograms, and classic ones beside them.

The message is `io.prometheus.client.MetricFamily`, each preceded by its length; the field numbers
are below.
https://github.com/prometheus/client_model/blob/master/io/prometheus/client/metrics.proto
It is encoded by hand, because no package on PyPI has that message, and as whole arrays, because
generated code would create an object for each of a page's 28,000 buckets.

Histograms are float histograms, since counts estimated from samples are fractional: each bucket is
a counter that never decreases; rounded buckets could not do so and also match their sum. Schema 3:
bucket i is OpenTelemetry's bucket i - 1 at scale 3.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from opscope.host.snapshot import Exemplar, SeriesKey, Snapshot
from opscope.metric_definition import Kind, Metric
from opscope.metrics import METRICS
from opscope.segments import layout
from opscope_exporters.samples import (
    ClassicBuckets,
    Labels,
    PerSeries,
    has_run,
    labels_of,
    of_host,
    of_series,
    sample_name,
)

CONTENT_TYPE = (
    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
)

_SCHEMA = 3
_PARTS_AT_A_TIME = 100
# The zero threshold of Prometheus's own libraries; without it, a histogram counts as classic.
_ZERO_THRESHOLD = 2.0**-128

_FAMILY_NAME, _FAMILY_HELP, _FAMILY_TYPE, _FAMILY_METRIC, _FAMILY_UNIT = range(1, 6)
_TYPES = {Kind.COUNTER: 0, Kind.GAUGE: 1, Kind.HISTOGRAM: 4}
_METRIC_LABEL, _METRIC_GAUGE, _METRIC_COUNTER, _METRIC_HISTOGRAM = 1, 2, 3, 7
_COUNTER_VALUE, _COUNTER_CREATED = 1, 3
_COUNT_FLOAT, _SUM, _BUCKET, _SCHEMA_FIELD, _ZERO_THRESHOLD_FIELD = 4, 2, 3, 5, 6
_SPAN, _POSITIVE_COUNT, _CREATED, _EXEMPLAR = 12, 14, 15, 16
_BUCKET_BOUND, _BUCKET_EXEMPLAR, _BUCKET_COUNT_FLOAT = 2, 3, 4

_VARINT, _FIXED64, _BYTES = 0, 1, 2

# One classic bucket.
_CLASSIC = np.dtype(
    [("head", "V2"), ("count_tag", "u1"), ("count", "<f8"), ("tag", "u1"), ("le", "<f8")]
)
_CLASSIC_BYTES = _CLASSIC.itemsize


_SMALL = [bytes((value,)) for value in range(0x80)]


def varint(value: int) -> bytes:
    if value < 0x80:
        return _SMALL[value]
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


@cache
def _tag(number: int, kind: int) -> bytes:
    return varint(number << 3 | kind)


def _whole(number: int, value: int) -> bytes:
    return _tag(number, _VARINT) + varint(value)


def _real(number: int, value: float) -> bytes:
    return _tag(number, _FIXED64) + struct.pack("<d", value)


def _packed(number: int, content: bytes) -> bytes:
    return _tag(number, _BYTES) + varint(len(content)) + content


def _text(number: int, text: str) -> bytes:
    return _packed(number, text.encode(errors="replace"))


def _labels(labels: Labels) -> bytes:
    return b"".join(
        _packed(_METRIC_LABEL, _text(1, name) + _text(2, value)) for name, value in labels
    )


def _time(unix_ns: int) -> bytes:
    """A google.protobuf.Timestamp."""
    seconds, ns = divmod(unix_ns, 1_000_000_000)
    return _whole(1, seconds) + _whole(2, ns)


class _Series:
    """The constant parts of a series' metrics."""

    __slots__ = ("before_counter", "created", "labels")

    def __init__(self, key: SeriesKey, created_unix_ns: int) -> None:
        self.labels = _labels(labels_of(key))
        created = _time(created_unix_ns)
        self.created = _packed(_CREATED, created)
        after = _packed(_COUNTER_CREATED, created)
        # The created time precedes the value, so that one piece holds all constant parts.
        value_bytes = 9
        content = self.labels + _tag(_METRIC_COUNTER, _BYTES) + varint(len(after) + value_bytes)
        content += after + _tag(_COUNTER_VALUE, _FIXED64)
        self.before_counter = (
            _tag(_FAMILY_METRIC, _BYTES) + varint(len(content) + value_bytes - 1) + content
        )


class ProtobufPage:
    def __init__(self, buckets: ClassicBuckets) -> None:
        self._buckets = buckets
        self._bounds = [*buckets.bounds, math.inf]
        self._series = PerSeries(_Series)

    def write(
        self, snapshot: Snapshot, target: Labels = (), more: Sequence[Metric] = ()
    ) -> Iterator[bytes]:
        """All families, in pieces; `target`: the labels of target_info, which is left out if there
        are none; `more`: metrics besides those of the table."""
        series = self._series.of(snapshot)
        if target:
            head = _head("target_info", "Who exports this.", _TYPES[Kind.GAUGE], "")
            yield from _delimited([head, _single(_METRIC_GAUGE, target, 1.0)])
        for metric in (*METRICS, *more):
            if metric.kind is Kind.HISTOGRAM:
                metrics = self._histograms(snapshot, series)
            elif metric.of_series:
                metrics = _counters(metric, snapshot, series)
            else:
                field = _METRIC_COUNTER if metric.kind is Kind.COUNTER else _METRIC_GAUGE
                metrics = (_single(field, *one) for one in of_host(metric, snapshot))
            kind, unit = _TYPES[metric.kind], metric.prometheus_unit
            yield from _delimited([_head(sample_name(metric), metric.help, kind, unit), *metrics])

    def _histograms(self, snapshot: Snapshot, series: Sequence[_Series]) -> Iterator[bytes]:
        classic, first, width = self._classic(snapshot)
        native = _Native(snapshot)
        sums = _reals(_SUM, snapshot.total_s)
        for row in np.flatnonzero(has_run(snapshot)).tolist():
            one = series[row]
            buckets = classic[row * width + first[row] : (row + 1) * width]
            found = snapshot.exemplars.get(row)
            exemplars = b""
            if found:
                # Before version 2.51, Prometheus reads exemplars only from classic buckets.
                buckets = self._marked(buckets, found)
                exemplars = b"".join(_packed(_EXEMPLAR, _exemplar(each)) for each in found)
            histogram = b"".join(
                (buckets, sums[row], native.of(row), one.created, _SHARED, exemplars)
            )
            metric = one.labels + _packed(_METRIC_HISTOGRAM, histogram)
            yield _packed(_FAMILY_METRIC, metric)

    def _classic(self, snapshot: Snapshot) -> tuple[bytes, list[int], int]:
        """The classic buckets of all rows, concatenated; for each row, the number of leading bytes
        to leave out; the number of bytes of a row."""
        upto, first = self._buckets.upto(snapshot)
        records = np.zeros(upto.shape, _CLASSIC)
        head = _tag(_BUCKET, _BYTES) + varint(_CLASSIC_BYTES - 2)
        records["head"] = np.frombuffer(head, "V2")[0]
        records["count_tag"] = _tag(_BUCKET_COUNT_FLOAT, _FIXED64)[0]
        records["count"] = upto
        records["tag"] = _tag(_BUCKET_BOUND, _FIXED64)[0]
        records["le"] = self._bounds
        return (
            records.tobytes(),
            (first * _CLASSIC_BYTES).tolist(),
            upto.shape[1] * _CLASSIC_BYTES,
        )

    def _marked(self, buckets: bytes, exemplars: tuple[Exemplar, ...]) -> bytes:
        """The row's buckets, each with the latest exemplar that falls into it."""
        records = [
            buckets[at + 2 : at + _CLASSIC_BYTES] for at in range(0, len(buckets), _CLASSIC_BYTES)
        ]
        left_out = len(self._bounds) - len(records)
        latest = {
            int(np.searchsorted(self._bounds, one.duration_s)) - left_out: one
            for one in sorted(exemplars, key=lambda exemplar: exemplar.time_unix_ns)
        }
        for place, one in latest.items():
            if place >= 0:
                records[place] += _packed(_BUCKET_EXEMPLAR, _exemplar(one))
        return b"".join(_packed(_BUCKET, record) for record in records)


# The constant fields of every histogram.
_SHARED = _whole(_SCHEMA_FIELD, _SCHEMA << 1) + _real(_ZERO_THRESHOLD_FIELD, _ZERO_THRESHOLD)


class _Native:
    """The native buckets of all rows: the spans of nonempty buckets, and their values."""

    def __init__(self, snapshot: Snapshot) -> None:
        # The width is explicit: numpy cannot infer it from -1 if there are no rows.
        weights = snapshot.buckets.reshape(
            len(snapshot.keys), math.prod(snapshot.buckets.shape[1:])
        )
        counts = weights / layout.WEIGHT_ONE
        rows, width = counts.shape
        # One more column on either side, so that every run of filled buckets begins and ends.
        filled = np.zeros((rows, width + 2), np.int8)
        filled[:, 1:-1] = weights > 0
        edges = np.diff(filled, axis=1).ravel()
        starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
        row = starts // (width + 1)
        # A span's offset counts from the end of the previous span; the first one's is its bucket.
        first = np.diff(row, prepend=-1) != 0
        gap = starts - np.concatenate(([0], ends[:-1]))[: len(starts)]
        offset = np.where(first, starts % (width + 1) + snapshot.bucket_offset + 1, gap)
        self._spans = [*map(_span, offset.tolist(), (ends - starts).tolist())]
        self._first_span = np.searchsorted(row, np.arange(rows + 1)).tolist()
        self._counts = counts[weights > 0].astype("<f8").tobytes()
        bytes_of_row = np.count_nonzero(weights, axis=1) * 8
        self._first_count = [0, *np.cumsum(bytes_of_row).tolist()]
        self._totals = _reals(_COUNT_FLOAT, counts.sum(axis=1))

    def of(self, row: int) -> bytes:
        spans = self._spans[self._first_span[row] : self._first_span[row + 1]]
        counts = self._counts[self._first_count[row] : self._first_count[row + 1]]
        return b"".join((self._totals[row], *spans, _packed(_POSITIVE_COUNT, counts)))


@cache
def _span(offset: int, length: int) -> bytes:
    zigzag = offset << 1 if offset >= 0 else (-offset << 1) - 1
    return _packed(_SPAN, _whole(1, zigzag) + _whole(2, length))


def _exemplar(one: Exemplar) -> bytes:
    labels = _labels((("trace_id", one.trace_id), ("span_id", one.span_id)))
    return labels + _real(2, one.duration_s) + _packed(3, _time(one.time_unix_ns))


def _reals(number: int, values: NDArray[np.float64]) -> list[bytes]:
    """Each value as that field."""
    records = np.zeros(len(values), [("tag", "u1"), ("value", "<f8")])
    records["tag"] = _tag(number, _FIXED64)[0]
    records["value"] = values
    found: list[bytes] = records.view("V9").tolist()
    return found


def _counters(metric: Metric, snapshot: Snapshot, series: Sequence[_Series]) -> Iterator[bytes]:
    rows, values = of_series(metric, snapshot)
    raw: list[bytes] = values.astype("<f8").view("V8").tolist()
    for row, value in zip(rows.tolist(), raw, strict=True):
        yield series[row].before_counter
        yield value


def _single(field: int, labels: Labels, value: float) -> bytes:
    """A gauge or counter: both have their value as field 1."""
    return _packed(_FAMILY_METRIC, _labels(labels) + _packed(field, _real(1, value)))


def _head(name: str, help: str, kind: int, unit: str) -> bytes:
    head = _text(_FAMILY_NAME, name) + _text(_FAMILY_HELP, help) + _whole(_FAMILY_TYPE, kind)
    return head + _text(_FAMILY_UNIT, unit) if unit else head


def _delimited(parts: Sequence[bytes]) -> Iterator[bytes]:
    """One family, preceded by its length; nothing if it has no metric."""
    if len(parts) > 1:
        yield varint(sum(map(len, parts)))
        for begin in range(0, len(parts), _PARTS_AT_A_TIME):
            yield b"".join(parts[begin : begin + _PARTS_AT_A_TIME])
