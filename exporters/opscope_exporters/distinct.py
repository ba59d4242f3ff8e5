"""Merge series whose labels become equal in Prometheus: `a.b` and `a_b` have the same name there.

Such series are added up, so that no page contains a series twice; the sum has the first one's key
and the earliest start. OTLP keeps them apart, since OpenTelemetry allows both names.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from opscope.host.snapshot import Exemplar, SeriesKey, Snapshot
from opscope_exporters.samples import labels_of


class Distinct:
    """Thread-safe: its state is replaced as a whole."""

    def __init__(self) -> None:
        self._kept: tuple[tuple[SeriesKey, ...], NDArray[np.intp] | None] = ((), None)
        """Series, and for each the row of its merged series; None: no two are equal."""

    def of(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot itself if no two of its series are equal in Prometheus."""
        keys, rows = self._kept
        if keys != snapshot.keys:
            rows = _rows(snapshot.keys)
            self._kept = snapshot.keys, rows
        return snapshot if rows is None else _added(snapshot, rows)


def _rows(keys: tuple[SeriesKey, ...]) -> NDArray[np.intp] | None:
    names = {name for key in keys for name, _ in key.labels}
    if all(name.isidentifier() and name.isascii() for name in names) and not any(
        name.startswith("label_") for name in names
    ):
        return None  # the usual case
    index: dict[object, int] = {}
    rows = [index.setdefault(frozenset(labels_of(key)), len(index)) for key in keys]
    return np.array(rows, np.intp) if len(index) < len(keys) else None


def _added(snapshot: Snapshot, rows: NDArray[np.intp]) -> Snapshot:
    count = int(rows.max()) + 1
    first = np.zeros(count, np.intp)
    first[rows[::-1]] = np.arange(len(rows))[::-1]
    counters = np.zeros((count, *snapshot.counters.shape[1:]), snapshot.counters.dtype)
    buckets = np.zeros((count, *snapshot.buckets.shape[1:]), snapshot.buckets.dtype)
    created = np.full(count, np.iinfo(np.int64).max)
    np.add.at(counters, rows, snapshot.counters)
    np.add.at(buckets, rows, snapshot.buckets)
    np.minimum.at(created, rows, snapshot.created_unix_ns)
    variances = snapshot.variances
    if len(variances):
        variances = np.zeros((count, variances.shape[1]))
        np.add.at(variances, rows, snapshot.variances)
    exemplars: dict[int, tuple[Exemplar, ...]] = {}
    for row, found in snapshot.exemplars.items():
        place = int(rows[row])
        exemplars[place] = (*exemplars.get(place, ()), *found)
    return replace(
        snapshot,
        keys=tuple(snapshot.keys[row] for row in first.tolist()),
        created_unix_ns=created,
        counters=counters,
        buckets=buckets,
        variances=variances,
        variance_parts=None,
        exemplars=exemplars,
    )
