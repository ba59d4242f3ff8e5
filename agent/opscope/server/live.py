"""The numbers of now for the agent's page at `/`: a small JSON object, made when somebody looks.

Rates are of the last ten seconds in which somebody looked, as shorter ones hold few windows; looks
that come close after one another get the same answer. Nothing is kept or computed while nobody
looks: what the page draws over time it has gathered itself since it was opened. The page, which
needs nothing but this, is in page/.
"""

from __future__ import annotations

import json
import math
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from opscope.agent import layout, python_processes
from opscope.agent.breakdown import breakdown, by_kind
from opscope.agent.http_server import Answer, Route
from opscope.agent.inventory import Unobserved
from opscope.agent.pid_namespaces import Pids
from opscope.agent.snapshot import Process, Snapshot
from opscope.agent.view import Row, View, by_operator, sampling, view

CONTENT_TYPES = {
    "page.html": "text/html; charset=utf-8",
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "charts.js": "text/javascript; charset=utf-8",
}
_OPERATORS_SHOWN = 50
_PROCESSES_SHOWN = 200
_FRESH_S = 1.0
"""An answer this young is given again."""
_SPAN_S = 10.0
_STALE_S = 30.0
"""A look longer ago than this is forgotten: what happened since then is not now."""


@cache
def file(name: str) -> bytes:
    """One of CONTENT_TYPES."""
    return resources.files("opscope.agent").joinpath("page", name).read_bytes()


def routes(
    latest: Callable[[], Snapshot], others: Callable[[Sequence[Process]], Sequence[Unobserved]]
) -> dict[str, Route]:
    """The page and its numbers, for Server; arguments as of Live."""
    live = Live(latest, others)
    return {
        "/": _page("page.html"),
        **{f"/{name}": _page(name) for name in CONTENT_TYPES if name != "page.html"},
        "/api/live": lambda _: Answer(live.answer(), "application/json"),
    }


def _page(name: str) -> Route:
    return lambda _: Answer(file(name), CONTENT_TYPES[name])


class _Look(NamedTuple):
    """What was there at one time, in a fraction of the host's series."""

    operators: Snapshot
    kinds: Snapshot

    @classmethod
    def of(cls, snapshot: Snapshot) -> _Look:
        return cls(snapshot.grouped(by_operator), by_kind(snapshot))


class Live:
    """Answers for all who look. Safe among threads.

    `latest`: makes a snapshot. `others`: finds the processes that are not observed, given those
    that are.
    """

    def __init__(
        self,
        latest: Callable[[], Snapshot],
        others: Callable[[Sequence[Process]], Sequence[Unobserved]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._latest = latest
        self._others = others
        self._clock = clock
        self._lock = threading.Lock()
        self._looks: deque[tuple[float, _Look]] = deque()
        """When, and what was there then."""
        self._answer = b""

    def answer(self) -> bytes:
        """JSON, as page/page.js reads it."""
        with self._lock:
            time_s = self._clock()
            if self._looks and time_s - self._looks[-1][0] < _FRESH_S:
                return self._answer
            if self._looks and time_s - self._looks[-1][0] > _STALE_S:
                self._looks.clear()
            while len(self._looks) > 1 and time_s - self._looks[1][0] >= _SPAN_S:
                self._looks.popleft()
            now = _Look.of(self._latest())
            before = self._looks[0][1] if self._looks else None
            alive = [one for one in now.operators.processes if one.is_alive]
            answer = _answer(now, before, alive, self._others(alive))
            self._looks.append((self._clock(), now))
            self._answer = json.dumps(answer, allow_nan=False).encode()
            return self._answer


def _answer(
    look: _Look,
    earlier: _Look | None,
    alive: Sequence[Process],
    others: Sequence[Unobserved],
) -> dict[str, Any]:
    now, pids = look.operators, Pids()
    shown = view(now, earlier.operators if earlier else None, by_operator)
    ran = now.since(earlier.operators) if earlier else now
    octaves = ran.buckets.sum(axis=2) / layout.WEIGHT_ONE
    rows = {key: octaves[number] for number, key in enumerate(now.keys)}
    budgets = [one.overhead_budget for one in alive if one.overhead_budget]
    is_busy_known = shown.seconds > 0 and shown.base_is_self
    return {
        "host": socket.gethostname(),
        "about": _about(shown),
        "seconds": None if shown.is_since_start else shown.seconds,
        "by": breakdown(look.kinds, earlier.kinds, shown.seconds) if earlier else None,
        "samples": shown.samples,
        "busy": shown.base_s / shown.seconds if is_busy_known else None,
        "dropped": now.health.dropped,
        "calls_per_s": sum(row.calls_per_s for row in shown.rows),
        "overhead_of_late": max((one.overhead_of_late for one in alive), default=None),
        "overhead_budget": min(budgets, default=None),
        "first_octave": now.first_octave - layout.SECOND_LOG2,
        "operators": [
            _operator(row, rows[row.key], shown.base_s if is_busy_known else None, shown.seconds)
            for row in shown.rows[:_OPERATORS_SHOWN]
        ],
        "processes": [_process(one, pids) for one in alive[:_PROCESSES_SHOWN]],
        "process_count": now.process_count,
        "others": [
            {"pid": one.pid, "user": one.user, "program": one.program, "why": one.why}
            for one in others[:_PROCESSES_SHOWN]
        ],
        "other_count": len(others),
    }


def _about(shown: View) -> str:
    span = "since the start" if shown.is_since_start else f"in the last {shown.seconds:.1f} s"
    base = (
        "shares are of the time spent in operators, over all threads"
        if shown.base_is_self
        else "shares are of all total times added up, as not all self times are known"
    )
    more = len(shown.rows) - _OPERATORS_SHOWN
    left_out = f"; {more} more operators ran" if more > 0 else ""
    return f"{span}; {base}{left_out}"


def _operator(
    row: Row, octaves: NDArray[np.float64], base_s: float | None, seconds: float
) -> dict[str, Any]:
    """`octaves`: calls by duration, from 2^first_octave s on."""
    threads = None
    if base_s is not None and row.self_share is not None:
        threads = row.self_share * base_s / seconds
    return {
        "operator": row.key.op,
        "framework": row.key.framework,
        "calls_per_s": row.calls_per_s,
        "total_share": row.total_share,
        "self_share": _known(row.self_share),
        "p50_s": _known(row.p50_s),
        "p95_s": _known(row.p95_s),
        "p99_s": _known(row.p99_s),
        "threads": threads,
        "octaves": [float(f"{calls:.3g}") for calls in octaves.tolist()],
    }


def _process(process: Process, pids: Pids) -> dict[str, Any]:
    pid_here = pids.pid_here(process.pid_namespace, process.pid, process.process_start)
    return {
        "pid": process.pid if pid_here is None else pid_here,
        "user": python_processes.user_name(process.uid),
        "program": process.program,
        "service": process.service,
        "since_unix_s": process.created_unix_ns / 1e9,
        "sampling": sampling((process,)),
        "samples": process.health.samples,
        "dropped": process.health.dropped,
        "overhead_of_late": process.overhead_of_late,
        "bridges": [
            name if outcome == "attached" else f"{name} not: {outcome}"
            for name, outcome in sorted(process.bridges.items())
        ],
    }


def _known(value: float | None) -> float | None:
    """JSON has no NaN."""
    return None if value is None or not math.isfinite(value) else value
