"""Sparse sums by series, in the host's units: the parts of a contribution that move between series.

take_back.py moves rows of live processes to other series. What a row has counted stays where it
was; the file's contribution has only what it counts from then on. Amounts are that difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from opscope.host.health import Health
from opscope.host.snapshot import COUNTER_COLUMNS, SELF_UNKNOWN, WEIGHT
from opscope.host.totals import Buckets, Contribution
from opscope.segments import bounds, layout, variance
from opscope.segments.layout import U64
from opscope.segments.variance import F64

_NO_SPAN = layout.OCTAVES, 0


@dataclass(frozen=True)
class Amounts:
    series: NDArray[np.intp]
    """(n,) ascending, each once."""
    counters: U64
    """(n, COUNTER_COLUMNS)."""
    variances: F64
    """(n, variance.COLUMNS)."""
    places: NDArray[np.intp]
    """(m,) series * OCTAVES + octave of each octave of buckets, ascending, each once."""
    weights: U64
    """(m, 8)."""

    @classmethod
    def none(cls) -> Amounts:
        return cls(
            np.zeros(0, np.intp),
            np.zeros((0, COUNTER_COLUMNS), np.uint64),
            np.zeros((0, variance.COLUMNS)),
            np.zeros(0, np.intp),
            np.zeros((0, layout.BUCKETS_PER_OCTAVE), np.uint64),
        )

    @classmethod
    def summed(
        cls,
        series: NDArray[np.intp],
        counters: U64,
        variances: F64,
        places: NDArray[np.intp],
        weights: U64,
    ) -> Amounts:
        """Of rows and octaves in any order, where each series may come repeatedly."""
        numbers, group = np.unique(series, return_inverse=True)
        octaves, octave_group = np.unique(places, return_inverse=True)
        return cls(
            numbers,
            bounds.sum_by(group, counters, len(numbers)),
            variance.sum_by(group, variances, len(numbers)),
            octaves,
            bounds.sum_by(octave_group, weights, len(octaves)),
        )

    @classmethod
    def of(cls, one: Contribution) -> Amounts:
        places = one.buckets.series.astype(np.intp) * layout.OCTAVES + one.buckets.octave
        weights = one.bucket_weights.astype(np.uint64) * np.uint64(one.bucket_unit)
        return cls.summed(one.series, one.counters, one.variances, places, weights)

    @property
    def nbytes(self) -> int:
        arrays = (self.series, self.counters, self.variances, self.places, self.weights)
        return sum(array.nbytes for array in arrays)

    def __len__(self) -> int:
        return len(self.series)

    def plus(self, other: Amounts) -> Amounts:
        return self.summed(
            np.concatenate((self.series, other.series)),
            np.concatenate((self.counters, other.counters)),
            np.concatenate((self.variances, other.variances)),
            np.concatenate((self.places, other.places)),
            np.concatenate((self.weights, other.weights)),
        )

    def part(self, numbers: NDArray[np.intp], invert: bool = False) -> Amounts:
        """Those of these series only; `invert`: those of all others."""
        rows = np.isin(self.series, numbers, invert=invert)
        octaves = np.isin(self.places // layout.OCTAVES, numbers, invert=invert)
        return Amounts(
            self.series[rows],
            self.counters[rows],
            self.variances[rows],
            self.places[octaves],
            self.weights[octaves],
        )

    def moved(self, to: Mapping[int, int]) -> Amounts:
        """The same under other numbers: `to` has all of these series."""
        new = np.array([to[number] for number in self.series.tolist()], np.intp)
        number, octave = np.divmod(self.places, layout.OCTAVES)
        places = new[np.searchsorted(self.series, number)] * layout.OCTAVES + octave
        return self.summed(new, self.counters, self.variances, places, self.weights)

    def contribution(self) -> Contribution:
        """These alone, to be added to sums."""
        number, octave = np.divmod(self.places, layout.OCTAVES)
        most = max(int(self.counters.max(initial=0)), int(self.weights.max(initial=0)))
        return Contribution(
            series=self.series,
            counters=self.counters,
            variances=self.variances,
            owed=np.zeros((len(self.series), variance.COLUMNS)),
            phase_variances={},
            buckets=_buckets(number.astype(np.int32), octave.astype(np.uint8)),
            bucket_weights=self.weights,
            bucket_unit=1,
            most=most,
            health=Health(),
            usage=(),
            attach_results=(),
            measured=Counter(),
            folded_rows=0,
        )

    def taken_from(self, whole: Contribution) -> Contribution:
        """The contribution without these amounts; an estimate that has fallen counts as 0."""
        if not len(self):
            return whole
        counters, variances = whole.counters.copy(), whole.variances.copy()
        here, there = _common(whole.series, self.series)
        counters[here] -= np.minimum(counters[here], self.counters[there])
        # Whether self time is unknown is a property of the calls that count from now on.
        unknown = np.minimum(whole.counters[here, SELF_UNKNOWN], counters[here, WEIGHT])
        counters[here, SELF_UNKNOWN] = unknown
        variances[here] = np.maximum(variances[here] - self.variances[there], 0.0)
        weights = whole.bucket_weights.astype(np.uint64) * np.uint64(whole.bucket_unit)
        places = whole.buckets.series.astype(np.intp) * layout.OCTAVES + whole.buckets.octave
        here, there = _common(places, self.places)
        weights[here] -= np.minimum(weights[here], self.weights[there])
        return replace(
            whole, counters=counters, variances=variances, bucket_weights=weights, bucket_unit=1
        )


def without(whole: Contribution, numbers: NDArray[np.intp]) -> Contribution:
    """The contribution to all series but these."""
    rows = np.isin(whole.series, numbers, invert=True)
    octaves = np.isin(whole.buckets.series, numbers, invert=True)
    return replace(
        whole,
        series=whole.series[rows],
        counters=whole.counters[rows],
        variances=whole.variances[rows],
        owed=whole.owed[rows],
        buckets=_buckets(whole.buckets.series[octaves], whole.buckets.octave[octaves]),
        bucket_weights=whole.bucket_weights[octaves],
    )


def _buckets(series: NDArray[np.int32], octave: NDArray[np.uint8]) -> Buckets:
    span = int(octave.min(initial=_NO_SPAN[0])), int(octave.max(initial=0)) + 1
    return Buckets(series, octave, None, span if len(octave) else _NO_SPAN)


def _common(
    some: NDArray[np.intp], ascending: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The indexes of the numbers in both: in `some`, and in `ascending`."""
    if not len(ascending):
        return np.zeros(0, np.intp), np.zeros(0, np.intp)
    at = np.minimum(np.searchsorted(ascending, some), len(ascending) - 1)
    here = np.flatnonzero(ascending[at] == some)
    return here, at[here]
