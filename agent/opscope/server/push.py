"""Schedule push exporters: each gets snapshots in a thread of its own, at its own interval.

Nothing is queued: after a slow export, an exporter gets the newest snapshot next. So a hanging
exporter costs no memory, and never delays a page. Results of exports are counted (`results`), and
changes are reported: once when an exporter fails, once when it works again.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress

from opscope.host.snapshot import Snapshot
from opscope.server.exporter import ExportRefused, PushExporter

SENT, FAILED, REFUSED = "sent", "failed", "refused"

# Seconds that the agent waits at its end for a last export, and then for an export to abort.
_LAST_EXPORT_S, _END_S = 3.0, 2.0


class Push:
    """Pushes snapshots from construction until close()."""

    def __init__(
        self,
        exporters: Mapping[str, PushExporter],
        snapshot: Callable[[], Snapshot],
        say: Callable[[str], None],
    ) -> None:
        """`snapshot` makes one and must be thread-safe; `say` gets changes of state."""
        self._lock = threading.Lock()
        self._results: Counter[tuple[str, str]] = Counter()
        self._workers = [
            _Worker(name, exporter, snapshot, self._count, say)
            for name, exporter in exporters.items()
        ]

    @property
    def results(self) -> dict[tuple[str, str], int]:
        """The number of exports, by (exporter, result)."""
        with self._lock:
            return dict(self._results)

    def _count(self, exporter: str, result: str) -> None:
        with self._lock:
            self._results[exporter, result] += 1

    def close(self) -> None:
        """Makes one last export each, of the increase since the previous one, and stops."""
        for worker in self._workers:
            worker.stop.set()
        deadline = time.monotonic() + _LAST_EXPORT_S
        for worker in self._workers:
            worker.thread.join(max(deadline - time.monotonic(), 0.0))
            with suppress(Exception):
                worker.exporter.close()
        deadline = time.monotonic() + _END_S
        for worker in self._workers:
            worker.thread.join(max(deadline - time.monotonic(), 0.0))


class _Worker:
    """One exporter and its thread."""

    def __init__(
        self,
        name: str,
        exporter: PushExporter,
        snapshot: Callable[[], Snapshot],
        count: Callable[[str, str], None],
        say: Callable[[str], None],
    ) -> None:
        self.exporter = exporter
        self.stop = threading.Event()
        self._name = name
        self._snapshot = snapshot
        self._count = count
        self._say = say
        self._works = True
        self.thread = threading.Thread(target=self._run, name=f"opscope-{name}", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        is_last = False
        while not is_last:
            is_last = self.stop.wait(self.exporter.interval_s)
            result, why = self._export(is_last)
            self._count(self._name, result)
            if self._works != (result == SENT):
                self._works = result == SENT
                self._say(f"exporter {self._name} {'works again' if self._works else why}")

    def _export(self, is_last: bool) -> tuple[str, str]:
        try:
            self.exporter.export(self._snapshot())
        except ExportRefused as error:
            return REFUSED, f"was refused: {error}"
        except Exception as error:
            goes_on = "" if is_last else ", and will retry"
            return FAILED, f"failed{goes_on}: {str(error) or type(error).__name__}"
        return SENT, ""
