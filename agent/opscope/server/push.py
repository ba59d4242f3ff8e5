"""When push exporters are given snapshots: each from a thread of its own, as often as it wants.

Nothing is queued: an exporter that has taken its time gets the newest snapshot next, so one that
hangs costs no memory, and a page is never kept waiting by it. What became of exports is counted
(`results`), and said when it changes: once that an exporter fails, once that it works again.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress

from opscope.agent.exporter import ExportRefused, PushExporter
from opscope.agent.snapshot import Snapshot

SENT, FAILED, REFUSED = "sent", "failed", "refused"

# How long the end of the agent waits for a last export, and then for one that is being ended.
_LAST_EXPORT_S, _END_S = 3.0, 2.0


class Push:
    """Pushes snapshots from construction until close()."""

    def __init__(
        self,
        exporters: Mapping[str, PushExporter],
        snapshot: Callable[[], Snapshot],
        say: Callable[[str], None],
    ) -> None:
        """`snapshot` makes one and may be called from several threads; `say` is told news."""
        self._lock = threading.Lock()
        self._results: Counter[tuple[str, str]] = Counter()
        self._lanes = [
            _Lane(name, exporter, snapshot, self._count, say)
            for name, exporter in exporters.items()
        ]

    @property
    def results(self) -> dict[tuple[str, str], int]:
        """How many exports there were, by (exporter, result)."""
        with self._lock:
            return dict(self._results)

    def _count(self, exporter: str, result: str) -> None:
        with self._lock:
            self._results[exporter, result] += 1

    def close(self) -> None:
        """One more export each, of what happened since the last one, and then the end."""
        for lane in self._lanes:
            lane.stop.set()
        deadline = time.monotonic() + _LAST_EXPORT_S
        for lane in self._lanes:
            lane.thread.join(max(deadline - time.monotonic(), 0.0))
            with suppress(Exception):
                lane.exporter.close()
        deadline = time.monotonic() + _END_S
        for lane in self._lanes:
            lane.thread.join(max(deadline - time.monotonic(), 0.0))


class _Lane:
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
            goes_on = "" if is_last else ", and goes on trying"
            return FAILED, f"failed{goes_on}: {str(error) or type(error).__name__}"
        return SENT, ""
