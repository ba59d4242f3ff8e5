"""The page as text: Prometheus's own format, or OpenMetrics with start times and exemplars.

Prepared formats produce the lines of one series at a time: a page of 2,000 series has 60,000 lines.
`le` and all values are written as Prometheus itself writes them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from opscope.host.snapshot import Exemplar, SeriesKey, Snapshot
from opscope.metric_definition import Kind, Metric
from opscope_exporters.samples import (
    CLASSIC_METRICS,
    ClassicBuckets,
    Labels,
    PerSeries,
    labels_of,
    of_host,
    of_series,
    sample_name,
)

PLAIN_TYPE = "text/plain; version=0.0.4; charset=utf-8"

# Placeholder for a series' labels in a format: no text contains a NUL.
_HERE = b"\0"
# Python writes floats from here on with an exponent.
_WHOLE_BELOW = 1e15
_ROWS_AT_A_TIME = 250


class TextPage:
    def __init__(self, buckets: ClassicBuckets) -> None:
        self._buckets = buckets
        self._les = [*map(repr, buckets.bounds), "+Inf"]
        self._bounds = [*buckets.bounds, math.inf]
        self._labels = PerSeries(_series_labels)

    def write(
        self,
        snapshot: Snapshot,
        *,
        openmetrics: bool,
        target: Labels = (),
        more: Sequence[Metric] = (),
    ) -> Iterator[bytes]:
        """The page in pieces; `target`: the labels of target_info, left out if empty; `more`:
        metrics besides those of the table."""
        labels = self._labels.of(snapshot)
        if target:
            # OpenMetrics' family `target`, of type info, has this one sample.
            name, kind = ("target", "info") if openmetrics else ("target_info", "gauge")
            yield _head(name, kind, "", "Who exports this.")
            yield b"target_info{%b} 1\n" % _pairs(target)
        for metric in (*CLASSIC_METRICS, *more):
            name = metric.prometheus_name if openmetrics else sample_name(metric)
            unit = metric.prometheus_unit if openmetrics else ""
            yield _head(name, metric.kind.value, unit, metric.help)
            if metric.kind is Kind.HISTOGRAM:
                yield from self._histogram(metric, snapshot, labels, openmetrics)
            elif metric.of_series:
                yield from _series(metric, snapshot, labels)
            else:
                yield from _host(metric, snapshot)
        if openmetrics:
            yield b"# EOF\n"

    def _histogram(
        self, metric: Metric, snapshot: Snapshot, labels: Sequence[bytes], openmetrics: bool
    ) -> Iterator[bytes]:
        name = metric.prometheus_name.encode()
        lines = [b'%b_bucket{\0,le="%b"} %%d' % (name, le.encode()) for le in self._les]
        after = b"\n%b_count{\0} %%d\n%b_sum{\0} %%a\n" % (name, name)
        if openmetrics:
            after += b"%b_created{\0} %%.3f\n" % name
        # By the number of the first bucket written for a series.
        forms: dict[int, bytes] = {}
        created = (snapshot.created_unix_ns / 1e9).tolist() if openmetrics else None
        exemplars = snapshot.exemplars if openmetrics else {}
        sums = snapshot.total_s.tolist()
        for row, (first, counts) in enumerate(self._rows(snapshot)):
            if not counts[-1] and not sums[row]:
                continue
            values = (*counts[first:], counts[-1], sums[row])
            if created is not None:
                values += (created[row],)
            # Exemplars contain only hexadecimal digits and numbers, so a format may contain them.
            found = exemplars.get(row)
            if found:
                form = b"\n".join(self._marked(lines, found)[first:]) + after
            elif not (form := forms.get(first, b"")):
                form = forms[first] = b"\n".join(lines[first:]) + after
            yield (form % values).replace(_HERE, labels[row])

    def _rows(self, snapshot: Snapshot) -> Iterator[tuple[int, list[int]]]:
        """For each row, the first bucket written, and all counts. Works in batches: millions of
        Python numbers at once would not fit into any cache."""
        for begin in range(0, len(snapshot.keys), _ROWS_AT_A_TIME):
            upto, first = self._buckets.upto(snapshot, slice(begin, begin + _ROWS_AT_A_TIME))
            # OpenMetrics allows only whole numbers; estimates may be fractional.
            whole: list[list[int]] = np.rint(upto).astype(np.int64).tolist()
            yield from zip(first.tolist(), whole, strict=True)

    def _marked(self, lines: list[bytes], exemplars: tuple[Exemplar, ...]) -> list[bytes]:
        """The bucket lines, each with the latest exemplar that falls into it."""
        marked = list(lines)
        for one in sorted(exemplars, key=lambda exemplar: exemplar.time_unix_ns):
            place = int(np.searchsorted(self._bounds, one.duration_s))
            marked[place] = lines[place] + b' # {trace_id="%b",span_id="%b"} %a %.3f' % (
                one.trace_id.encode(),
                one.span_id.encode(),
                one.duration_s,
                one.time_unix_ns / 1e9,
            )
        return marked


def _series(metric: Metric, snapshot: Snapshot, labels: Sequence[bytes]) -> Iterator[bytes]:
    rows, values = of_series(metric, snapshot)
    name = sample_name(metric).encode()
    if (np.abs(values) < _WHOLE_BELOW).all() and (values == np.rint(values)).all():
        # The same text as below, produced faster.
        line, values = name + b"{%b} %d.0\n", values.astype(np.int64)
    else:
        line = name + b"{%b} %a\n"
    for begin in range(0, len(rows), _ROWS_AT_A_TIME):
        here = slice(begin, begin + _ROWS_AT_A_TIME)
        numbers = values[here].tolist()
        pairs: list[object] = [None] * (2 * len(numbers))
        pairs[::2] = [labels[row] for row in rows[here].tolist()]
        pairs[1::2] = numbers
        yield line * len(numbers) % tuple(pairs)


def _head(name: str, kind: str, unit: str, help: str) -> bytes:
    help = help.replace("\\", r"\\").replace("\n", r"\n")
    text = f"# HELP {name} {help}\n# TYPE {name} {kind}\n"
    return (text + f"# UNIT {name} {unit}\n" * bool(unit)).encode()


def _host(metric: Metric, snapshot: Snapshot) -> Iterator[bytes]:
    name = sample_name(metric).encode()
    for labels, value in of_host(metric, snapshot):
        yield (
            b"%b{%b} %a\n" % (name, _pairs(labels), value)
            if labels
            else (b"%b %a\n" % (name, value))
        )


def _series_labels(key: SeriesKey, created_unix_ns: int) -> bytes:
    return _pairs(labels_of(key))


def _pairs(labels: Labels) -> bytes:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels).encode(
        errors="replace"
    )


def _escaped(value: str) -> str:
    """As a label's value; a NUL, which no format can contain, becomes "?"."""
    value = value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return value.replace("\0", "?")
