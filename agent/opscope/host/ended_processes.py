"""Processes that ended since every exporter exported last, with the APIs that they used.

An exporter of single uses (opscope_exporters/otlp_logs.py) would otherwise never see a process that
starts and ends between two exports. The list is bounded; the oldest are dropped, and `gone` tells
an exporter how many it has missed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from opscope.host.snapshot import Process

# Uses of APIs, of all processes together.
LIMIT = 16_384


class EndedProcesses:
    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._kept: deque[tuple[int, Process]] = deque()
        """When each was found to have ended, in Unix ns, oldest first."""
        self._uses = 0
        self.gone = 0
        """Uses that are in the list no more, whether exported or not."""

    def add(self, processes: Iterable[Process | None], now_ns: int) -> None:
        for process in processes:
            if process is not None and process.usage:
                self._uses += len(process.usage)
                self._kept.append((now_ns, process._replace(notes={}, label_sets=())))
        while self._uses > self._limit:
            self._drop()

    def left(self, exported_unix_ns: int) -> tuple[Process, ...]:
        """Those that ended after `exported_unix_ns`, the time up to which all have exported."""
        while self._kept and self._kept[0][0] <= exported_unix_ns:
            self._drop()
        return tuple(process for _, process in self._kept)

    def _drop(self) -> None:
        _, process = self._kept.popleft()
        self._uses -= len(process.usage)
        self.gone += len(process.usage)
