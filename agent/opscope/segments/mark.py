"""Recognise a segment in which nothing was counted since it was read.

Most processes of a host are idle at any moment. All counters of cells only grow, and variances
change by amounts that have nothing to do with them, so the sum of all words stays if and only if
each of them does (a change by a multiple of 2^64 would be missed). A process counts a range in its
cell before it counts it in the cell's line, so a read may find the lines behind; but then they have
fewer calls than the cells. A mark is settled once they have as many.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from opscope.segments import layout
from opscope.segments.chunks import Chunk, Head, items_of, of_kind
from opscope.segments.layout import U64


class Counted(NamedTuple):
    """What is read first: cells, variances, metrics."""

    words: int
    """The sum of all words of cells and variances, modulo 2^64."""
    metrics: int
    """A hash: gauges also fall."""


class Mark(NamedTuple):
    """What a read of a segment found."""

    counted: Counted
    heads: list[Head]
    exemplars: int
    """A hash."""
    range_cost_ps: int
    """Of recording all its ranges (segment.overhead_ns)."""
    is_settled: bool
    """Whether it identifies everything that the segment counts."""

    def is_of(self, counted: Counted, others: Sequence[Chunk]) -> bool:
        """Whether nothing was counted since. `others`: all chunks, with exemplars."""
        return (
            self.is_settled
            and counted == self.counted
            and [chunk.head for chunk in others] == self.heads
            and exemplars_of(others) == self.exemplars
        )


def counted_of(cells: bytes, variances: bytes, metrics: bytes) -> Counted:
    """Of all items of these kinds."""
    words = sum(int(np.frombuffer(items, "<u8").sum()) for items in (cells, variances))
    return Counted(words % (1 << 64), hash(metrics))


def exemplars_of(chunks: Sequence[Chunk]) -> int:
    """A hash of the exemplars in chunks read with them."""
    return hash(items_of(of_kind(chunks, layout.EXEMPLARS)))


def is_settled(last: Mark | None, counted: Counted, cells: NDArray[Any], lines: U64) -> bool:
    """Whether the lines have all calls of the cells. False without comparing if more was counted
    since the last read: the next one will find more."""
    if last is None or counted != last.counted:
        return False
    return int(cells["weight"].sum()) == int(lines.sum())
