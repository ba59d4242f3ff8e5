"""Parse one segment: bytes in, object out. native/SEGMENT.md tells the format and how to read it.

Cells are read before the lines and names they refer to, and every `used` before what it counts. So
whatever a cell refers to is there, even while the process goes on writing, and what is not there
is corruption. Which files to read and what becomes of them is in host.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from opscope.agent import layout
from opscope.agent.dictionary import Dictionary
from opscope.agent.layout import U64
from opscope.agent.measures import Measure
from opscope.agent.segment_file import Reader, SegmentError

# Columns of Rows.values; the cell's fields of the same names.
COLUMNS = (
    "sample_count",
    "weight",
    "whole_ticks",
    "total_ticks",
    "self_ticks",
    "error_weight",
    "bytes",
)
# For one file: 49 years of ticks at 3 GHz, 70 trillion calls. A damaged one must not make sums
# over files overflow.
_COUNTER_LIMIT = 1 << 62
_TICKS_PER_SECOND = (1e5, 1e11)


class Header(NamedTuple):
    """The header's facts, checked."""

    state: int
    boot_id: bytes
    random_id: bytes
    pid_namespace: int
    pid: int
    process_start: int
    uid: int
    ticks_per_second: int
    created_unix_ns: int
    window_ns: int
    period_ns: int
    sampling_prob: float
    dropped_count: int
    folded_count: int
    window_count: int
    window_on_ns: int
    window_wall_ns: int
    callback_error_count: int
    record_cost_ps: int
    chunk_count: int


class Rows(NamedTuple):
    """Cells summed over a segment's tables: one row for each key, in no order."""

    keys: U64
    """(n,) operator id | phase << 32 | label set << 40."""
    values: U64
    """(n, len(COLUMNS))."""
    bucket_row: NDArray[np.intp]
    """(m,) the row to which each octave of buckets belongs."""
    bucket_octave: NDArray[np.intp]
    """(m,) which octave: bucket k covers 2^(octave - 40 + k/8) s to the next."""
    bucket_weights: U64
    """(m, 8), in units of 2^-16; no (row, octave) twice."""


class Segment(NamedTuple):
    header: Header
    dictionary: Dictionary
    rows: Rows
    measures: tuple[Measure, ...]


def read_header(read: Reader) -> Header:
    """The header alone. Raises SegmentError."""
    raw = read(0, layout.HEADER_BYTES)
    if not raw:
        raise SegmentError("empty")
    if len(raw) < layout.HEADER_BYTES:
        raise SegmentError("truncated", f"{len(raw)} bytes")
    if raw[:8] != b"OPSCOPE\0":
        raise SegmentError("magic")
    fields = np.frombuffer(raw, layout.HEADER, count=1)[0]
    if fields["version"] != layout.VERSION:
        raise SegmentError("version", f"{fields['version']}, not {layout.VERSION}")
    if fields["state"] == 0:
        raise SegmentError("unfinished")
    _check_header(fields)
    return Header(
        state=int(fields["state"]),
        boot_id=fields["boot_id"].tobytes(),
        random_id=fields["random_id"].tobytes(),
        sampling_prob=int(fields["sampling_prob_ppt"]) / 1e12,
        **{name: int(fields[name]) for name in _PLAIN_FIELDS},
    )


_PLAIN_FIELDS = tuple(
    name
    for name in Header._fields
    if name not in ("state", "boot_id", "random_id", "sampling_prob")
)


def _check_header(fields: Any) -> None:
    sizes = (fields["header_bytes"], fields["chunk_bytes"], fields["chunk_limit"])
    rate = float(fields["ticks_per_second"])
    checks = {
        "sizes": sizes == (layout.HEADER_BYTES, layout.CHUNK_BYTES, layout.CHUNK_LIMIT),
        "chunk_count": fields["chunk_count"] <= layout.CHUNK_LIMIT,
        "state": fields["state"] in (layout.LIVE, layout.CLOSED),
        "clock_source": fields["clock_source"] in layout.CLOCK_SOURCES,
        "ticks_per_second": _TICKS_PER_SECOND[0] <= rate <= _TICKS_PER_SECOND[1],
        "created_unix_ns": fields["created_unix_ns"] < 1 << 63,
        "sampling_prob": fields["sampling_prob_ppt"] <= 10**12,
        "record_cost_ps": fields["record_cost_ps"] < _COUNTER_LIMIT,
        "dropped_count": fields["dropped_count"] < _COUNTER_LIMIT,
        "folded_count": fields["folded_count"] < _COUNTER_LIMIT,
        "callback_error_count": fields["callback_error_count"] < _COUNTER_LIMIT,
    }
    for name, holds in checks.items():
        if not holds:
            raise SegmentError("corrupt", f"header: {name}")


def read_segment(read: Reader, header: Header, dictionary: Dictionary) -> Segment:
    """What the segment says now; `header` was read before by the same reader.

    `dictionary` is the one given for this file the last time, or a new one; it is read on from
    where it ended. Raises SegmentError.
    """
    heads = _heads(read, header.chunk_count)
    cells, table = _cells(read, heads)
    values = _metrics(read, heads)
    # What the cells refer to was there before them, so it is within what is counted now.
    header = read_header(read)
    heads = _heads(read, header.chunk_count)
    for index in np.flatnonzero(heads["kind"] == layout.DICTIONARY):
        _take_dictionary(read, int(index), int(heads[index]["used"]), dictionary)
    _check_references(cells, dictionary)
    cell, octave, weights = _buckets(cells, table, read, heads)
    measures = _measures(values, dictionary)
    return Segment(header, dictionary, _summed(cells, cell, octave, weights), measures)


_ROOM = {
    layout.DICTIONARY: layout.ROOM_BYTES,
    layout.CELLS: layout.CELLS_PER_CHUNK,
    layout.LINES: layout.LINES_PER_CHUNK,
    layout.METRICS: layout.METRICS_PER_CHUNK,
}


def _heads(read: Reader, count: int) -> NDArray[Any]:
    size = layout.CHUNK.itemsize
    start = layout.HEADER_BYTES
    raw = b"".join([read(start + index * layout.CHUNK_BYTES, size) for index in range(count)])
    if len(raw) != count * size:
        raise SegmentError("truncated", f"{count} chunks are not all there")
    heads = np.frombuffer(raw, layout.CHUNK)
    room = np.select(
        [heads["kind"] == kind for kind in _ROOM],
        [*_ROOM.values()],
        default=np.iinfo(np.uint32).max,
    )
    if (heads["used"] > room).any():
        raise SegmentError("corrupt", "a chunk uses more than it has")
    return heads


def _take_dictionary(read: Reader, index: int, used: int, dictionary: Dictionary) -> None:
    known = dictionary.read_bytes.get(index, 0)
    if used < known:
        raise SegmentError("corrupt", "the dictionary shrank")
    if used > known:
        dictionary.take(index, _items(read, index, known, used - known))


def _items(read: Reader, index: int, offset: int, size: int) -> bytes:
    start = layout.HEADER_BYTES + index * layout.CHUNK_BYTES + layout.CHUNK_HEADER_BYTES
    raw = read(start + offset, size)
    if len(raw) != size:
        raise SegmentError("truncated", f"chunk {index}")
    return raw


def _cells(read: Reader, heads: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.uint32]]:
    """All cells that have counted something, and the table of each."""
    chunks = np.flatnonzero(heads["kind"] == layout.CELLS)
    used = heads["used"][chunks]
    size = layout.CELL.itemsize
    raw = [
        _items(read, index, 0, count * size)
        for index, count in zip(chunks.tolist(), used.tolist(), strict=True)
    ]
    cells = np.frombuffer(b"".join(raw), layout.CELL)
    counted = cells["sample_count"] > 0
    return cells[counted], np.repeat(heads["table"][chunks], used)[counted]


def _metrics(read: Reader, heads: NDArray[Any]) -> dict[int, int]:
    """The metrics' values by number."""
    values: dict[int, int] = {}
    for index in np.flatnonzero(heads["kind"] == layout.METRICS).tolist():
        raw = _items(read, index, 0, int(heads[index]["used"]) * layout.METRIC_BYTES)
        first = int(heads[index]["first"])
        values |= enumerate(np.frombuffer(raw, "<u8").tolist(), first)
    return values


def _measures(values: dict[int, int], dictionary: Dictionary) -> tuple[Measure, ...]:
    if not dictionary.metrics.keys() >= values.keys():
        raise SegmentError("corrupt", "a value of an unknown metric")
    measures = []
    for number, value in values.items():
        name, label, kind = dictionary.metrics[number]
        if kind == layout.METRIC_COUNTER and value >= _COUNTER_LIMIT:
            raise SegmentError("corrupt", "counters beyond all measure")
        # A gauge of which more was taken than added, by threads that were just at it.
        measures.append(Measure(name, label, kind, value if value < 1 << 63 else 0))
    return tuple(measures)


def _check_references(cells: NDArray[Any], dictionary: Dictionary) -> None:
    keys = cells["key"]
    ops = np.unique(keys & np.uint64(layout.KEY_OP_MASK)).tolist()
    if not dictionary.ops.keys() >= set(ops):
        raise SegmentError("corrupt", "a cell of an unknown operator")
    labels = np.unique(keys >> np.uint64(layout.KEY_LABELS_SHIFT)).tolist()
    if not dictionary.labels.keys() >= set(labels):
        raise SegmentError("corrupt", "a cell of an unknown label set")
    phases = keys >> np.uint64(layout.KEY_PHASE_SHIFT) & np.uint64(layout.KEY_PHASE_MASK)
    if (phases >= len(layout.PHASES)).any():
        raise SegmentError("corrupt", "a cell of an unknown phase")


def _buckets(
    cells: NDArray[Any], table: NDArray[np.uint32], read: Reader, heads: NDArray[Any]
) -> tuple[NDArray[np.intp], NDArray[np.intp], U64]:
    """Each octave of each cell's histogram: the cell, the octave, its (m, 8) weights."""
    cell, octave = np.nonzero(cells["octave_line"])
    line = cells["octave_line"][cell, octave].astype(np.uint64) - np.uint64(1)
    chunks = np.flatnonzero(heads["kind"] == layout.LINES)
    # One number orders all lines of all tables: table << 32 | index in the table.
    first = heads["table"][chunks].astype(np.uint64) << np.uint64(32) | heads["first"][chunks]
    order = np.argsort(first, kind="stable")
    chunks, first = chunks[order], first[order]
    used = heads["used"][chunks].astype(np.int64)
    raw = b"".join(
        [
            _items(read, index, 0, count * layout.LINE.itemsize)
            for index, count in zip(chunks.tolist(), used.tolist(), strict=True)
        ]
    )
    weights = np.frombuffer(raw, layout.LINE)["weight"]
    wanted = table[cell].astype(np.uint64) << np.uint64(32) | line
    chunk = np.searchsorted(first, wanted, side="right") - 1
    if (chunk < 0).any():
        raise SegmentError("corrupt", "a cell refers to a line that is not there")
    offset = (wanted - first[chunk]).astype(np.int64)
    if (offset >= used[chunk]).any():
        raise SegmentError("corrupt", "a cell refers to a line that is not there")
    return cell, octave, weights[(np.cumsum(used) - used)[chunk] + offset]


def _summed(
    cells: NDArray[Any], cell: NDArray[np.intp], octave: NDArray[np.intp], weights: U64
) -> Rows:
    values = np.stack([cells[name] for name in COLUMNS], axis=1)
    for counters in (values, weights):
        if (counters.sum(axis=0, dtype=np.float64) >= _COUNTER_LIMIT).any():
            raise SegmentError("corrupt", "counters beyond all measure")
    keys, row = np.unique(cells["key"], return_inverse=True)
    if len(keys) == len(cells):
        return Rows(cells["key"], values, cell, octave, weights)
    place, which = np.unique(row[cell] * layout.OCTAVES + octave, return_inverse=True)
    return Rows(
        keys,
        _sum_by(row, values, len(keys)),
        place // layout.OCTAVES,
        place % layout.OCTAVES,
        _sum_by(which, weights, len(place)),
    )


def _sum_by(group: NDArray[np.intp], values: U64, count: int) -> U64:
    """The rows of `values` summed by their group, exactly; each group from 0 to count has some."""
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(count))
    summed: U64 = np.add.reduceat(values[order], starts, axis=0) if count else values
    return summed
