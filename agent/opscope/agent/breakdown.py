"""Whose the time is, for the agent's page: by framework, phase and service. Pure.

Times are those within operators but not in operators that they call, so that they add up; per
second that passed, so that 1 is one thread that is busy all the time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opscope.agent.snapshot import SeriesKey, Snapshot

_SHOWN = 7
_OF: dict[str, Callable[[SeriesKey], str]] = {
    "framework": lambda key: key.framework,
    "phase": lambda key: key.phase,
    "service": lambda key: key.service,
}


def by_kind(snapshot: Snapshot) -> Snapshot:
    """The same, without durations, with a row for each service, framework and phase: small."""
    none = np.zeros((len(snapshot.keys), 0, 8), np.uint64)
    return replace(snapshot, buckets=none).grouped(
        lambda key: SeriesKey(key.service, f"{key.framework}::", key.phase, ())
    )


def breakdown(now: Snapshot, before: Snapshot, seconds: float) -> dict[str, Any]:
    """Of each kind the groups with most time, the rest of them as one; what came after `before`.

    Each is (name, threads or None where times are not known, calls a second).
    """
    ran = now.since(before)
    is_known = not np.isnan(ran.self_s[ran.samples > 0]).any()
    return {
        kind: _groups(ran, name_of, seconds, is_known) if seconds > 0 else []
        for kind, name_of in _OF.items()
    }


def _groups(
    ran: Snapshot, name_of: Callable[[SeriesKey], str], seconds: float, is_known: bool
) -> list[tuple[str, float | None, float]]:
    sums: dict[str, NDArray[np.float64]] = {}
    for key, row in zip(ran.keys, np.stack([ran.self_s, ran.calls], axis=1), strict=True):
        if row[1] > 0:
            name = name_of(key)
            sums[name] = sums[name] + row if name in sums else row
    first = 0 if is_known else 1
    ranked = sorted(sums.items(), key=lambda one: (-one[1][first], one[0]))
    shown = ranked[:_SHOWN]
    if len(ranked) > _SHOWN:
        rest = ranked[_SHOWN:]
        shown.append((f"{len(rest)} more", np.sum([row for _, row in rest], axis=0)))
    return [
        (name, float(row[0]) / seconds if is_known else None, float(row[1]) / seconds)
        for name, row in shown
    ]
