"""What segments add to the host's series, and the sums of it.

A contribution is one segment's share, in the host's units and series. It is replaced whole whenever
its segment is read again, so nothing is counted twice; once its process is dead it is folded into
the sums of the dead and forgotten. Everything that is summed is an integer: sums are exact and do
not depend on the order, so that no exported counter ever steps back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from opscope.agent import layout
from opscope.agent.layout import U64
from opscope.agent.measures import MeasureKey
from opscope.agent.segment import COLUMNS, Rows
from opscope.agent.snapshot import COUNTER_COLUMNS, Health

_SAMPLES, _WEIGHT, _WHOLE, _TOTAL, _SELF, _ERRORS, _BYTES = range(len(COLUMNS))

# The buckets of an octave as one thing, which is gathered and put back in a third of the time.
_OCTAVE = np.dtype((np.void, 8 * layout.BUCKETS_PER_OCTAVE))


class Buckets(NamedTuple):
    series: NDArray[np.int32]
    """(m,) the host's series of each octave of buckets; no series and octave twice."""
    octave: NDArray[np.uint8]
    """(m,) which octave."""
    group: NDArray[np.intp] | None
    """For each octave of a segment's its place here; None: the same place."""
    span: tuple[int, int]
    """The first octave, and the one after the last."""


@dataclass
class Contribution:
    series: NDArray[np.intp]
    """(n,) the host's series that it adds to, each once."""
    counters: U64
    """(n, COUNTER_COLUMNS)."""
    buckets: Buckets
    bucket_weights: U64 | NDArray[np.uint32]
    """(m, 8), in units of `bucket_unit` weights: whole calls, in half the memory, if they are."""
    bucket_unit: int
    health: Health
    usage: tuple[tuple[str, str], ...]
    attach_results: tuple[tuple[str, str], ...]
    measured: Counter[MeasureKey]
    """What the process counts itself."""
    folded_rows: int

    @property
    def nbytes(self) -> int:
        """Memory that this takes, about."""
        arrays = (self.series, self.counters, self.buckets.series, self.buckets.octave)
        return sum(array.nbytes for array in arrays) + self.bucket_weights.nbytes


@dataclass
class Sums:
    """Contributions added up."""

    counters: U64
    """(n, COUNTER_COLUMNS)."""
    buckets: U64
    """(n, octaves, 8): only the octaves in use, as most are not."""
    first_octave: int
    health: Health
    usage: Counter[tuple[str, str]]
    attach_results: Counter[tuple[str, str]]
    measured: Counter[MeasureKey]
    folded_rows: int

    @classmethod
    def none(cls) -> Sums:
        return cls(
            np.zeros((0, COUNTER_COLUMNS), np.uint64),
            np.zeros((0, 0, layout.BUCKETS_PER_OCTAVE), np.uint64),
            0,
            Health(),
            Counter(),
            Counter(),
            Counter(),
            0,
        )

    def plus(self, contributions: Sequence[Contribution], series_count: int) -> Sums:
        """New sums over `series_count` series, of these and the contributions."""
        counters = np.zeros((series_count, COUNTER_COLUMNS), np.uint64)
        counters[: len(self.counters)] = self.counters
        buckets, first_octave = self._room_for(contributions, series_count)
        sums = Sums(
            counters,
            buckets,
            first_octave,
            self.health,
            self.usage.copy(),
            self.attach_results.copy(),
            self.measured.copy(),
            self.folded_rows,
        )
        for one in contributions:
            sums._add(one)
        return sums

    def _room_for(
        self, contributions: Sequence[Contribution], series_count: int
    ) -> tuple[U64, int]:
        spans = [one.buckets.span for one in contributions if len(one.buckets.octave)]
        lows, highs = [low for low, _ in spans], [high for _, high in spans]
        if self.buckets.shape[1]:
            lows.append(self.first_octave)
            highs.append(self.first_octave + self.buckets.shape[1])
        low, high = min(lows, default=0), max(highs, default=0)
        out = np.zeros((series_count, high - low, layout.BUCKETS_PER_OCTAVE), np.uint64)
        start = self.first_octave - low
        out[: len(self.buckets), start : start + self.buckets.shape[1]] = self.buckets
        return out, low

    def _add(self, one: Contribution) -> None:
        self.counters[one.series] += one.counters
        octave = one.buckets.octave - np.uint8(self.first_octave)
        place = one.buckets.series.astype(np.intp) * self.buckets.shape[1] + octave
        octaves = self.buckets.reshape(-1).view(_OCTAVE)
        sums = octaves[place].view(np.uint64).reshape(one.bucket_weights.shape)
        sums += one.bucket_weights * np.uint64(one.bucket_unit)
        octaves[place] = sums.reshape(-1).view(_OCTAVE)
        self.health = self.health.plus(one.health)
        self.usage.update(one.usage)
        self.attach_results.update(one.attach_results)
        self.measured.update(one.measured)
        self.folded_rows += one.folded_rows


class Places:
    """Which of the host's series each row of a segment adds to."""

    def __init__(self, keys: U64, series: NDArray[np.intp], other: int | None) -> None:
        self.keys = keys
        """(n,) of each row, as in segment.Rows."""
        self.rows = series
        """(n,) the series of each row."""
        self.series = series
        """(m,) those that there are, each once."""
        self.group: NDArray[np.intp] | None = None
        """(n,) for each row its place in `series`; None: the same place."""
        self.folded_rows = int(np.count_nonzero(series == other)) if other is not None else 0
        unique, group = np.unique(series, return_inverse=True)
        if len(unique) < len(series):
            self.series, self.group = unique, group
        self._buckets: tuple[NDArray[np.int32], Buckets] | None = None

    def buckets(self, of_rows: NDArray[np.int32]) -> Buckets:
        """Where the octaves of these rows' buckets (segment.Rows.buckets) add to."""
        if self._buckets is None or self._buckets[0] is not of_rows:
            self._buckets = of_rows, self._buckets_of(of_rows)
        return self._buckets[1]

    def _buckets_of(self, of_rows: NDArray[np.int32]) -> Buckets:
        row, octave = of_rows // layout.OCTAVES, of_rows % layout.OCTAVES
        group = None
        if self.group is not None:
            place, group = np.unique(self.group[row] * layout.OCTAVES + octave, return_inverse=True)
            row, octave = place // layout.OCTAVES, place % layout.OCTAVES
        return Buckets(
            self.series[row].astype(np.int32),
            octave.astype(np.uint8),
            group,
            (int(octave.min(initial=layout.OCTAVES)), int(octave.max(initial=-1)) + 1),
        )


def contribution(
    rows: Rows,
    ticks_per_second: int,
    places: Places,
    health: Health,
    usage: tuple[tuple[str, str], ...],
    attach_results: tuple[tuple[str, str], ...],
    measured: Counter[MeasureKey],
) -> Contribution:
    """What a segment with these rows adds."""
    counters = _counters(rows, ticks_per_second)
    if places.group is not None:
        counters = _sum_by(places.group, counters, len(places.series))
    buckets, weights = places.buckets(rows.buckets), rows.bucket_weights
    if buckets.group is not None:
        weights = _sum_by(buckets.group, weights, len(buckets.series))
    compact, unit = _compact(weights)
    return Contribution(
        series=places.series,
        counters=counters,
        buckets=buckets,
        bucket_weights=compact,
        bucket_unit=unit,
        health=health,
        usage=usage,
        attach_results=attach_results,
        measured=measured,
        folded_rows=places.folded_rows,
    )


def _sum_by(group: NDArray[np.intp], values: U64, count: int) -> U64:
    summed = np.zeros((count, values.shape[1]), np.uint64)
    np.add.at(summed, group, values)
    return summed


def _compact(weights: U64) -> tuple[U64 | NDArray[np.uint32], int]:
    bits = int(np.bitwise_or.reduce(weights, axis=None))
    if bits % layout.WEIGHT_ONE or bits // layout.WEIGHT_ONE > np.iinfo(np.uint32).max:
        return weights, 1
    return (weights // np.uint64(layout.WEIGHT_ONE)).astype(np.uint32), layout.WEIGHT_ONE


def _counters(rows: Rows, ticks_per_second: int) -> U64:
    """(n, COUNTER_COLUMNS) of the rows' values, in the order of snapshot's columns."""
    values = rows.values
    weight, whole, total = values[:, _WEIGHT], values[:, _WHOLE], values[:, _TOTAL]
    total_ns = _ns(total, ticks_per_second)
    # Self time is known for a part of the time; the rest is taken to have the same share of it. Not
    # by the number of ranges: those that outlast a window are long, and none of theirs is known.
    share = np.divide(total, whole, out=np.zeros(len(total)), where=whole > 0)
    self_ns = _ns(values[:, _SELF] * share, ticks_per_second)
    return np.stack(
        [
            values[:, _SAMPLES],
            weight,
            total_ns,
            np.minimum(self_ns, total_ns),
            np.where((whole > 0) | (total == 0), np.uint64(0), weight),
            values[:, _ERRORS],
            values[:, _BYTES],
        ],
        axis=1,
    )


def _ns(ticks: NDArray[np.float64] | U64, ticks_per_second: int) -> U64:
    scaled: U64 = np.rint(ticks * (1e9 / ticks_per_second)).astype(np.uint64)
    return scaled
