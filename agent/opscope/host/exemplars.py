"""Convert complete exemplar entries (segments/exemplar_entries.py) to exemplars of host series."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opscope.host.snapshot import Exemplar
from opscope.segments.bounds import TIME_LIMIT_NS
from opscope.segments.layout import U64

# Exemplars kept for each series: the newest ones.
_PER_SERIES = 4


OfSeries = tuple[int, Exemplar]
"""The number of a host series, and one exemplar of it."""


def of_series(
    entries: NDArray[Any],
    keys: U64,
    series: NDArray[np.intp],
    ticks_per_second: int,
    anchor_ticks: int,
    anchor_unix_ns: int,
) -> tuple[OfSeries, ...]:
    """The entries as exemplars; `keys` and `series` map rows of the segment to host series."""
    if not len(entries):
        return ()
    numbers = dict(zip(keys.tolist(), series.tolist(), strict=True))
    ns_per_tick = 1e9 / ticks_per_second
    found = []
    for entry in entries:
        number = numbers.get(int(entry["key"]))
        after_anchor = int(entry["end_ticks"]) - anchor_ticks
        time_unix_ns = anchor_unix_ns + round(after_anchor * ns_per_tick)
        if number is not None and after_anchor >= 0 and time_unix_ns <= TIME_LIMIT_NS:
            exemplar = Exemplar(
                int(entry["ticks"]) * ns_per_tick / 1e9,
                time_unix_ns,
                entry["trace_id"].tobytes().hex(),
                entry["span_id"].tobytes().hex(),
            )
            found.append((number, exemplar))
    return tuple(found)


def newest(found: Iterable[OfSeries]) -> dict[int, tuple[Exemplar, ...]]:
    """The newest few exemplars of each series, oldest first."""
    by_series: dict[int, list[Exemplar]] = {}
    for number, exemplar in found:
        by_series.setdefault(number, []).append(exemplar)
    return {
        number: tuple(sorted(exemplars, key=lambda one: one.time_unix_ns)[-_PER_SERIES:])
        for number, exemplars in by_series.items()
    }
