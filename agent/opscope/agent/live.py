"""The numbers of now for the agent's page at `/`: a small JSON object, made when somebody looks.

Rates are of the last ten seconds in which somebody looked, as shorter ones hold few windows; looks
that come close after one another get the same answer. Nothing is kept or computed while nobody
looks. The page itself, which needs nothing but this, is in page/.
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
from typing import Any

from opscope.agent import python_processes
from opscope.agent.http_server import Answer, Route
from opscope.agent.inventory import Unobserved
from opscope.agent.snapshot import Process, Snapshot
from opscope.agent.view import Row, View, by_operator, overhead, sampling, view

CONTENT_TYPES = {
    "page.html": "text/html; charset=utf-8",
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
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
        "/": lambda _: Answer(file("page.html"), CONTENT_TYPES["page.html"]),
        "/page.css": lambda _: Answer(file("page.css"), CONTENT_TYPES["page.css"]),
        "/page.js": lambda _: Answer(file("page.js"), CONTENT_TYPES["page.js"]),
        "/api/live": lambda _: Answer(live.answer(), "application/json"),
    }


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
        self._looks: deque[tuple[float, Snapshot]] = deque()
        """When, and what was there then, by operator: a fraction of the host's series."""
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
            now = self._latest().grouped(by_operator)
            before = self._looks[0][1] if self._looks else None
            alive = [process for process in now.processes if process.is_alive]
            answer = _answer(now, before, alive, self._others(alive))
            self._looks.append((self._clock(), now))
            self._answer = json.dumps(answer, allow_nan=False).encode()
            return self._answer


def _answer(
    now: Snapshot,
    before: Snapshot | None,
    alive: Sequence[Process],
    others: Sequence[Unobserved],
) -> dict[str, Any]:
    shown = view(now, before, by_operator)
    is_busy_known = shown.seconds > 0 and shown.base_is_self
    return {
        "host": socket.gethostname(),
        "about": _about(shown),
        "samples": shown.samples,
        "busy": shown.base_s / shown.seconds if is_busy_known else None,
        "dropped": now.health.dropped,
        "overhead": _known(overhead(tuple(alive), now.time_unix_ns)),
        "operators": [_operator(row) for row in shown.rows[:_OPERATORS_SHOWN]],
        "processes": [_process(one, now.time_unix_ns) for one in alive[:_PROCESSES_SHOWN]],
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


def _operator(row: Row) -> dict[str, Any]:
    return {
        "operator": row.key.op,
        "framework": row.key.framework,
        "calls_per_s": row.calls_per_s,
        "total_share": row.total_share,
        "self_share": _known(row.self_share),
        "p50_s": _known(row.p50_s),
        "p95_s": _known(row.p95_s),
        "p99_s": _known(row.p99_s),
    }


def _process(process: Process, now_unix_ns: int) -> dict[str, Any]:
    return {
        "pid": process.pid,
        "user": python_processes.user_name(process.uid),
        "program": process.program,
        "service": process.service,
        "since_unix_s": process.created_unix_ns / 1e9,
        "sampling": sampling((process,)),
        "samples": process.health.samples,
        "dropped": process.health.dropped,
        "overhead": _known(overhead((process,), now_unix_ns)),
        "bridges": [
            name if outcome == "attached" else f"{name} not: {outcome}"
            for name, outcome in sorted(process.bridges.items())
        ],
    }


def _known(value: float | None) -> float | None:
    """JSON has no NaN."""
    return None if value is None or not math.isfinite(value) else value
