"""The current numbers for the agent's page at `/`: a small JSON object, computed on request.

Rates cover the last ten seconds with requests, since shorter periods contain few windows; requests
in quick succession get the same answer. Without requests, nothing is kept or computed here:
history.py has the time before the page was opened. page/ has the page.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opscope.host.pid_namespaces import Pids
from opscope.host.snapshot import Process, Snapshot
from opscope.processes import python_processes
from opscope.processes.inventory import Unobserved
from opscope.reports import certainty
from opscope.reports.breakdown import breakdown
from opscope.reports.view import Base, Row, View, by_operator, sampling, view
from opscope.segments import layout
from opscope.server.history import History, Sample, threads
from opscope.server.http_server import Answer, Route

CONTENT_TYPES = {
    "page.html": "text/html; charset=utf-8",
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "charts.js": "text/javascript; charset=utf-8",
    "operators.js": "text/javascript; charset=utf-8",
    "trace.js": "text/javascript; charset=utf-8",
    "callers.js": "text/javascript; charset=utf-8",
}
_OPERATORS_SHOWN = 50
_PARTS_SHOWN = 20
_PROCESSES_SHOWN = 200
_FRESH_S = 1.0
"""Seconds for which an answer is reused."""
_SPAN_S = 10.0
_STALE_S = 30.0
"""Seconds after which an earlier sample is too old for current rates."""


@cache
def file(name: str) -> bytes:
    """One of CONTENT_TYPES."""
    return resources.files("opscope.server").joinpath("page", name).read_bytes()


def routes(
    latest: Callable[[], Snapshot],
    others: Callable[[Sequence[Process]], Sequence[Unobserved]],
    *,
    can_trace: bool = False,
    history: History | None = None,
) -> dict[str, Route]:
    """The page and its numbers, for Server; arguments as for Live."""
    live, past = Live(latest, others, can_trace=can_trace), history or History()
    return {
        "/": _page("page.html"),
        **{f"/{name}": _page(name) for name in CONTENT_TYPES if name != "page.html"},
        "/api/live": lambda _: Answer(live.answer(), "application/json"),
        "/api/history": lambda _: past.answer(),
    }


def _page(name: str) -> Route:
    return lambda _: Answer(file(name), CONTENT_TYPES[name])


class Live:
    """Computes the answers for all clients. Thread-safe.

    `latest`: makes a snapshot. `others`: finds the unobserved processes, given the observed ones.
    """

    def __init__(
        self,
        latest: Callable[[], Snapshot],
        others: Callable[[Sequence[Process]], Sequence[Unobserved]],
        clock: Callable[[], float] = time.monotonic,
        *,
        can_trace: bool = False,
    ) -> None:
        """`can_trace`: whether the server has page_trace.py's action."""
        self._can_trace = can_trace
        self._latest = latest
        self._others = others
        self._clock = clock
        self._lock = threading.Lock()
        self._samples: deque[tuple[float, Sample]] = deque()
        """The earlier samples, with their times."""
        self._answer = b""

    def answer(self) -> bytes:
        """JSON, as page/page.js reads it."""
        with self._lock:
            time_s = self._clock()
            if self._samples and time_s - self._samples[-1][0] < _FRESH_S:
                return self._answer
            if self._samples and time_s - self._samples[-1][0] > _STALE_S:
                self._samples.clear()
            while len(self._samples) > 1 and time_s - self._samples[1][0] >= _SPAN_S:
                self._samples.popleft()
            now = Sample.of(self._latest())
            if self._samples and now.retired != self._samples[-1][1].retired:
                # Retired series have moved: rates begin with this sample.
                self._samples.clear()
                self._samples.append((self._clock(), now))
                return self._answer
            before = self._samples[0][1] if self._samples else None
            alive = [one for one in now.operators.processes if one.is_alive]
            answer = _answer(now, before, alive, self._others(alive))
            answer["can_trace"] = self._can_trace
            self._samples.append((self._clock(), now))
            self._answer = json.dumps(answer, allow_nan=False).encode()
            return self._answer


def _answer(
    sample: Sample,
    earlier: Sample | None,
    alive: Sequence[Process],
    others: Sequence[Unobserved],
) -> dict[str, Any]:
    now, pids = sample.operators, Pids()
    services = sample.parts.since(earlier.parts) if earlier else sample.parts
    before = earlier.operators if earlier else None
    shown = view(now, before, by_operator, services=services)
    ran = now.since(before) if before else now
    octaves = ran.buckets.sum(axis=2) / layout.WEIGHT_ONE
    rows = {key: octaves[number] for number, key in enumerate(now.keys)}
    parts = _parts(sample, earlier)
    budgets = [one.overhead_budget for one in alive if one.overhead_budget]
    is_busy_known = shown.seconds > 0 and shown.base_is_self
    return {
        "host": socket.gethostname(),
        "about": _about(shown),
        "unsure_above": certainty.UNSURE_ABOVE,
        "seconds": None if shown.is_since_start else shown.seconds,
        "by": breakdown(sample.kinds, earlier.kinds, shown.seconds) if earlier else None,
        "samples": shown.samples,
        "unseen_calls": shown.unseen.calls,
        "unseen_time_share": shown.unseen.time_share,
        "unmet_cpu_s": shown.unmet,
        "cpu_s": shown.cpu_s,
        "busy": shown.base_s / shown.seconds if is_busy_known else None,
        "dropped": now.health.dropped,
        "calls_per_s": sum(row.calls_per_s for row in shown.rows),
        "recent_overhead": max((one.recent_overhead for one in alive), default=None),
        "overhead_budget": min(budgets, default=None),
        "first_octave": now.first_octave - layout.SECOND_LOG2,
        "operators": [
            _operator(row, rows[row.key], shown.self_base_s, shown.seconds)
            | {"parts": parts.get(row.key.op, [])[:_PARTS_SHOWN]}
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


def _parts(sample: Sample, earlier: Sample | None) -> dict[str, list[dict[str, Any]]]:
    """By operator, what each service and phase had of it: the most calls first."""
    before = earlier.parts if earlier else None
    shown = view(sample.parts, before, lambda key: key, "calls")
    base_s = shown.self_base_s if earlier else None
    found: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in shown.rows:
        made = {"service": row.key.service, "phase": row.key.phase, "calls_per_s": row.calls_per_s}
        found[row.key.op].append(made | {"threads": threads(row, base_s, shown.seconds)})
    return found


def _about(shown: View) -> str:
    span = "since the start" if shown.is_since_start else f"in the last {shown.seconds:.1f} s"
    base = "shares are of the time spent in operators, over all threads"
    if shown.base_is_least:
        base = f"{base}: {shown.base_s:.1f} s or more"
    if shown.base_of is Base.RUNNING:
        base = (
            f"shares are of the {shown.base_s:.1f} s in which threads ran or waited for a "
            "processor, because some self times are unknown"
        )
    if shown.base_of is Base.TOTAL:
        base = "shares are of the sum of all total times, because some self times are unknown"
    used = "" if shown.cpu_s is None else f"; CPU time: {shown.cpu_s:.1f} s"
    more = len(shown.rows) - _OPERATORS_SHOWN
    left_out = f"; {more} more operators ran" if more > 0 else ""
    is_unsure = any(row.is_unsure for row in shown.rows[:_OPERATORS_SHOWN])
    legend = f"; {certainty.in_words()}" if is_unsure else ""
    missing = (
        shown.unseen.in_words(lambda calls: f"{calls:.0f}"),
        certainty.unmet_in_words(shown.unmet),
    )
    return "; ".join([span, f"{base}{used}{left_out}{legend}", *filter(None, missing)])


def _operator(
    row: Row, octaves: NDArray[np.float64], base_s: float | None, seconds: float
) -> dict[str, Any]:
    """`octaves`: calls by duration, from 2^first_octave s on."""
    return {
        **row.facts(),
        "threads": threads(row, base_s, seconds),
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
        "recent_overhead": process.recent_overhead,
        "bridges": [
            name if outcome == "attached" else f"{name} not: {outcome}"
            for name, outcome in sorted(process.bridges.items())
        ],
    }
