"""Parse one segment: bytes in, object out. native/SEGMENT.md tells the format and how to read it.

Cells are read before the lines and names they refer to, and every `used` before what it counts. So
whatever a cell refers to is there, even while the process goes on writing, and what is not there
is corruption. Which files to read and what becomes of them is in host.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from opscope.agent import exemplars, layout
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
# Far above what the recorder makes, which is at most 256.
_METRIC_LIMIT = 4096


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
    liveness: int
    overhead_budget_ppb: int = 0
    overhead_ppb: int = 0
    adaptation_count: int = 0
    is_disabled: int = 0
    anchor_ticks: int = 0
    anchor_unix_ns: int = 0

    @property
    def is_closed(self) -> bool:
        """Nothing will be added, though the process may live."""
        return self.state == layout.CLOSED

    @property
    def by_lock(self) -> bool:
        """Its process lives for as long as the file is locked."""
        return self.liveness == layout.LIVENESS_LOCK


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


class CellKeys(NamedTuple):
    """The keys of a segment's cells: mostly those of the last time, and then known to be good."""

    all: U64
    """(n,) of each cell."""
    unique: U64
    row: NDArray[np.intp] | None
    """(n,) for each cell its place in `unique`; None: the same place, as no key is there twice."""
    extra_costs_ps: U64
    """What a range of each of `all` costs beyond the header's `record_cost_ps`."""

    @classmethod
    def of(cls, keys: U64, dictionary: Dictionary) -> CellKeys:
        unique, row = np.unique(keys, return_inverse=True)
        extra_of = dictionary.extra_costs_ps
        ops = (keys & np.uint64(layout.KEY_OP_MASK)).tolist()
        extras = np.array([extra_of.get(op, 0) for op in ops], np.uint64)
        if len(unique) == len(keys):
            return cls(keys, keys, None, extras)
        return cls(keys, unique, row, extras)


class Segment(NamedTuple):
    header: Header
    dictionary: Dictionary
    rows: Rows
    measures: tuple[Measure, ...]
    exemplars: NDArray[Any]
    overhead_ns: int
    """What recording has cost so far; by the same arithmetic as in the process itself."""


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
        "overhead_budget_ppb": fields["overhead_budget_ppb"] <= 10**9,
        "overhead_ppb": fields["overhead_ppb"] < _COUNTER_LIMIT,
        "adaptation_count": fields["adaptation_count"] < _COUNTER_LIMIT,
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
    if dictionary.cell_keys is None or not np.array_equal(cells["key"], dictionary.cell_keys.all):
        _check_references(cells, dictionary)
        dictionary.cell_keys = CellKeys.of(cells["key"].copy(), dictionary)
    cell, octave, weights = _buckets(cells, table, read, heads)
    measures = _measures(values, dictionary)
    rows = _summed(cells, dictionary.cell_keys, cell, octave, weights)
    overhead_ns = _overhead_ns(header, cells["sample_count"], dictionary.cell_keys)
    return Segment(header, dictionary, rows, measures, _exemplars(read, heads), overhead_ns)


# The most that a chunk can use, by its kind; the last is of all kinds that are not known.
_ROOM = np.array([0xFFFFFFFF] * (layout.EXEMPLARS + 2))
_ROOM[layout.DICTIONARY] = layout.ROOM_BYTES
_ROOM[layout.CELLS] = layout.CELLS_PER_CHUNK
_ROOM[layout.LINES] = layout.LINES_PER_CHUNK
_ROOM[layout.METRICS] = layout.METRICS_PER_CHUNK
_ROOM[layout.EXEMPLARS] = layout.EXEMPLARS_PER_CHUNK


def _heads(read: Reader, count: int) -> NDArray[Any]:
    size = layout.CHUNK.itemsize
    start = layout.HEADER_BYTES
    raw = b"".join([read(start + index * layout.CHUNK_BYTES, size) for index in range(count)])
    if len(raw) != count * size:
        raise SegmentError("truncated", f"{count} chunks are not all there")
    heads = np.frombuffer(raw, layout.CHUNK)
    if (heads["used"] > _ROOM[np.minimum(heads["kind"], len(_ROOM) - 1)]).any():
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
    table = np.repeat(heads["table"][chunks], used)
    counted = cells["sample_count"] > 0
    return (cells, table) if counted.all() else (cells[counted], table[counted])


def _metrics(read: Reader, heads: NDArray[Any]) -> dict[int, int]:
    """The metrics' values by number."""
    values: dict[int, int] = {}
    chunks = np.flatnonzero(heads["kind"] == layout.METRICS)
    if heads["used"][chunks].sum() > _METRIC_LIMIT:
        raise SegmentError("too-much", "values of metrics")
    for index in chunks.tolist():
        raw = _items(read, index, 0, int(heads[index]["used"]) * layout.METRIC_BYTES)
        first = int(heads[index]["first"])
        values |= enumerate(np.frombuffer(raw, "<u8").tolist(), first)
    return values


def _exemplars(read: Reader, heads: NDArray[Any]) -> NDArray[Any]:
    size = layout.EXEMPLAR.itemsize
    chunks = np.flatnonzero(heads["kind"] == layout.EXEMPLARS).tolist()
    if not chunks:
        return exemplars.NONE
    return exemplars.whole(
        b"".join(_items(read, index, 0, int(heads[index]["used"]) * size) for index in chunks)
    )


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
    lines = cells["octave_line"].reshape(-1)
    place = np.flatnonzero(lines)
    cell, octave = place // layout.OCTAVES, place % layout.OCTAVES
    if len(cell) > heads["used"][heads["kind"] == layout.LINES].sum():
        raise SegmentError("corrupt", "more histograms than lines")  # and so one line in several
    line = lines[place].astype(np.uint64) - np.uint64(1)
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
    cells: NDArray[Any],
    keys: CellKeys,
    cell: NDArray[np.intp],
    octave: NDArray[np.intp],
    weights: U64,
) -> Rows:
    values = np.stack([cells[name] for name in COLUMNS], axis=1)
    for counters in (values, weights):
        _check_measure(counters)
    if keys.row is None:
        return Rows(keys.all, values, cell, octave, weights)
    row = keys.row
    place, which = np.unique(row[cell] * layout.OCTAVES + octave, return_inverse=True)
    return Rows(
        keys.unique,
        _sum_by(row, values, len(keys.unique)),
        place // layout.OCTAVES,
        place % layout.OCTAVES,
        _sum_by(which, weights, len(place)),
    )


def _overhead_ns(header: Header, samples: U64, keys: CellKeys) -> int:
    extras = keys.extra_costs_ps
    if float(samples.astype(np.float64) @ extras.astype(np.float64)) >= _COUNTER_LIMIT:
        raise SegmentError("corrupt", "costs beyond all measure")
    return (int(samples.sum()) * header.record_cost_ps + int(samples @ extras)) // 1000


def _check_measure(counters: U64) -> None:
    """That no column's sum is beyond all measure."""
    largest = int(counters.max(initial=0))
    if largest * len(counters) >= _COUNTER_LIMIT and (
        (counters.sum(axis=0, dtype=np.float64) >= _COUNTER_LIMIT).any()
    ):
        raise SegmentError("corrupt", "counters beyond all measure")


def _sum_by(group: NDArray[np.intp], values: U64, count: int) -> U64:
    """The rows of `values` summed by their group, exactly; each group from 0 to count has some."""
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(count))
    summed: U64 = np.add.reduceat(values[order], starts, axis=0) if count else values
    return summed
