"""Export only the operators of each service with the most time; sum the others up as `other`.

The choice changes with the programs, but no counter decreases: the increase between two snapshots
is added to the operator's current series. So an operator that is chosen later starts a counter at
zero, with a new start time, and its earlier counts stay in `other`. When an operator is no longer
chosen, its series ends, and further counts go to `other`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np

from opscope.host.snapshot import (
    COUNTER_COLUMNS,
    SELF_NS,
    SELF_UNKNOWN,
    TOTAL_NS,
    SeriesKey,
    Snapshot,
)
from opscope.segments import bounds
from opscope.segments.layout import BUCKETS_PER_OCTAVE, OTHER_OP, U64

_HALF_LIFE_S = 600.0
"""Half-life of an operator's time, in seconds."""
_CLEARLY = 1.5
"""An operator replaces a chosen one if it takes this many times as much time."""


class TopOperators:
    """The `limit` operators of each service with the most self time (total time if unknown).

    `from_now`: do not count the first snapshot's values, since an earlier agent may have exported
    them under other series. Snapshots must come in the order they were made.
    """

    def __init__(self, limit: int, *, from_now: bool = False) -> None:
        self._limit = limit
        self._from_now = from_now
        self._last: Snapshot | None = None
        self._scores: dict[tuple[str, str], float] = {}
        """Recent time by service and operator."""
        self._chosen: dict[str, set[str]] = {}
        self._sums: set[SeriesKey] = set()
        """Every series that others were ever merged into; entries stay."""
        self._exported: Snapshot | None = None

    def apply(self, snapshot: Snapshot) -> tuple[Snapshot, int]:
        """The snapshot with these series, and the number of its own series merged into `other`."""
        growth = self._growth(snapshot)
        is_first = self._last is None
        self._score(snapshot, snapshot.counters if is_first else growth.counters)
        self._choose()
        keys = [self._exported_as(key) for key in snapshot.keys]
        summed = [one for one, key in zip(keys, snapshot.keys, strict=True) if one != key]
        self._sums.update(summed)
        self._last = snapshot
        self._exported = _added(self._exported, self._sums, growth, keys)
        return self._exported, len(summed)

    def _growth(self, snapshot: Snapshot) -> Snapshot:
        """For each row, the increase since the last snapshot; its start is that snapshot's time."""
        last, since_ns = self._last, snapshot.created_unix_ns.copy()
        if last is None:
            if not self._from_now:
                return snapshot
            last = snapshot
        rows = {key: row for row, key in enumerate(last.keys)}
        pairs = [
            (row, rows[key])
            for row, key in enumerate(snapshot.keys)
            if key in rows and last.created_unix_ns[rows[key]] == since_ns[row]
        ]
        now, then = np.array(pairs, np.intp).reshape(-1, 2).T
        counted, held = np.zeros_like(snapshot.counters), np.zeros_like(snapshot.buckets)
        off = np.zeros_like(snapshot.variances)
        counted[now] = last.counters[then]
        held[now] = last.buckets_within(snapshot.first_octave, snapshot.buckets.shape[1])[then]
        off[now] = last.variances[then]
        since_ns[now] = last.time_unix_ns
        return replace(
            snapshot,
            counters=snapshot.counters - np.minimum(snapshot.counters, counted),
            buckets=snapshot.buckets - np.minimum(snapshot.buckets, held),
            variances=np.maximum(snapshot.variances - off, 0),
            variance_parts=None,
            created_unix_ns=since_ns,
        )

    def _score(self, snapshot: Snapshot, growth: U64) -> None:
        passed_ns = snapshot.time_unix_ns - self._last.time_unix_ns if self._last else 0
        kept = 0.5 ** (max(passed_ns, 0) / 1e9 / _HALF_LIFE_S)
        is_known = growth[:, SELF_UNKNOWN] == 0
        times = np.where(is_known, growth[:, SELF_NS], growth[:, TOTAL_NS]).tolist()
        scores: dict[tuple[str, str], float] = {}
        for key, time_ns in zip(snapshot.keys, times, strict=True):
            if key.op != OTHER_OP:
                of_operator = key.service, key.op
                before = scores.get(of_operator, self._scores.get(of_operator, 0.0) * kept)
                scores[of_operator] = before + time_ns
        self._scores = scores

    def _choose(self) -> None:
        services: dict[str, dict[str, float]] = defaultdict(dict)
        for (service, op), score in self._scores.items():
            services[service][op] = score
        before = self._chosen
        self._chosen = {
            service: _chosen(scores, before.get(service, set()), self._limit)
            for service, scores in services.items()
        }

    def _exported_as(self, key: SeriesKey) -> SeriesKey:
        is_chosen = key.op in self._chosen.get(key.service, ())
        return key if is_chosen else key._replace(op=OTHER_OP)


def _chosen(scores: dict[str, float], before: set[str], limit: int) -> set[str]:
    """At most `limit` operators: the earlier ones, unless another one clearly exceeds them."""
    ranked = sorted(scores, key=lambda op: (-scores[op], op))
    kept = [op for op in ranked if op in before]
    others = [op for op in ranked if op not in before and scores[op] > 0]
    room = limit - len(kept)
    kept += others[:room]
    kept.sort(key=lambda op: scores[op])
    for place, op in enumerate(others[room:]):
        if place >= len(kept) or scores[op] <= _CLEARLY * scores[kept[place]]:
            break
        kept[place] = op
    return set(kept)


def _added(
    before: Snapshot | None, sums: set[SeriesKey], growth: Snapshot, keys: list[SeriesKey]
) -> Snapshot:
    """The sum of the values exported before and the increase, whose rows belong to the series in
    `keys`. Of the former, `sums` stay always, others only if they are among `keys`."""
    wanted = sums.union(keys)
    known = [(row, key) for row, key in enumerate(before.keys if before else ()) if key in wanted]
    index = {key: row for row, (_, key) in enumerate(known)}
    rows = np.array([index.setdefault(key, len(index)) for key in keys], np.intp)
    first, width = growth.first_octave, growth.buckets.shape[1]
    if before is not None and before.buckets.shape[1]:
        first = min(first, before.first_octave) if width else before.first_octave
        ends = before.first_octave + before.buckets.shape[1], growth.first_octave + width
        width = max(ends) - first
    counters = np.zeros((len(index), COUNTER_COLUMNS), np.uint64)
    buckets = np.zeros((len(index), width, BUCKETS_PER_OCTAVE), np.uint64)
    variances = np.zeros((len(index), growth.variances.shape[1]))
    created = np.full(len(index), np.iinfo(np.int64).max)
    if before is not None:
        old = np.array([row for row, _ in known], np.intp)
        counters[: len(old)] = before.counters[old]
        buckets[: len(old)] = before.buckets_within(first, width)[old]
        variances[: len(old)] = before.variances[old]
        created[: len(old)] = before.created_unix_ns[old]
    counters = bounds.added(counters, bounds.sum_by(rows, growth.counters, len(index)))
    more = bounds.sum_by(rows, growth.buckets_within(first, width), len(index))
    buckets = bounds.added(buckets, more)
    np.add.at(variances, rows, growth.variances)
    new = rows >= len(known)
    np.minimum.at(created, rows[new], growth.created_unix_ns[new])
    return replace(
        growth,
        keys=tuple(index),
        created_unix_ns=created,
        counters=counters,
        buckets=buckets,
        variances=variances,
        first_octave=first,
        exemplars={
            int(rows[row]): found
            for row, found in growth.exemplars.items()
            if growth.keys[row] == keys[row]
        },
    )
