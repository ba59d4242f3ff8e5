"""Schedule push exporters: each gets snapshots in a thread of its own, at its own interval.

Nothing is queued: after a slow export, an exporter gets the newest snapshot next. So a hanging
exporter costs no memory, and never delays a page. Results of exports are counted (`results`), and
changes are reported: when an exporter fails, when it fails for another reason, and when it works
again.
"""

from __future__ import annotations

import re
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

# Reasons reported until the exporter works again.
_REASONS_LIMIT = 16
# What differs from one failure to the next for the same reason: numbers and addresses of objects.
_VARIES = re.compile(r"0x[0-9a-f]+|\d[\d.]*")
_STATUS = re.compile(r"[45]\d\d\.?")


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
        self._failed = ""
        """The reason reported last, without what varies; "" if it works."""
        self._reasons_left = _REASONS_LIMIT
        self.thread = threading.Thread(target=self._run, name=f"opscope-{name}", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        is_last = False
        while not is_last:
            is_last = self.stop.wait(self.exporter.interval_s)
            result, why = self._export(is_last)
            self._count(self._name, result)
            self._report(why)

    def _report(self, why: str) -> None:
        """`why` it failed; "" if it works."""
        failed = _VARIES.sub(lambda found: found[0] if _STATUS.fullmatch(found[0]) else "", why)
        if failed == self._failed or (failed and not self._reasons_left):
            return
        self._failed = failed
        self._reasons_left = self._reasons_left - 1 if failed else _REASONS_LIMIT
        if not self._reasons_left:
            why += "; further reasons are not reported until it works again"
        self._say(f"exporter {self._name} {why or 'works again'}")

    def _export(self, is_last: bool) -> tuple[str, str]:
        try:
            self.exporter.export(self._snapshot())
        except ExportRefused as error:
            return REFUSED, f"was refused: {error}"
        except Exception as error:
            goes_on = "" if is_last else ", and will retry"
            return FAILED, f"failed{goes_on}: {str(error) or type(error).__name__}"
        return SENT, ""
