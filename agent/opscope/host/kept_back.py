"""Times of ended processes beyond those that passed, until others of the service leave room.

An estimate of a process never shows more self time than its threads had (segments/self_time.py).
What is kept back is right on average: a window that happens to fall into one short process
represents also those that no window meets. So the rest counts once other ended processes of the
service have shown less than the time that their threads had. A service thus never shows more time
than its threads had, and in the long run all of the estimates. A restart of the agent loses what is
kept back then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from opscope.host.amounts import Amounts
from opscope.host.snapshot import COUNTER_COLUMNS, SELF_NS, TOTAL_NS
from opscope.segments import bounds, layout, variance
from opscope.segments.segment import Segment
from opscope.segments.self_time import PossibleTimes
from opscope.segments.variance import F64

_Service = tuple[int, str]
"""The user, and the service's name."""


class Ending(NamedTuple):
    """What a process leaves if it ends now."""

    room_ns: float
    """The time that its threads had, without what it has shown of it; may be negative."""
    series: NDArray[np.intp]
    """(n,) of each row with something kept back."""
    kept_ns: F64
    """(n, 2) its self and total time."""


def ending(segment: Segment, series: NDArray[np.intp], possible: PossibleTimes) -> Ending | None:
    """None if the time of its threads is unknown. `series`: of each row of the segment."""
    if segment.elapsed_ticks == float("inf"):
        return None
    ns = 1e9 / segment.header.ticks_per_second
    room_ns = (segment.elapsed_ticks - possible.shown_ticks) * ns
    kept = possible.kept_back
    if kept is None:
        return Ending(room_ns, np.zeros(0, np.intp), np.zeros((0, 2)))
    rows = kept[:, 0] > 0.0
    return Ending(room_ns, series[rows], kept[rows] * ns)


class KeptBack:
    def __init__(self) -> None:
        self._rooms_ns: dict[_Service, float] = {}
        self._kept_ns: dict[_Service, dict[int, F64]] = {}
        """Also by series: self and total time. Only services with something kept back."""

    def end(self, service: _Service, left: Ending | None) -> None:
        """A process of the service has ended. `service`: bounded in number."""
        if left is None:
            return
        self._rooms_ns[service] = self._rooms_ns.get(service, 0.0) + left.room_ns
        for series, kept in zip(left.series.tolist(), left.kept_ns, strict=True):
            of_service = self._kept_ns.setdefault(service, {})
            of_service[series] = of_service.get(series, 0.0) + kept

    def forget(self, freed: Iterable[int]) -> None:
        """These numbers of series are about to get other meanings."""
        numbers = set(freed)
        for service, of_service in list(self._kept_ns.items()):
            for number in numbers & of_service.keys():
                del of_service[number]
            if not of_service:
                del self._kept_ns[service]

    def released(self) -> Iterator[Amounts]:
        """What there is room for now: to be added to the sums, and no longer kept back."""
        for service, of_service in list(self._kept_ns.items()):
            room_ns = self._rooms_ns[service]
            kept = np.stack(list(of_service.values()))
            all_ns = float(kept[:, 0].sum())
            if room_ns <= 0.0:
                continue
            share = min(1.0, room_ns / all_ns)
            self._rooms_ns[service] = room_ns - share * all_ns
            yield _amounts(np.array(list(of_service), np.intp), share * kept)
            if share == 1.0:
                del self._kept_ns[service]
            else:
                self._kept_ns[service] = dict(zip(of_service, (1.0 - share) * kept, strict=True))


def _amounts(series: NDArray[np.intp], ns: F64) -> Amounts:
    counters = np.zeros((len(series), COUNTER_COLUMNS), np.uint64)
    counters[:, SELF_NS], counters[:, TOTAL_NS] = bounds.to_u64(ns.T)
    counters[:, TOTAL_NS] = np.maximum(counters[:, TOTAL_NS], counters[:, SELF_NS])
    none = np.zeros((0, layout.BUCKETS_PER_OCTAVE), np.uint64)
    variances = np.zeros((len(series), variance.COLUMNS))
    return Amounts.summed(series, counters, variances, np.zeros(0, np.intp), none)
