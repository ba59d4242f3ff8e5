"""The time up to which every exporter has exported: earlier series may retire (host/retirement.py).

An exporter that has exported nothing for an hour does not count, since it may have no reader.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from opscope.host.retirement import unexported
from opscope.host.snapshot import Snapshot
from opscope.server.exporter import PageExporter, PushExporter


class ExportProgress:
    """Wraps an agent's exporters; `exporters` has the wrappers, which report their progress."""

    def __init__(self, exporters: Mapping[str, PageExporter | PushExporter]) -> None:
        self.exporters: dict[str, PageExporter | PushExporter] = {
            name: _Page(one, name, self)
            if isinstance(one, PageExporter)
            else _Push(one, name, self)
            for name, one in exporters.items()
        }
        self._last_ns: dict[str, int] = {}

    def tell(self, name: str, snapshot: Snapshot) -> None:
        """Reports that the exporter has exported this snapshot. Thread-safe."""
        self._last_ns[name] = max(self._last_ns.get(name, 0), snapshot.time_unix_ns)

    def __call__(self, now_ns: int) -> int:
        """The time of the latest snapshot that all have exported, or a later time."""
        patient = unexported(now_ns)
        return min(
            (max(self._last_ns.get(name, 0), patient) for name in self.exporters), default=patient
        )


class _Page:
    """A PageExporter whose page counts once its last piece is generated."""

    def __init__(self, exporter: PageExporter, name: str, exported: ExportProgress) -> None:
        self._exporter, self._name, self._exported = exporter, name, exported

    def page(self, snapshot: Snapshot, accept: str) -> tuple[Iterable[bytes], str]:
        pieces, content_type = self._exporter.page(snapshot, accept)
        return self._told(pieces, snapshot), content_type

    def _told(self, pieces: Iterable[bytes], snapshot: Snapshot) -> Iterator[bytes]:
        yield from pieces
        self._exported.tell(self._name, snapshot)

    def close(self) -> None:
        self._exporter.close()


class _Push:
    """A PushExporter whose export counts once it has arrived."""

    def __init__(self, exporter: PushExporter, name: str, exported: ExportProgress) -> None:
        self._exporter, self._name, self._exported = exporter, name, exported
        self.interval_s = exporter.interval_s

    def export(self, snapshot: Snapshot) -> None:
        self._exporter.export(snapshot)
        self._exported.tell(self._name, snapshot)

    def close(self) -> None:
        self._exporter.close()
