"""Free the places of ended processes' series: retire them into a series `other` of their service.

A series may retire once no process counts under it, its last value was exported, and some time has
passed. Retirement happens when places run short, for many series at a time. The longest-ended
series go first; among several users, those of the user with the most series. So a late user gets a
fair share after series of the other users have ended. Series taken back from living processes
(take_back.py) retire as soon as they are exported.

The values of a retired series were already exported. If an existing series absorbed them, its
`increase()` over a service would count them twice. So a series made by retirement never changes.
Each retirement replaces it by a new series whose label `retired` has the time: it begins at its
final value, so no rate counts it, and in every snapshot the sum over the service stays the same. A
retired series that returns begins at 0, at the time its place was freed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timezone
from heapq import heapify, heappop, heapreplace

import numpy as np
from numpy.typing import NDArray

from opscope.host.series_table import SeriesTable, other_of
from opscope.host.snapshot import (
    OTHER,
    RETIRED,
    SELF_NS,
    SELF_UNKNOWN,
    TOTAL_NS,
    SeriesKey,
)
from opscope.host.state import State
from opscope.host.totals import Sums
from opscope.segments import bounds
from opscope.segments.layout import U64

IDLE_S = 120.0
"""Seconds since the last process of a series ended, before the series may retire."""

# One of so many places holds retired series of services; the longest-retired series share one.
_SERVICES_SHARE = 16
# Retire fewer series than this part of all places only if no place is free.
_BATCH_SHARE = 20


_PATIENCE_NS = 3600 * 10**9


def unexported(now_ns: int) -> int:
    """Default without exporters: everything older than an hour counts as exported."""
    return now_ns - _PATIENCE_NS


class Retirement:
    """Retires the series of one host."""

    def __init__(self, idle_s: float = IDLE_S) -> None:
        self._idle_ns = round(idle_s * 1e9)
        self._last_s = 0
        self.count = 0
        """Series retired so far."""

    def make_room(
        self,
        state: State,
        held: Iterable[NDArray[np.intp]],
        now_ns: int,
        exported_ns: int,
    ) -> list[int]:
        """Retires series of ended processes if places run short; returns the freed numbers.

        `held`: the numbers that processes still count under. `exported_ns`: the time of the latest
        snapshot that every exporter has exported.
        """
        table, now_s = state.tables.series, now_ns // 10**9
        # The label has whole seconds.
        if now_s <= self._last_s or not (table.is_short or table.leaving):
            return []
        unheld = np.ones(len(table.keys), bool)
        for series in held:
            unheld[series] = False
        ended = np.array(table.ended_unix_ns)
        chosen = [one for one in sorted(table.leaving) if unheld[one] and ended[one] <= exported_ns]
        if not chosen and table.is_short:
            latest = min(now_ns - self._idle_ns, exported_ns)
            chosen = _chosen(table, np.flatnonzero(unheld & (ended <= latest)))
            if len(chosen) < table.limit // _BATCH_SHARE and len(table) < table.limit:
                return []
        if not chosen:
            return []
        self._last_s = now_s
        self.count += len(chosen)
        state.tables.kept_back.forget(chosen)
        return _retire(state, chosen, now_ns)


def _chosen(table: SeriesTable, candidates: NDArray[np.intp]) -> list[int]:
    """Enough series to free half of the places, or all candidates: repeatedly the longest-ended
    series of the user who has the most then."""
    found = [
        number
        for number in candidates.tolist()
        if (key := table.keys[number]) is not None and not key.is_retired
    ]
    found.sort(key=table.ended_unix_ns.__getitem__, reverse=True)
    return _of_who_has_most(found, table, max(len(table) - table.limit // 2, 1))


def _of_who_has_most(found: list[int], table: SeriesTable, count: int) -> list[int]:
    """At most `count` of `found`; each user's are taken from the end."""
    of_user: dict[int, list[int]] = {}
    for number in found:
        of_user.setdefault(table.users[number], []).append(number)
    has = Counter(table.users[number] for number in table.rows.tolist())
    users = [(-has[user], user) for user in of_user]
    heapify(users)
    chosen: list[int] = []
    while users and len(chosen) < count:
        taken, user = users[0]
        chosen.append(of_user[user].pop())
        if of_user[user]:
            heapreplace(users, (taken + 1, user))
        else:
            heappop(users)
    return chosen


def retired(key: SeriesKey, now_ns: int) -> SeriesKey:
    """The key of the series that absorbs retired series of this one's service."""
    time = datetime.fromtimestamp(now_ns // 10**9, timezone.utc)
    return other_of(key)._replace(labels=((RETIRED, f"{time:%Y-%m-%dT%H:%M:%SZ}"),))


def _retire(state: State, chosen: list[int], now_ns: int) -> list[int]:
    table = state.tables.series
    state.dead = state.dead.plus((), len(table.keys))
    state.held.make_room(len(table.keys))
    earlier = {
        key.service: number
        for number, key in enumerate(table.keys)
        if key is not None and key.is_retired
    }
    by_service: dict[str, list[int]] = {}
    for number in chosen:
        by_service.setdefault(_key(table, number).service, []).append(number)
    gone: list[int] = []
    for service, numbers in by_service.items():
        if service in earlier:
            numbers.append(earlier[service])
        gone += _merge(state, numbers, retired(_key(table, numbers[0]), now_ns))
    gone += _share_one(state, now_ns)
    # A user that lacked room before the retirement may have room now.
    state.dead.folded_rows = 0
    table.earliest_unix_ns = max(table.earliest_unix_ns, now_ns)
    return gone


def _share_one(state: State, now_ns: int) -> list[int]:
    """If too many services have a retired series, merges the longest-retired ones."""
    table = state.tables.series
    found = [
        (key.labels[0][1], number)
        for number, key in enumerate(table.keys)
        if key is not None and key.is_retired and key.service != OTHER.service
    ]
    too_many = len(found) - max(table.limit // _SERVICES_SHARE, 1)
    if too_many <= 0:
        return []
    key = retired(OTHER, now_ns)
    numbers = [number for _, number in sorted(found)[:too_many]]
    numbers += [
        number
        for number, one in enumerate(table.keys)
        if one is not None and one.is_retired and one.service == OTHER.service
    ]
    return _merge(state, numbers, key)


def _key(table: SeriesTable, number: int) -> SeriesKey:
    key = table.keys[number]
    assert key is not None
    return key


def _merge(state: State, numbers: list[int], key: SeriesKey) -> list[int]:
    """Merges these series into one with this key; frees their numbers and reuses one."""
    table, dead = state.tables.series, state.dead
    held = state.held
    counters, times_ns = _sum(dead, held.times_ns, numbers)
    buckets = bounds.total(dead.buckets[numbers])
    variances = dead.variances[numbers].sum(axis=0)
    held_variances = np.maximum(dead.variances[numbers], held.variances[numbers]).sum(axis=0)
    created = min(table.created_unix_ns[number] for number in numbers)
    for number in numbers:
        table.remove(number)
    for array in (dead.counters, dead.buckets, dead.variances, held.times_ns, held.variances):
        array[numbers] = 0
    if counters.any():
        number = table.add(key, created)
        # The merged series began when the oldest of them did.
        table.created_unix_ns[number] = created
        dead.counters[number], dead.buckets[number] = counters, buckets
        dead.variances[number] = variances
        held.times_ns[number], held.variances[number] = times_ns, held_variances
    return numbers


def _sum(dead: Sums, held_ns: U64, numbers: list[int]) -> tuple[U64, U64]:
    """The sum of the counters, and what was exported of its self and total time."""
    counters = dead.counters[numbers]
    total = bounds.total(counters)
    known = counters[:, SELF_UNKNOWN] == 0
    times_ns = np.maximum(counters[:, [SELF_NS, TOTAL_NS]], held_ns[numbers])
    times_ns[~known, 0] = 0
    if (counters[known] > 0).any():
        # The rest of the self time was not exported, and is not exported now.
        total[SELF_NS] = bounds.total(counters[known, SELF_NS])
        total[SELF_UNKNOWN] = 0
    return total, bounds.total(times_ns)
