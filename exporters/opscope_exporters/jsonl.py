"""Writes each snapshot as JSON lines, for log pipelines, to standard output or to a file.

A line has all values of one operator series, or all host values with the same labels. Values are
sums since `start_time`; quantiles cover all ranges since then, and are left out if they rest on too
few samples. An estimate has its standard error as `.error`; a value without one is exact. A label
with the name of one of the line's own fields is written as `label_NAME`. A file is rotated by size:
the newest old file has the suffix .1.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from opscope.errors import AgentError, ConfigError
from opscope.metric_definition import Kind
from opscope.metrics import METRICS
from opscope.reports import certainty
from opscope.server.exporter import Option, Options, PushExporter
from opscope_exporters.resource import agent_resource
from opscope_exporters.samples import Labels, labels_of, of_host, of_series

if TYPE_CHECKING:
    from opscope.host.snapshot import Snapshot

OPTIONS = (
    Option("file", "-", "file to append to; - for standard output"),
    Option("interval_s", 60.0, "seconds between snapshots", least=0.1),
    Option("max_mib", 64.0, "size in MiB at which to rotate the file", least=0.001),
    Option("keep", 3, "number of rotated files to keep", least=0),
)

_VARIANCE = ".variance"
# Fields of a line that are not labels.
_FIELDS = ("time", "host", "start_time")


def create(options: Options) -> PushExporter:
    path = options["file"]
    if path != "-" and not os.path.isabs(path):
        raise ConfigError(
            f"exporter jsonl: file={path!r}: must be absolute, or - for standard output"
        )
    return JsonLines(path, options["interval_s"], int(options["max_mib"] * 2**20), options["keep"])


class JsonLines:
    def __init__(self, path: str, interval_s: float, max_bytes: int, keep: int) -> None:
        self.interval_s = interval_s
        self._path = path
        self._max_bytes = max_bytes
        self._keep = keep
        self._host = agent_resource()["host.name"]

    def export(self, snapshot: Snapshot) -> None:
        """Writes all lines at once, or none of them on an error."""
        text = "".join(
            json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n"
            for line in lines(snapshot, self._host)
        ).encode(errors="replace")
        if self._path == "-":
            sys.stdout.flush()
            sys.stdout.buffer.write(text)
            sys.stdout.buffer.flush()
            return
        try:
            self._rotate(len(text))
            with open(self._path, "ab", buffering=0) as file:
                before = file.tell()
                try:
                    _write_all(file.fileno(), text)
                except OSError:
                    # On a full disk, leave no partial line for parsers.
                    with suppress(OSError):
                        file.truncate(before)
                    raise
        except OSError as error:
            raise AgentError(f"cannot write {self._path}: {error.strerror}") from error

    def _rotate(self, coming: int) -> None:
        try:
            size = os.stat(self._path).st_size
        except FileNotFoundError:
            return
        if size and size + coming > self._max_bytes:
            for number in range(self._keep, 1, -1):
                with suppress(FileNotFoundError):
                    os.replace(f"{self._path}.{number - 1}", f"{self._path}.{number}")
            if self._keep:
                os.replace(self._path, f"{self._path}.1")
            else:
                os.unlink(self._path)

    def close(self) -> None:
        """Does nothing: no file stays open between two snapshots."""


def _write_all(fd: int, text: bytes) -> None:
    left = memoryview(text)
    while left:
        left = left[os.write(fd, left) :]


def lines(snapshot: Snapshot, host: str) -> Iterator[dict[str, Any]]:
    """Each line as a dictionary: labels, then values by the metric's name."""
    time = _iso(snapshot.time_unix_ns)
    series: list[dict[str, Any]] = [
        {"time": time, "host": host, "start_time": _iso(created), **_named(labels_of(key))}
        for key, created in zip(snapshot.keys, snapshot.created_unix_ns.tolist(), strict=True)
    ]
    for metric in METRICS:
        if metric.kind is Kind.HISTOGRAM:
            _add_durations(metric.name, snapshot, series)
        elif metric.of_series:
            rows, values = of_series(metric, snapshot)
            for row, value in zip(rows.tolist(), values.tolist(), strict=True):
                series[row][metric.name] = value
                if metric.name.endswith(_VARIANCE):
                    series[row][f"{metric.name.removesuffix(_VARIANCE)}.error"] = math.sqrt(value)
    yield from series
    by_labels: dict[Labels, dict[str, Any]] = {}
    for metric in METRICS:
        if not metric.of_series:
            for labels, value in of_host(metric, snapshot):
                line = by_labels.setdefault(labels, {"time": time, "host": host, **_named(labels)})
                line[metric.name] = value
    yield from by_labels.values()


def _named(labels: Labels) -> dict[str, str]:
    """The labels, renamed where they equal one of the line's own fields."""
    named: dict[str, str] = {}
    for name, value in labels:
        key = f"label_{name}" if name in _FIELDS else name
        # As in with_labels() for names that become equal.
        named[key] = f"{named[key]};{value}" if key in named else value
    return named


def _add_durations(name: str, snapshot: Snapshot, series: list[dict[str, Any]]) -> None:
    for row, total in enumerate(snapshot.total_s.tolist()):
        series[row][f"{name}.sum"] = total
    for p in certainty.LEAST_SAMPLES:
        for row, value in enumerate(certainty.quantile(snapshot, p).tolist()):
            if value == value:
                series[row][f"{name}.p{p * 100:g}"] = value


def _iso(unix_ns: int) -> str:
    seconds, ns = divmod(unix_ns, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%dT%H:%M:%S}.{ns:09d}Z"
