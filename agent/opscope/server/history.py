"""What ran since the agent's start, for the charts of its page, which may be opened at any time.

Its points come from the passes that the agent makes anyway, one in 20 seconds at most: with 2,000
operators a point takes 60 ms of a processor. It has what the charts need, and of the operators only
those with the most time. The older, the coarser: each point of `_TIERS` covers the whole time since
the one before, so that nothing falls between two.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from opscope.host.snapshot import Snapshot
from opscope.reports.breakdown import breakdown, by_kind
from opscope.reports.view import Row, by_operator, by_phase, view
from opscope.server.http_server import Answer

_DAY_S = 86_400.0
_TIERS = ((20.0, 3600.0), (600.0, _DAY_S), (21_600.0, 60 * _DAY_S))
"""(seconds between two points, seconds for which they are kept), the finest first."""
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


class _Tier:
    """Points in one distance of each other, as JSON, since there may be hundreds."""

    def __init__(self, every_s: float, span_s: float) -> None:
        self._every_s, self._span_s = every_s, span_s
        self._before: Sample | None = None
        self.points: deque[tuple[float, str | None]] = deque()
        """Each is of the time since the one before; None where nothing is known of that."""

    def is_due(self, time_s: float) -> bool:
        return not self.points or time_s - self.points[-1][0] >= self._every_s

    def note(self, time_s: float, now: Sample) -> None:
        before, self._before = self._before, now
        # Retired series have moved: nothing is known of the time since the point before.
        is_known = before is not None and before.retired == now.retired
        text = json.dumps(_point(now, before), allow_nan=False) if before and is_known else None
        self.points.append((time_s, text))

    def forget(self, time_s: float, coarser: _Tier | None) -> None:
        """Only what whole points of the coarser tier have."""
        old_s = time_s - self._span_s
        if coarser is not None:
            old_s = max((at_s for at_s, _ in coarser.points if at_s < old_s), default=-math.inf)
        while self.points and self.points[0][0] <= old_s:
            self.points.popleft()


class History:
    """Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._tiers = [_Tier(*tier) for tier in _TIERS]

    def note(self, snapshot: Snapshot) -> None:
        """Adds a point, unless the last one is too young. To be called with each snapshot."""
        with self._lock:
            time_s = self._clock()
            if not self._tiers[0].is_due(time_s):
                return
            now = Sample.of(snapshot)
            for tier in self._tiers:
                if tier.is_due(time_s):
                    tier.note(time_s, now)
            for tier, coarser in zip_longest(self._tiers, self._tiers[1:]):
                tier.forget(time_s, coarser)

    def answer(self) -> Answer:
        """JSON, as page/page.js reads it: the oldest point first."""
        with self._lock:
            time_s, shown = self._clock(), list[tuple[float, str | None]]()
            for tier in self._tiers:
                finer_s = shown[0][0] if shown else math.inf
                shown[:0] = [point for point in tier.points if point[0] < finer_s]
        points = (f'{{"age_s": {time_s - at_s:.1f}, {text[1:]}' for at_s, text in shown if text)
        return Answer(f"[{', '.join(points)}]".encode(), "application/json")


def _point(now: Sample, before: Sample) -> dict[str, Any]:
    """A part of what live.py answers."""
    shown = view(now.operators, before.operators, by_operator, "self")
    alive = [one for one in now.operators.processes if one.is_alive]
    of_rows = [_operator(row, shown.self_base_s, shown.seconds) for row in shown.rows]
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
