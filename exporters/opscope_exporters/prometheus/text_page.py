"""The page as text: Prometheus's own format, or OpenMetrics with start times and exemplars.

Lines are put together a series at a time by formats made beforehand: a page of 2,000 series has
44,000 lines. `le` and every value are written the way Prometheus writes them itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from opscope.agent.snapshot import Exemplar, SeriesKey, Snapshot
from opscope.metrics import METRICS, Kind, Metric
from opscope_exporters.samples import (
    ClassicBuckets,
    Labels,
    PerSeries,
    labels_of,
    of_host,
    of_series,
    sample_name,
)

PLAIN_TYPE = "text/plain; version=0.0.4; charset=utf-8"

# Where in a format a series' labels go: no text has a NUL.
_HERE = b"\0"
# From here on Python writes a float with an exponent.
_WHOLE_BELOW = 1e15
_ROWS_AT_A_TIME = 250


class TextPage:
    def __init__(self, buckets: ClassicBuckets) -> None:
        self._buckets = buckets
        self._les = [*map(repr, buckets.bounds), "+Inf"]
        self._bounds = [*buckets.bounds, math.inf]
        self._labels = PerSeries(_series_labels)

    def write(
        self, snapshot: Snapshot, *, openmetrics: bool, target: Labels = ()
    ) -> Iterator[bytes]:
        """The page in pieces; `target`: the labels of target_info, without which there is none."""
        labels = self._labels.of(snapshot)
        if target:
            # What OpenMetrics calls the family target, of type info, has this one sample.
            name, kind = ("target", "info") if openmetrics else ("target_info", "gauge")
            yield _head(name, kind, "", "Who exports this.")
            yield b"target_info{%b} 1\n" % _pairs(target)
        for metric in METRICS:
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
        # OpenMetrics takes whole numbers only; estimates from samples may be others.
        upto = np.rint(self._buckets.upto(snapshot)).astype(np.int64)
        sums = snapshot.total_s.tolist()
        name = metric.prometheus_name.encode()
        lines = [b'%b_bucket{\0,le="%b"} %%d' % (name, le.encode()) for le in self._les]
        after = b"\n%b_count{\0} %%d\n%b_sum{\0} %%a\n" % (name, name)
        if openmetrics:
            after += b"%b_created{\0} %%.3f\n" % name
        form = b"\n".join(lines) + after
        created = (snapshot.created_unix_ns / 1e9).tolist() if openmetrics else None
        exemplars = snapshot.exemplars if openmetrics else {}
        rows = zip(labels, _rows(upto), sums, strict=True)
        for row, (of_row, counts, total) in enumerate(rows):
            values = (*counts, counts[-1], total)
            if created is not None:
                values += (created[row],)
            # Exemplars are of hexadecimal digits and numbers, so they may stand in a format.
            found = exemplars.get(row)
            wanted = b"\n".join(self._marked(lines, found)) + after if found else form
            yield (wanted % values).replace(_HERE, of_row)

    def _marked(self, lines: list[bytes], exemplars: tuple[Exemplar, ...]) -> list[bytes]:
        """The bucket lines with the latest exemplar that falls into each."""
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


def _rows(table: NDArray[np.int64]) -> Iterator[list[int]]:
    """A piece at a time: millions of Python's numbers at once would be out of every cache."""
    for begin in range(0, len(table), _ROWS_AT_A_TIME):
        yield from table[begin : begin + _ROWS_AT_A_TIME].tolist()


def _series(metric: Metric, snapshot: Snapshot, labels: Sequence[bytes]) -> Iterator[bytes]:
    rows, values = of_series(metric, snapshot)
    name = sample_name(metric).encode()
    if (np.abs(values) < _WHOLE_BELOW).all() and (values == np.rint(values)).all():
        # The same text as below, in less time.
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
    """As a label's value; a NUL, which no format here can carry, becomes "?"."""
    value = value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return value.replace("\0", "?")
