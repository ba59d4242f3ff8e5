"""The contributions of segments to the host's series, and their sums.

A contribution is the share of one segment, in the host's units and series. Each read of the segment
replaces it, so nothing counts twice. After the process has ended, the contribution is added to the
sums of ended processes and dropped. All sums but variances are sums of integers: exact and
independent of the order, so no exported counter ever decreases. Variances span too wide a range for
integers; host.py keeps their exported values from decreasing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from opscope.host import processor_time
from opscope.host.health import Health
from opscope.host.process_metrics import MeasureKey
from opscope.host.processor_time import ProcessorTimes, with_unseen
from opscope.host.snapshot import (
    BYTES,
    COUNTER_COLUMNS,
    ERROR_WEIGHT,
    SAMPLES,
    SELF_NS,
    SELF_UNKNOWN,
    TOTAL_NS,
    WEIGHT,
)
from opscope.host.stretches import Rows as StretchRows
from opscope.host.stretches import Stretches
from opscope.segments import bounds, layout, variance
from opscope.segments.layout import U64
from opscope.segments.off_cpu import of_rows
from opscope.segments.segment import COLUMNS, Rows, Segment
from opscope.segments.self_time import PossibleTimes, wanted
from opscope.segments.variance import F64, Parts, PhaseVariances

_SAMPLES, _WEIGHT, _WHOLE, _TOTAL, _, _ERRORS, _BYTES = range(len(COLUMNS))
assert (_SAMPLES, _WEIGHT, _ERRORS, _BYTES) == (SAMPLES, WEIGHT, ERROR_WEIGHT, BYTES)
_UINT32_MAX = (1 << 32) - 1
_WEIGHT_LOG2 = np.uint64(layout.WEIGHT_ONE.bit_length() - 1)

# A row as one item, for scattering in a third of the time.
_COUNTERS = np.dtype((np.void, 8 * COUNTER_COLUMNS))
_OCTAVE = np.dtype((np.void, 8 * layout.BUCKETS_PER_OCTAVE))


class Buckets(NamedTuple):
    series: NDArray[np.int32]
    """(m,) the host's series of each octave of buckets; each pair of series and octave once."""
    octave: NDArray[np.uint8]
    """(m,) which octave."""
    group: NDArray[np.intp] | None
    """For each octave of a segment its index here; None: the same index."""
    span: tuple[int, int]
    """The first octave, and the one after the last."""


@dataclass
class Contribution:
    series: NDArray[np.intp]
    """(n,) the host's series that it adds to, each once."""
    counters: U64
    """(n, COUNTER_COLUMNS)."""
    variances: F64
    """(n, variance.COLUMNS)."""
    owed: F64
    """(n, variance.COLUMNS) the owed part of `variances`; may be read-only."""
    phase_variances: PhaseVariances
    buckets: Buckets
    bucket_weights: U64 | NDArray[np.uint32]
    """(m, 8), in units of `bucket_unit` weights: if all are whole calls, in half the memory."""
    bucket_unit: int
    most: int
    """Upper bound of all its counters and weights."""
    health: Health
    usage: tuple[tuple[str, str], ...]
    attach_results: tuple[tuple[str, str], ...]
    measured: Counter[MeasureKey]
    """Metrics that the process counts itself."""
    folded_rows: int

    @property
    def nbytes(self) -> int:
        """Approximate memory size, in bytes."""
        arrays = (
            self.series,
            self.counters,
            self.variances,
            self.owed,
            self.buckets.series,
            self.buckets.octave,
        )
        return sum(array.nbytes for array in arrays) + self.bucket_weights.nbytes


@dataclass
class Sums:
    """Contributions added up."""

    counters: U64
    """(n, COUNTER_COLUMNS)."""
    buckets: U64
    """(n, octaves, 8): only the octaves in use, which are few."""
    first_octave: int
    health: Health
    usage: Counter[tuple[str, str]]
    attach_results: Counter[tuple[str, str]]
    measured: Counter[MeasureKey]
    folded_rows: int
    variances: F64
    """(n, variance.COLUMNS)."""
    phase_variances: PhaseVariances
    variance_parts: Parts
    """(n, ...) of `variances`; what is owed, by the processes added last."""

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
            np.zeros((0, variance.COLUMNS)),
            {},
            Parts.without_owed(np.zeros((0, variance.COLUMNS))),
        )

    def plus(self, contributions: Sequence[Contribution], series_count: int) -> Sums:
        """New sums over `series_count` series: these, of processes that have ended, plus the
        contributions."""
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
            variance.rows_of(series_count, self.variances),
            variance.summed(
                (
                    variance.nothing_owed(self.phase_variances),
                    *(one.phase_variances for one in contributions),
                )
            ),
            Parts(*(np.zeros((series_count, variance.COLUMNS)) for _ in Parts._fields)),
        )
        # An upper bound of all sums; below the limit, none needs a check.
        most = int(max(self.counters.max(initial=0), self.buckets.max(initial=0)))
        for one in contributions:
            most += one.most
            sums._add(one, may_saturate=most > bounds.SUM_LIMIT)
        parts = sums.variance_parts
        np.subtract(sums.variances, parts.owed, out=parts.settled)
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

    def _add(self, one: Contribution, may_saturate: bool) -> None:
        add = bounds.added if may_saturate else np.add
        counters = add(self.counters.take(one.series, axis=0), one.counters)
        self.counters.reshape(-1).view(_COUNTERS)[one.series] = _items(counters, _COUNTERS)
        if one.variances.any():
            self.variances[one.series] += one.variances
            self.variance_parts.owed[one.series] += one.owed
        octave = one.buckets.octave - np.uint8(self.first_octave)
        place = one.buckets.series.astype(np.intp) * self.buckets.shape[1] + octave
        octaves = self.buckets.reshape(-1, layout.BUCKETS_PER_OCTAVE)
        weights = one.bucket_weights * np.uint64(one.bucket_unit)
        weights = add(octaves.take(place, axis=0), weights)
        octaves.reshape(-1).view(_OCTAVE)[place] = _items(weights, _OCTAVE)
        self.health = self.health.plus(one.health)
        self.usage.update(one.usage)
        self.attach_results.update(one.attach_results)
        bounds.count(self.measured, one.measured)
        self.folded_rows += one.folded_rows


def _items(rows: U64, kind: np.dtype[np.void]) -> NDArray[np.void]:
    """(n,) the rows as items of this kind."""
    return rows.reshape(-1).view(kind)


class SeriesMap:
    """For each row of a segment, the host's series that it adds to."""

    def __init__(self, keys: U64, series: NDArray[np.intp], others: Sequence[int]) -> None:
        """`others`: the series for rows without a series of their own."""
        self.keys = keys
        """(n,) the key of each row, as in segment.Rows."""
        self.rows = series
        """(n,) the series of each row."""
        self.series = series
        """(m,) the distinct series."""
        self.group: NDArray[np.intp] | None = None
        """(n,) for each row its index in `series`; None: the same index."""
        is_other = keys & np.uint64(layout.KEY_OP_MASK) == layout.OTHER_OP_ID
        self.at_other: U64 = np.sort(keys[np.isin(series, others) & ~is_other])
        """The keys of operators' rows without a series of their own, ascending."""
        unique, group = np.unique(series, return_inverse=True)
        if len(unique) < len(series):
            self.series, self.group = unique, group
        self._buckets: tuple[NDArray[np.int32], Buckets] | None = None

    def buckets(self, of_rows: NDArray[np.int32]) -> Buckets:
        """The octaves that these rows' buckets (segment.Rows.buckets) add to."""
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
    segment: Segment,
    series_map: SeriesMap,
    possible: PossibleTimes,
    stretches: Stretches,
    processor: ProcessorTimes,
    service: str,
    health: Health,
    usage: tuple[tuple[str, str], ...],
    attach_results: tuple[tuple[str, str], ...],
    measured: Counter[MeasureKey],
) -> Contribution:
    """The contribution of a segment; `service` is the key of its sums by phase, `possible` what the
    segment has contributed to times so far, `processor` what its threads had."""
    rows, ticks_per_second = segment.rows, segment.header.ticks_per_second
    samples, weights = rows.values[:, _SAMPLES], rows.values[:, _WEIGHT]
    times, limit = wanted(rows.values), segment.possible_self_ticks
    off = variance.variances(
        segment.variances,
        rows.keys,
        samples,
        weights,
        times[:, 0] / ticks_per_second,
        ticks_per_second,
    )
    part = 1.0
    sampled = weights != samples * layout.WEIGHT_ONE
    if segment.is_mainly_main and segment.header.window_ns:
        off_cpu = of_rows(segment.off_cpu, rows.keys, off, ticks_per_second)
        shown = stretches.of(
            StretchRows(
                rows.keys, sampled, times / ticks_per_second, off, off_cpu, ticks_per_second
            ),
            processor.main,
            is_over=processor.is_over,
        )
        off, part = shown.variances, 1.0 - shown.part
        if part < 1.0:
            limit = min(limit, segment.elapsed_ticks)
        times = shown.times_s * ticks_per_second
    counters = _counters(rows, possible.of(rows.keys, times, limit), ticks_per_second)
    if segment.header.window_ns:
        total_s, self_s = counters[:, TOTAL_NS] / 1e9, counters[:, SELF_NS] / 1e9
        weight = processor_time.mean_weight(samples[sampled], weights[sampled])
        off = with_unseen(off, rows.keys, sampled, total_s, self_s, weight, processor, part)
    variances, owed = off.rows, off.owed
    if series_map.group is not None:
        counters = bounds.sum_by(series_map.group, counters, len(series_map.series))
        variances = variance.sum_by(series_map.group, variances, len(series_map.series))
        owed = variance.sum_by(series_map.group, owed, len(series_map.series))
    buckets, weights = series_map.buckets(rows.buckets), rows.bucket_weights
    if buckets.group is not None:
        weights = bounds.sum_by(buckets.group, weights, len(buckets.series))
    compact, unit, most = _compact(weights)
    return Contribution(
        series=series_map.series,
        counters=counters,
        variances=variances,
        owed=owed,
        phase_variances=variance.by_phase(off.phases, service),
        buckets=buckets,
        bucket_weights=compact,
        bucket_unit=unit,
        most=max(most, int(counters.max(initial=0))),
        health=health,
        usage=usage,
        attach_results=attach_results,
        measured=measured,
        folded_rows=len(series_map.at_other),
    )


def _compact(weights: U64) -> tuple[U64 | NDArray[np.uint32], int, int]:
    """The weights in less memory if all are whole; their unit; an upper bound."""
    bits = int(np.bitwise_or.reduce(weights, axis=None))
    if bits % layout.WEIGHT_ONE or bits // layout.WEIGHT_ONE > _UINT32_MAX:
        return weights, 1, bits
    return (weights >> _WEIGHT_LOG2).astype(np.uint32), layout.WEIGHT_ONE, bits


def _counters(rows: Rows, times: tuple[F64, F64], ticks_per_second: int) -> U64:
    """(n, COUNTER_COLUMNS) of the rows' values, in the order of snapshot's columns.

    `times`: their self and total ticks, as far as they are possible."""
    values = rows.values
    weight, whole, total = values[:, _WEIGHT], values[:, _WHOLE], values[:, _TOTAL]
    self_ns, total_ns = (_ns(ticks, ticks_per_second) for ticks in times)
    # The other columns are the same in both.
    counters = values.copy(order="C")
    counters[:, TOTAL_NS] = total_ns
    counters[:, SELF_NS] = np.minimum(self_ns, total_ns)
    counters[:, SELF_UNKNOWN] = np.where((whole > 0) | (total == 0), np.uint64(0), weight)
    return counters


def _ns(ticks: NDArray[np.float64] | U64, ticks_per_second: int) -> U64:
    return bounds.to_u64(ticks * (1e9 / ticks_per_second))
