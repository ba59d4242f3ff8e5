"""Writes each snapshot as JSON lines, for pipelines that take logs: to standard output or a file.

A line is one series of operators with all that is known of it, or what there is of the host's own
under the same labels. Its numbers are sums since `start_time`, as everywhere; quantiles are of all
ranges since then. A file is rotated by size: the newest old one has the suffix .1.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timezone
from typing import Any

from opscope.agent.exporter import Option, Options, PushExporter
from opscope.agent.snapshot import Snapshot
from opscope.errors import AgentError, ConfigError
from opscope.metrics import METRICS, Kind
from opscope_exporters.resource import agent_resource
from opscope_exporters.samples import Labels, labels_of, of_host, of_series

OPTIONS = (
    Option("file", "-", "file to append to; - is standard output"),
    Option("interval_s", 60.0, "seconds between two snapshots", least=0.1),
    Option("max_mib", 64.0, "size from which the file is rotated", least=0.001),
    Option("keep", 3, "rotated files to keep", least=0),
)

_QUANTILES = (0.5, 0.95, 0.99)


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
        """Whole lines are written in one go, or none of them where there is an error."""
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
                    # A full disk must not leave half a line for whoever parses them.
                    with suppress(OSError):
                        file.truncate(before)
                    raise
        except OSError as error:
            raise AgentError(f"{self._path} cannot be written: {error.strerror}") from error

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
        """No file stays open between two snapshots."""


def _write_all(fd: int, text: bytes) -> None:
    left = memoryview(text)
    while left:
        left = left[os.write(fd, left) :]


def lines(snapshot: Snapshot, host: str) -> Iterator[dict[str, Any]]:
    """Each line as a dictionary: what it is of, then values by the metric's name."""
    time = _iso(snapshot.time_unix_ns)
    series: list[dict[str, Any]] = [
        {"time": time, "host": host, "start_time": _iso(created), **dict(labels_of(key))}
        for key, created in zip(snapshot.keys, snapshot.created_unix_ns.tolist(), strict=True)
    ]
    for metric in METRICS:
        if metric.kind is Kind.HISTOGRAM:
            _add_durations(metric.name, snapshot, series)
        elif metric.of_series:
            rows, values = of_series(metric, snapshot)
            for row, value in zip(rows.tolist(), values.tolist(), strict=True):
                series[row][metric.name] = value
    yield from series
    by_labels: dict[Labels, dict[str, Any]] = {}
    for metric in METRICS:
        if not metric.of_series:
            for labels, value in of_host(metric, snapshot):
                line = by_labels.setdefault(labels, {"time": time, "host": host, **dict(labels)})
                line[metric.name] = value
    yield from by_labels.values()


def _add_durations(name: str, snapshot: Snapshot, series: list[dict[str, Any]]) -> None:
    for row, total in enumerate(snapshot.total_s.tolist()):
        series[row][f"{name}.sum"] = total
    for quantile in _QUANTILES:
        for row, value in enumerate(snapshot.quantile(quantile).tolist()):
            if value == value:
                series[row][f"{name}.p{quantile * 100:g}"] = value


def _iso(unix_ns: int) -> str:
    seconds, ns = divmod(unix_ns, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%dT%H:%M:%S}.{ns:09d}Z"
