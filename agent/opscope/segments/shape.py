"""The shape of a segment's tables: which cell is whose, and which line holds which octave of it.

It is mostly what it was the last time, and then known to be good and not worked out again: most of
what reading a segment costs would be that. Counters are not in here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from opscope.agent import layout
from opscope.agent.dictionary import Dictionary
from opscope.agent.layout import U64
from opscope.agent.segment_file import SegmentError


class Keys(NamedTuple):
    """The keys of a segment's cells."""

    all: U64
    """(n,) of each cell."""
    unique: U64
    """(r,) each once: the rows."""
    row: NDArray[np.intp] | None
    """(n,) for each cell its row; None: the same place, as no key is there twice."""
    extra_costs_ps: U64 | None
    """(n,) what a range of each cell costs beyond the header's `record_cost_ps`; None: nothing."""

    @classmethod
    def of(cls, cells: NDArray[Any], dictionary: Dictionary) -> Keys:
        """Raises SegmentError where a cell is of something that the dictionary does not have."""
        keys = cells["key"].copy()
        _check(keys, dictionary)
        unique, row = np.unique(keys, return_inverse=True)
        extras = None
        if dictionary.extra_costs_ps:
            extra_of = dictionary.extra_costs_ps
            ops = (keys & np.uint64(layout.KEY_OP_MASK)).tolist()
            extras = np.array([extra_of.get(op, 0) for op in ops], np.uint64)
        if len(unique) == len(keys):
            return cls(keys, keys, None, extras)
        return cls(keys, unique, row, extras)

    def fit(self, cells: NDArray[Any]) -> bool:
        """Whether they are those of these cells."""
        return np.array_equal(cells["key"], self.all)


class Lines(NamedTuple):
    """The lines that a segment's cells refer to: one for each octave that a cell has counted in."""

    place: NDArray[np.int32]
    """(m,) cell * OCTAVES + octave."""
    number: NDArray[np.uint16]
    """(m,) what the cell says there: the line's number in the table, plus one."""
    source: NDArray[np.int32]
    """(m,) which of all lines of the file it is, in the order of their chunks."""
    chunks: bytes
    """Where the lines and the cells' tables are; another: another source."""
    row_octave: NDArray[np.int32]
    """(k,) row * OCTAVES + octave, each once; rows as of Keys."""
    group: NDArray[np.intp] | None
    """(m,) for each line its place in `row_octave`; None: the same place."""

    @classmethod
    def of(
        cls,
        numbers: NDArray[np.uint16],
        table: NDArray[np.uint32],
        chunks: NDArray[np.intp],
        heads: NDArray[Any],
        keys: Keys,
    ) -> Lines:
        """Of cells with these `octave_line`s, of these tables, where `chunks` are those of lines.

        Raises SegmentError where a cell refers to a line that is not there.
        """
        place = np.flatnonzero(numbers).astype(np.int32)
        if len(place) > heads["used"][chunks].sum():
            raise SegmentError("corrupt", "more histograms than lines")  # one line in several
        cell = place // layout.OCTAVES
        line = numbers[place].astype(np.uint64) - np.uint64(1)
        source = _source(table[cell], line, heads[chunks])
        row_octave, group = place, None
        if keys.row is not None:
            row = keys.row[cell]
            row_octave, group = np.unique(
                row * layout.OCTAVES + place % layout.OCTAVES, return_inverse=True
            )
        return cls(
            place,
            numbers[place],
            source,
            _where(table, chunks, heads),
            row_octave.astype(np.int32, copy=False),
            group,
        )

    def fit(
        self,
        numbers: NDArray[np.uint16],
        table: NDArray[np.uint32],
        chunks: NDArray[np.intp],
        heads: NDArray[Any],
    ) -> bool:
        """Whether they are those of these cells, whose keys are the same as then."""
        return (
            np.count_nonzero(numbers) == len(self.place)
            and np.array_equal(numbers[self.place], self.number)
            and _where(table, chunks, heads) == self.chunks
        )

    @property
    def nbytes(self) -> int:
        """Memory that this takes, about."""
        return 2 * self.place.nbytes + self.number.nbytes + len(self.chunks)


def _check(keys: U64, dictionary: Dictionary) -> None:
    ops = np.unique(keys & np.uint64(layout.KEY_OP_MASK)).tolist()
    if not dictionary.ops.keys() >= set(ops):
        raise SegmentError("corrupt", "a cell of an unknown operator")
    labels = np.unique(keys >> np.uint64(layout.KEY_LABELS_SHIFT)).tolist()
    if not dictionary.labels.keys() >= set(labels):
        raise SegmentError("corrupt", "a cell of an unknown label set")
    phases = keys >> np.uint64(layout.KEY_PHASE_SHIFT) & np.uint64(layout.KEY_PHASE_MASK)
    if (phases >= len(layout.PHASES)).any():
        raise SegmentError("corrupt", "a cell of an unknown phase")


def _where(table: NDArray[np.uint32], chunks: NDArray[np.intp], heads: NDArray[Any]) -> bytes:
    return table.tobytes() + chunks.tobytes() + heads[chunks].tobytes()


def _source(table: NDArray[np.uint32], line: U64, heads: NDArray[Any]) -> NDArray[np.int32]:
    """Among the lines of all chunks with these heads, one after the other: where each one is."""
    # One number orders all lines of all tables: table << 32 | index in the table.
    first = heads["table"].astype(np.uint64) << np.uint64(32) | heads["first"]
    order = np.argsort(first, kind="stable")
    first = first[order]
    used = heads["used"].astype(np.uint64)
    start = (np.cumsum(used) - used)[order]
    wanted = table.astype(np.uint64) << np.uint64(32) | line
    chunk = np.searchsorted(first, wanted, side="right") - 1
    if (chunk < 0).any():
        raise SegmentError("corrupt", "a cell refers to a line that is not there")
    offset = wanted - first[chunk]
    if (offset >= used[order][chunk]).any():
        raise SegmentError("corrupt", "a cell refers to a line that is not there")
    source: NDArray[np.int32] = (start[chunk] + offset).astype(np.int32)
    return source
