"""The last hour, for the charts of the agent's page, which may be opened at any time.

Its points come from the passes that the agent makes anyway, one in 20 seconds at most: with 2,000
operators a point takes 60 ms of a processor. It has what the charts need, and of the operators only
those with the most time.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from opscope.host.snapshot import Snapshot
from opscope.reports.breakdown import breakdown, by_kind
from opscope.reports.view import Row, by_operator, by_phase, view
from opscope.server.http_server import Answer

_SPAN_S = 3600.0
_EVERY_S = 20.0
_OPERATORS = 12
_OTHERS = "others"
"""What charts.js calls all operators that it does not name."""


class Sample(NamedTuple):
    """The counts at one time, merged into a fraction of the host's series."""

    operators: Snapshot
    kinds: Snapshot
    parts: Snapshot
    """By service, operator and phase, without durations."""

    @classmethod
    def of(cls, snapshot: Snapshot) -> Sample:
        none = np.zeros((len(snapshot.keys), 0, 8), np.uint64)
        parts = replace(snapshot, buckets=none).grouped(by_phase)
        return cls(snapshot.grouped(by_operator), by_kind(snapshot), parts)

    @property
    def retired(self) -> int:
        return self.operators.series_retired


class History:
    """Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._before: tuple[float, Sample] | None = None
        self._points: deque[tuple[float, dict[str, Any]]] = deque()

    def note(self, snapshot: Snapshot) -> None:
        """Adds a point, unless the last one is too young. To be called with each snapshot."""
        with self._lock:
            time_s, before = self._clock(), self._before
            if before is not None and time_s - before[0] < _EVERY_S:
                return
            now = Sample.of(snapshot)
            self._before = time_s, now
            # Retired series have moved: nothing is known of the time since the point before.
            if before is not None and before[1].retired == now.retired:
                self._points.append((time_s, _point(now, before[1])))
            while self._points and time_s - self._points[0][0] > _SPAN_S:
                self._points.popleft()

    def answer(self) -> Answer:
        """JSON, as page/page.js reads it: the oldest point first."""
        with self._lock:
            time_s = self._clock()
            points = [{"age_s": round(time_s - at_s, 1), **point} for at_s, point in self._points]
        return Answer(json.dumps(points, allow_nan=False).encode(), "application/json")


def _point(now: Sample, before: Sample) -> dict[str, Any]:
    """A part of what live.py answers."""
    shown = view(now.operators, before.operators, by_operator, "self")
    alive = [one for one in now.operators.processes if one.is_alive]
    base_s = shown.base_s if shown.base_is_self else None
    of_rows = [_operator(row, base_s, shown.seconds) for row in shown.rows]
    rest = [row["threads"] for row in of_rows[_OPERATORS:] if row["threads"] is not None]
    others = [{"operator": _OTHERS, "threads": sum(rest), "calls_per_s": None}] if rest else []
    budgets = [one.overhead_budget for one in alive if one.overhead_budget]
    return {
        "operators": [*of_rows[:_OPERATORS], *others],
        "by": breakdown(now.kinds, before.kinds, shown.seconds),
        "process_count": now.operators.process_count,
        "recent_overhead": max((one.recent_overhead for one in alive), default=None),
        "overhead_budget": min(budgets, default=None),
    }


def _operator(row: Row, base_s: float | None, seconds: float) -> dict[str, Any]:
    facts = row.facts()
    made = {name: facts[name] for name in ("operator", "calls_per_s", "p50_s", "p95_s", "p99_s")}
    return made | {"threads": threads(row, base_s, seconds)}


def threads(row: Row, base_s: float | None, seconds: float) -> float | None:
    """Threads busy in the operator, on average; None if that is unknown, as without `base_s`."""
    if row.self_share is None or base_s is None or seconds <= 0:
        return None
    return row.self_share * base_s / seconds
