"""Break time down by framework, phase and service, for the agent's page. Pure functions.

Times are self times, so that they add up, per second of wall time: 1 is one thread that is busy all
the time.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opscope.host.snapshot import SeriesKey, Snapshot
from opscope.reports.view import is_self_known, known_self_s

_SHOWN = 7
_OF: dict[str, Callable[[SeriesKey], str]] = {
    "framework": lambda key: key.framework,
    "phase": lambda key: key.phase,
    "service": lambda key: key.service,
}


def by_kind(snapshot: Snapshot) -> Snapshot:
    """The snapshot without durations, with one row for each service, framework and phase."""
    none = np.zeros((len(snapshot.keys), 0, 8), np.uint64)
    return replace(snapshot, buckets=none).grouped(
        lambda key: SeriesKey(key.service, f"{key.framework}::", key.phase, ())
    )


def breakdown(now: Snapshot, before: Snapshot, seconds: float) -> dict[str, Any]:
    """For each kind, the groups with the most time, the others merged; increase since `before`.

    Each group is (name, threads or None if times are unknown, calls per second, standard error of
    the threads).
    """
    ran = now.since(before)
    is_known = is_self_known(ran)
    return {
        kind: _groups(ran, name_of, _variances(ran, kind), seconds, is_known) if seconds > 0 else []
        for kind, name_of in _OF.items()
    }


def _variances(ran: Snapshot, kind: str) -> dict[str, float]:
    """Variance of each group's self time, in seconds squared. One window samples all operators of a
    phase, so their errors correlate and their variances do not add up; those of processes do."""
    found: dict[str, float] = defaultdict(float)
    if kind == "framework":
        for key, one in zip(ran.keys, np.nan_to_num(ran.self_variance).tolist(), strict=True):
            found[key.framework] += one
    for (service, phase), one in ran.phase_variances.items():
        found[phase if kind == "phase" else service] += one.self_s2
    return found


def _groups(
    ran: Snapshot,
    name_of: Callable[[SeriesKey], str],
    variances: dict[str, float],
    seconds: float,
    is_known: bool,
) -> list[tuple[str, float | None, float, float | None]]:
    sums: dict[str, NDArray[np.float64]] = {}
    for key, row in zip(ran.keys, np.stack([known_self_s(ran), ran.calls], axis=1), strict=True):
        if row[1] > 0:
            name = name_of(key)
            sums[name] = sums[name] + row if name in sums else row
    first = 0 if is_known else 1
    ranked = sorted(sums.items(), key=lambda one: (-one[1][first], one[0]))
    shown = [(name, row, variances.get(name, 0.0)) for name, row in ranked[:_SHOWN]]
    if len(ranked) > _SHOWN:
        rest = ranked[_SHOWN:]
        whole = np.sum([row for _, row in rest], axis=0)
        shown.append(
            (f"{len(rest)} more", whole, sum(variances.get(name, 0.0) for name, _ in rest))
        )
    return [
        (
            name,
            float(row[0]) / seconds if is_known else None,
            float(row[1]) / seconds,
            math.sqrt(variance) / seconds if is_known else None,
        )
        for name, row, variance in shown
    ]
