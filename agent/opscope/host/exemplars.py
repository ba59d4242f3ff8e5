"""Exemplars of a segment (native/SEGMENT.md): which entries are whole, and of which series.

The process writes them around and around without waiting for a reader, so an entry may be half old
and half new; its check word says so. One that cannot be used is left out: an exemplar more or less
changes no number.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opscope.agent import layout
from opscope.agent.layout import U64
from opscope.agent.snapshot import Exemplar

# Of one series at a time: the newest.
_PER_SERIES = 4

NONE: NDArray[Any] = np.zeros(0, layout.EXEMPLAR)

OfSeries = tuple[int, Exemplar]
"""The host's series, by its number, and one exemplar of it."""


def whole(raw: bytes) -> NDArray[Any]:
    """The entries that were written whole."""
    words = np.frombuffer(raw, "<u8").reshape(-1, layout.EXEMPLAR.itemsize // 8)
    check = np.full(len(words), layout.EXEMPLAR_SEED, np.uint64)
    for column in range(words.shape[1] - 1):
        check = (check ^ words[:, column]) * np.uint64(layout.EXEMPLAR_FACTOR)
    found: NDArray[Any] = np.frombuffer(raw, layout.EXEMPLAR)[check == words[:, -1]]
    return found


def of_series(
    entries: NDArray[Any],
    keys: U64,
    series: NDArray[np.intp],
    ticks_per_second: int,
    anchor_ticks: int,
    anchor_unix_ns: int,
) -> tuple[OfSeries, ...]:
    """The entries as exemplars, where the rows with these keys are of these series."""
    if not len(entries):
        return ()
    numbers = dict(zip(keys.tolist(), series.tolist(), strict=True))
    ns_per_tick = 1e9 / ticks_per_second
    found = []
    for entry in entries:
        number = numbers.get(int(entry["key"]))
        after_anchor = int(entry["end_ticks"]) - anchor_ticks
        if number is not None and after_anchor >= 0:
            exemplar = Exemplar(
                int(entry["ticks"]) * ns_per_tick / 1e9,
                anchor_unix_ns + round(after_anchor * ns_per_tick),
                entry["trace_id"].tobytes().hex(),
                entry["span_id"].tobytes().hex(),
            )
            found.append((number, exemplar))
    return tuple(found)


def newest(found: Iterable[OfSeries]) -> dict[int, tuple[Exemplar, ...]]:
    """By series, the newest few, in the order of their time."""
    by_series: dict[int, list[Exemplar]] = {}
    for number, exemplar in found:
        by_series.setdefault(number, []).append(exemplar)
    return {
        number: tuple(sorted(exemplars, key=lambda one: one.time_unix_ns)[-_PER_SERIES:])
        for number, exemplars in by_series.items()
    }
