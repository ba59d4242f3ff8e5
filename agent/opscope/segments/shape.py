"""The shape of a segment's tables: the key of each cell, and the line of each of its octaves.

A shape rarely changes between reads. An unchanged one is reused without validation, which would
take most of the time of a read. Shapes contain no counters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from opscope.segments import layout
from opscope.segments.chunks import Head
from opscope.segments.layout import U64
from opscope.segments.segment_file import SegmentError

_OP_MASK, _PHASE_MASK = np.uint64(layout.KEY_OP_MASK), np.uint64(layout.KEY_PHASE_MASK)
_PHASE_SHIFT, _LABELS_SHIFT = np.uint64(layout.KEY_PHASE_SHIFT), np.uint64(layout.KEY_LABELS_SHIFT)

_TABLE_BITS = 32


class Known(Protocol):
    """The parts of a dictionary (dictionary.py) that keys refer to."""

    @property
    def ops(self) -> Mapping[int, object]: ...

    @property
    def labels(self) -> Mapping[int, object]: ...

    @property
    def extra_costs_ps(self) -> Mapping[int, int]: ...


class Keys(NamedTuple):
    """The keys of a segment's cells."""

    all: U64
    """(n,) the key of each cell."""
    unique: U64
    """(r,) each key once: the rows."""
    row: NDArray[np.intp] | None
    """(n,) for each cell its row; None: the same index, since no key occurs twice."""
    extra_costs_ps: U64 | None
    """(n,) cost of a range of each cell beyond the header's `record_cost_ps`; None: no extra."""

    @classmethod
    def of(cls, cells: NDArray[Any], dictionary: Known) -> Keys:
        """Raises SegmentError if a cell refers to something that the dictionary lacks."""
        keys = cells["key"].copy()
        order = keys.argsort(kind="stable")
        ordered = keys[order]
        is_first = np.ones(len(keys), bool)
        np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
        is_once = bool(is_first.all())
        unique = keys if is_once else ordered[is_first]
        _check(unique, dictionary)
        extras = None
        if dictionary.extra_costs_ps:
            extra_of = dictionary.extra_costs_ps
            ops = (keys & _OP_MASK).tolist()
            extras = np.array([extra_of.get(op, 0) for op in ops], np.uint64)
        if is_once:
            return cls(keys, keys, None, extras)
        row = np.empty(len(keys), np.intp)
        row[order] = is_first.cumsum() - 1
        return cls(keys, unique, row, extras)

    def fit(self, cells: NDArray[Any]) -> bool:
        """Whether they are the keys of these cells."""
        return np.array_equal(cells["key"], self.all)


class Lines(NamedTuple):
    """The lines that a segment's cells refer to: one for each octave in which a cell counted. They
    are in the order of the file, so that their weights need not be sorted in each read."""

    place: NDArray[np.int32]
    """(m,) cell * OCTAVES + octave."""
    number: NDArray[np.uint16]
    """(m,) the cell's reference: the line's number in the table, plus one."""
    source: NDArray[np.int32] | slice
    """(m,) the line's index among all lines of the file, in the order of their chunks. A slice if
    the cells refer to all lines in between, which is usual: only those of `other` are unused."""
    where: tuple[bytes, list[Head]]
    """Identifies the positions of lines and tables; a changed value makes `source` invalid."""
    row_octave: NDArray[np.int32]
    """(k,) row * OCTAVES + octave, each once; rows as in Keys."""
    group: NDArray[np.intp] | None
    """(m,) for each line its index in `row_octave`; None: the same index."""

    @classmethod
    def of(
        cls,
        numbers: NDArray[np.uint16],
        table: NDArray[np.uint32],
        heads: Sequence[Head],
        keys: Keys,
    ) -> Lines:
        """The lines of cells with these `octave_line`s and tables; `heads` are of the lines'
        chunks.

        Raises SegmentError if a cell refers to a missing line.
        """
        place = numbers.nonzero()[0].astype(np.int32)
        used = np.array([head.used for head in heads], np.uint64)
        count = int(used.sum())
        if len(place) > count:
            raise SegmentError("corrupt", "more histograms than lines")  # cells share a line
        line = numbers[place].astype(np.uint64) - np.uint64(1)
        source = _source(table[place // layout.OCTAVES], line, heads, used)
        order = source.argsort(kind="stable")
        place, source = place[order], source[order]
        row_octave, group = place, None
        if keys.row is not None:
            row = keys.row[place // layout.OCTAVES]
            row_octave, group = np.unique(
                row * layout.OCTAVES + place % layout.OCTAVES, return_inverse=True
            )
        return cls(
            place,
            numbers[place],
            _as_slice(source),
            _where(table, heads),
            row_octave.astype(np.int32, copy=False),
            group,
        )

    def fit(
        self,
        numbers: NDArray[np.uint16],
        table: NDArray[np.uint32],
        heads: Sequence[Head],
    ) -> bool:
        """Whether they are the lines of these cells, whose keys have not changed."""
        return (
            np.count_nonzero(numbers) == len(self.place)
            and np.array_equal(numbers[self.place], self.number)
            and _where(table, heads) == self.where
        )

    @property
    def nbytes(self) -> int:
        """Approximate memory size, in bytes."""
        source = 0 if isinstance(self.source, slice) else self.source.nbytes
        return self.place.nbytes + self.number.nbytes + source + len(self.where[0])


def _check(keys: U64, dictionary: Known) -> None:
    if not dictionary.ops.keys() >= set((keys & _OP_MASK).tolist()):
        raise SegmentError("corrupt", "a cell of an unknown operator")
    if not dictionary.labels.keys() >= set((keys >> _LABELS_SHIFT).tolist()):
        raise SegmentError("corrupt", "a cell of an unknown label set")
    phases = keys >> _PHASE_SHIFT & _PHASE_MASK
    if (phases >= len(layout.PHASES)).any():
        raise SegmentError("corrupt", "a cell of an unknown phase")


def _as_slice(source: NDArray[np.int32]) -> NDArray[np.int32] | slice:
    """`source`: ascending."""
    if not len(source):
        return slice(0, 0)
    whole = slice(int(source[0]), int(source[-1]) + 1)
    return whole if np.array_equal(source, np.arange(whole.start, whole.stop)) else source


def _where(table: NDArray[np.uint32], heads: Sequence[Head]) -> tuple[bytes, list[Head]]:
    return table.tobytes(), list(heads)


def _source(
    table: NDArray[np.uint32], line: U64, heads: Sequence[Head], used: U64
) -> NDArray[np.int32]:
    """(m,) the index of each line among the concatenated lines of the chunks with these heads."""
    # One number orders all lines of all tables: table << 32 | index in the table.
    first = np.array([head.table << _TABLE_BITS | head.first for head in heads], np.uint64)
    order = first.argsort(kind="stable")
    first = first[order]
    start = (used.cumsum() - used)[order]
    wanted = table.astype(np.uint64) << np.uint64(_TABLE_BITS) | line
    chunk = first.searchsorted(wanted, side="right") - 1
    if (chunk < 0).any():
        raise SegmentError("corrupt", "a cell refers to a missing line")
    offset = wanted - first[chunk]
    if (offset >= used[order][chunk]).any():
        raise SegmentError("corrupt", "a cell refers to a missing line")
    source: NDArray[np.int32] = (start[chunk] + offset).astype(np.int32)
    return source
