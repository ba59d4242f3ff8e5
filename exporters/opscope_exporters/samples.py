"""What a snapshot has for each metric of the table, as Prometheus's formats want it.

Labels with names that Prometheus takes, and classic histograms, whose bounds are powers of two:
sums of the recorder's finer buckets, so no approximation. Not here: how any of it is written down
(text_page.py, protobuf_page.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from opscope.agent import layout
from opscope.agent.snapshot import SeriesKey, Snapshot
from opscope.metrics import SERIES_LABELS, Kind, Metric

Labels = tuple[tuple[str, str], ...]
T = TypeVar("T")

# Bounds reach from 2^-22 s (0.24 us) to 2^4 s; the operators worth seeing last between these.
_LOWEST, _HIGHEST = -22, 4
_RESERVED = {*SERIES_LABELS, "le", "job", "instance"}


def labels_of(key: SeriesKey) -> Labels:
    """Names and values of a series' labels."""
    labels = dict(zip(SERIES_LABELS, (key.service, key.op, key.phase, key.framework), strict=True))
    if key.process is not None:
        labels["pid"] = str(key.process)
    for name, value in key.labels:
        name = label_name(name)
        # As OpenTelemetry has it where two names become one.
        labels[name] = f"{labels[name]};{value}" if name in labels else value
    return tuple(labels.items())


def label_name(name: str) -> str:
    """A name that Prometheus takes, and that is not one of ours."""
    name = re.sub(r"[^a-zA-Z0-9_]", "_", name)
    is_free = name and name not in _RESERVED and not name[0].isdigit() and name[:2] != "__"
    return name if is_free else f"label_{name}"


def sample_name(metric: Metric) -> str:
    return metric.prometheus_name + ("_total" if metric.kind is Kind.COUNTER else "")


def of_series(metric: Metric, snapshot: Snapshot) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The rows that have a value, and the values."""
    values: NDArray[np.float64] = attrgetter(metric.source)(snapshot).astype(np.float64)
    rows = np.flatnonzero(~np.isnan(values))
    return rows, values[rows]


def of_host(metric: Metric, snapshot: Snapshot) -> list[tuple[Labels, float]]:
    """The values that are of no series, each with its labels, in the order of these."""
    values = attrgetter(metric.source)(snapshot)
    by_labels: Mapping[tuple[str, ...], float] = values if metric.labels else {(): values}
    return [
        (tuple(zip(metric.labels, key, strict=True)), float(value))
        for key, value in sorted(by_labels.items())
    ]


class ClassicBuckets:
    """Classic buckets, `octaves` octaves wide."""

    def __init__(self, octaves: int) -> None:
        self._exponents = np.arange(_HIGHEST, _LOWEST - 1, -octaves)[::-1]
        self.bounds: list[float] = (2.0**self._exponents).tolist()
        """In seconds, without the last one, which is infinite."""

    def upto(self, snapshot: Snapshot) -> NDArray[np.float64]:
        """(n, bounds + 1) ranges no longer than each bound, and at last all of them."""
        octaves = snapshot.buckets.shape[1]
        upto = np.zeros((len(snapshot.keys), octaves + 1), np.uint64)
        np.cumsum(snapshot.buckets.sum(axis=2), axis=1, out=upto[:, 1:])
        # Column c has the octaves that end at 2^(first_octave - 40 + c) s or before.
        columns = self._exponents + layout.SECOND_LOG2 - snapshot.first_octave
        return upto[:, [*np.clip(columns, 0, octaves), octaves]] / layout.WEIGHT_ONE


class PerSeries(Generic[T]):
    """Something made of each series' key once and kept: a host's series only ever grow in number.

    For several threads, as what is kept is replaced whole.
    """

    def __init__(self, make: Callable[[SeriesKey, int], T]) -> None:
        """`make` gets the key, and when the series began."""
        self._make = make
        self._kept: tuple[tuple[SeriesKey, ...], tuple[int, ...], list[T]] = ((), (), [])

    def of(self, snapshot: Snapshot) -> Sequence[T]:
        keys, created = snapshot.keys, tuple(snapshot.created_unix_ns.tolist())
        known, begun, made = self._kept
        if (keys, created) == (known, begun):
            return made
        n = len(known)
        if keys[:n] != known or created[:n] != begun:
            n = 0
        made = made[:n] + [self._make(*one) for one in zip(keys[n:], created[n:], strict=True)]
        self._kept = keys, created, made
        return made
