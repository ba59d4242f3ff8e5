"""Parse one segment: bytes in, object out. native/SEGMENT.md defines the format.

Cells are read before the lines and names that they refer to, and each `used` before the items that
it counts. So everything that a cell refers to is in the file, even while the process writes; a
missing item is corruption. host/host.py decides which files to read.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter, le
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from opscope.segments import exemplar_entries, layout, mark, off_cpu, variance
from opscope.segments.bounds import FILE_LIMIT, TIME_LIMIT_NS
from opscope.segments.chunks import (
    Chunk,
    Head,
    all_used,
    items_of,
    of_kind,
    read_counted,
    read_heads,
    read_items,
    read_others,
)
from opscope.segments.dictionary import Dictionary
from opscope.segments.layout import U64
from opscope.segments.mark import Mark
from opscope.segments.segment_file import Reader, SegmentError
from opscope.segments.self_time import elapsed_ticks_of_all, is_mainly_main, possible_ticks
from opscope.segments.shape import Keys, Lines

# Columns of Rows.values: fields of a cell with the same names.
COLUMNS = (
    "sample_count",
    "weight",
    "whole_ticks",
    "total_ticks",
    "self_ticks",
    "error_weight",
    "bytes",
)
# Their positions among a cell's words of 64 bits: one after the other.
_CELL: Any = layout.CELL.fields
_FIRST = _CELL[COLUMNS[0]][1] // 8
_VALUES = slice(_FIRST, _FIRST + len(COLUMNS))
assert [_CELL[name][1] // 8 for name in COLUMNS] == [*range(_VALUES.start, _VALUES.stop)]
# Far above the recorder's maximum of 256.
_METRIC_LIMIT = 4096


class Header(NamedTuple):
    """The header's fields, validated."""

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
    sampling_prob_ppt: int
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
    cost_factor_ppm: int = 0
    uncounted_cost_ps: int = 0
    discarded_count: int = 0
    window_thread_ns: int = 0
    window_end_ticks: int = 0
    main_table: int = 0

    @property
    def sampling_prob(self) -> float:
        return self.sampling_prob_ppt / 1e12

    @property
    def is_closed(self) -> bool:
        """Whether the segment is final, though the process may live."""
        return self.state == layout.CLOSED

    @property
    def by_lock(self) -> bool:
        """Whether the lock on the file shows that its process lives."""
        return self.liveness == layout.LIVENESS_LOCK


class Rows(NamedTuple):
    """Cells summed over a segment's tables: one row for each key, in no particular order."""

    keys: U64
    """(n,) operator id | phase << 32 | label set << 40."""
    values: U64
    """(n, len(COLUMNS))."""
    buckets: NDArray[np.int32]
    """(m,) row * OCTAVES + octave, each once; the same object while its contents stay the same.
    Bucket k of an octave covers 2^(octave - 40 + k/8) s up to the next bucket."""
    bucket_weights: U64
    """(m, 8), in units of 2^-16."""

    @property
    def bucket_row(self) -> NDArray[np.int32]:
        return self.buckets // layout.OCTAVES

    @property
    def bucket_octave(self) -> NDArray[np.int32]:
        return self.buckets % layout.OCTAVES


class Measure(NamedTuple):
    """One metric of a segment."""

    name: str
    label: str
    kind: int
    value: int


class Segment(NamedTuple):
    header: Header
    dictionary: Dictionary
    rows: Rows
    measures: tuple[Measure, ...]
    exemplars: NDArray[Any]
    overhead_ns: int
    """Cost of recording so far, computed as in the process itself. It may fall a little when a
    range turns out to cost less than assumed."""
    possible_self_ticks: float
    """The most self time of all rows together (self_time.py); infinite without a limit."""
    elapsed_ticks: float
    """The time of all its threads together; infinite if unknown."""
    variances: NDArray[Any]
    """The stated variances: layout.VARIANCE, validated."""
    off_cpu: NDArray[Any]
    """The stated off-CPU times: layout.OFF_CPU, validated."""
    is_mainly_main: bool
    """Whether nearly all estimated self time is of the main thread, and its off-CPU time known."""
    used: int
    """As of `used()`."""
    mark: Mark


def read_header(read: Reader) -> Header:
    """Reads the header alone. Raises SegmentError."""
    raw = read(0, layout.HEADER_BYTES)
    if not raw:
        raise SegmentError("empty")
    if len(raw) < layout.HEADER_BYTES:
        raise SegmentError("truncated", f"{len(raw)} bytes")
    if raw[:8] != b"OPSCOPE\0":
        raise SegmentError("magic")
    values = _HEADER.unpack_from(raw)
    if values[_VERSION] != layout.VERSION:
        raise SegmentError("version", f"{values[_VERSION]}, not {layout.VERSION}")
    if values[_STATE] == 0:
        raise SegmentError("unfinished")
    numbers = _RANGED(values)
    # All at once, which is faster: each pass reads the header of each file.
    if not (all(map(le, _LEAST, numbers)) and all(map(le, numbers, _MOST))):
        for number, (name, least, most) in zip(numbers, _HEADER_RANGES, strict=True):
            if not least <= number <= most:
                raise SegmentError("corrupt", f"header: {name}")
    return Header._make(_FIELDS(values))


_HEADER = layout.struct_of(layout.HEADER)
_HEADER_NAMES = layout.HEADER.names or ()
_VERSION, _STATE = map(_HEADER_NAMES.index, ("version", "state"))
_FIELDS = itemgetter(*map(_HEADER_NAMES.index, Header._fields))
_COUNTER = 0, FILE_LIMIT - 1
_TIME = 0, TIME_LIMIT_NS
_ID = 0, (1 << 32) - 1
_HEADER_RANGES = (
    ("header_bytes", layout.HEADER_BYTES, layout.HEADER_BYTES),
    ("chunk_bytes", layout.CHUNK_BYTES, layout.CHUNK_BYTES),
    ("chunk_limit", layout.CHUNK_LIMIT, layout.CHUNK_LIMIT),
    ("chunk_count", 0, layout.CHUNK_LIMIT),
    ("state", layout.LIVE, layout.CLOSED),
    ("clock_source", min(layout.CLOCK_SOURCES), max(layout.CLOCK_SOURCES)),
    ("pid_namespace", *_COUNTER),
    ("pid", *_ID),
    ("uid", *_ID),
    ("ticks_per_second", 10**5, 10**11),
    ("anchor_ticks", *_COUNTER),
    ("anchor_unix_ns", *_TIME),
    ("created_unix_ns", *_TIME),
    ("window_ns", *_COUNTER),
    ("period_ns", *_COUNTER),
    ("sampling_prob_ppt", 0, 10**12),
    ("record_cost_ps", *_COUNTER),
    ("dropped_count", *_COUNTER),
    ("window_count", *_COUNTER),
    ("window_on_ns", *_COUNTER),
    ("window_wall_ns", *_COUNTER),
    ("folded_count", *_COUNTER),
    ("callback_error_count", *_COUNTER),
    ("overhead_budget_ppb", 0, 10**9),
    ("overhead_ppb", *_COUNTER),
    ("adaptation_count", *_COUNTER),
    ("cost_factor_ppm", 0, 10**9),
    ("uncounted_cost_ps", *_COUNTER),
    ("discarded_count", *_COUNTER),
    ("window_thread_ns", *_COUNTER),
    ("window_end_ticks", *_COUNTER),
    ("main_table", 0, layout.CHUNK_LIMIT),
)
_RANGED = itemgetter(*(_HEADER_NAMES.index(name) for name, _, _ in _HEADER_RANGES))
_LEAST, _MOST = (tuple(limits) for limits in list(zip(*_HEADER_RANGES, strict=True))[1:])


def read_segment(read: Reader, header: Header, dictionary: Dictionary) -> Segment:
    """Reads the whole segment; the same reader has read `header` before.

    `dictionary` is the one from the last read of this file, or a new one; the read continues it.
    Raises SegmentError.
    """
    segment = read_changed(read, header, dictionary, None)
    assert segment is not None
    return segment


def read_changed(
    read: Reader, header: Header, dictionary: Dictionary, last: Mark | None
) -> Segment | None:
    """The same. None if nothing was counted since the read that found `last`."""
    counted = read_counted(read, header.chunk_count, dictionary.heads)
    of_cells = of_kind(counted, layout.CELLS)
    of_metrics = of_kind(counted, layout.METRICS)
    raw_cells, raw_variances = items_of(of_cells), items_of(of_kind(counted, layout.VARIANCES))
    raw_off_cpu = items_of(of_kind(counted, layout.OFF_CPU_TIMES))
    sums = mark.counted_of(raw_cells, raw_variances + raw_off_cpu, items_of(of_metrics))
    if last is not None and last.is_settled and sums == last.counted:
        others = read_others(
            read, header.chunk_count, counted, dictionary.heads, (layout.EXEMPLARS,)
        )
        if last.is_of(sums, others):
            return None
    cells, table = _cells(raw_cells, of_cells)
    values = _metrics(of_metrics)
    stated = np.frombuffer(raw_variances, layout.VARIANCE)
    # Entries that cells refer to are older than the cells, so they are within this count.
    header = read_header(read)
    chunks = read_others(read, header.chunk_count, counted, dictionary.heads)
    if not all(map(_is_same_kind, chunks, counted)):
        if not dictionary.heads:
            raise SegmentError("corrupt", "a chunk changed its kind")
        dictionary.heads = []  # another file in the old one's place
        return read_changed(read, header, dictionary, None)
    heads = dictionary.heads = [chunk.head for chunk in chunks]
    _take_dictionary(read, heads, dictionary)
    keys = dictionary.keys
    if keys is None or not keys.fit(cells):
        keys, dictionary.lines = Keys.of(cells, dictionary), None
        dictionary.keys = keys
    lines, weights = _buckets(cells, keys, table, chunks, dictionary)
    rows = _summed(cells, keys, lines, weights)
    range_cost_ps = _range_cost_ps(header, cells["sample_count"], keys)
    measures = _measures(values, dictionary)
    raw_exemplars = items_of(of_kind(chunks, layout.EXEMPLARS))
    elapsed_ticks = _elapsed_ticks(header)
    return Segment(
        header,
        dictionary,
        rows,
        measures,
        exemplar_entries.whole(raw_exemplars),
        overhead_ns(header, range_cost_ps),
        possible_ticks(elapsed_ticks, cells, table, keys.row, rows.values),
        elapsed_ticks_of_all(elapsed_ticks, table),
        variance.checked(stated, dictionary),
        off_cpu.checked(np.frombuffer(raw_off_cpu, layout.OFF_CPU), dictionary),
        is_mainly_main(header.main_table, cells, table, keys.row, rows.values),
        all_used(heads),
        Mark(
            sums,
            heads,
            hash(raw_exemplars),
            range_cost_ps,
            mark.is_settled(last, sums, cells, weights),
        ),
    )


def used(read: Reader, header: Header) -> int:
    """A number that grows with the contents; while it stays, the reader's memory does not grow."""
    return all_used(read_heads(read, header.chunk_count))


def read_notes(read: Reader, header: Header) -> dict[str, str]:
    """Reads only the notes of the process. Raises SegmentError."""
    dictionary = Dictionary()
    _take_dictionary(read, read_heads(read, header.chunk_count), dictionary)
    return dictionary.notes


def _is_same_kind(now: Chunk, before: Chunk) -> bool:
    return now.head.kind == before.head.kind


def _take_dictionary(read: Reader, heads: Sequence[Head], dictionary: Dictionary) -> None:
    """Reads what has been added since the last read."""
    for index, head in enumerate(heads):
        if head.kind == layout.DICTIONARY:
            known = dictionary.read_bytes.get(index, 0)
            if head.used < known:
                raise SegmentError("corrupt", "the dictionary shrank")
            if head.used > known:
                dictionary.take(index, read_items(read, index, known, head.used - known))


def _cells(raw: bytes, chunks: Sequence[Chunk]) -> tuple[NDArray[Any], NDArray[np.uint32]]:
    """All cells that have counted something, and the table of each. `raw`: the chunks' items."""
    cells = np.frombuffer(raw, layout.CELL)
    heads = [chunk.head for chunk in chunks]
    table = np.repeat(
        np.array([head.table for head in heads], np.uint32), [head.used for head in heads]
    )
    counted = cells["sample_count"] > 0
    # The first cell of each table is of `other`, which has usually counted nothing. With one table
    # the rest is a slice, without a copy.
    first = int(counted.argmax()) if len(counted) else 0
    if counted[first:].all():
        return cells[first:], table[first:]
    return cells[counted], table[counted]


def _metrics(chunks: Sequence[Chunk]) -> dict[int, int]:
    """The metrics' values by number."""
    values: dict[int, int] = {}
    if sum(chunk.head.used for chunk in chunks) > _METRIC_LIMIT:
        raise SegmentError("too-much", "values of metrics")
    for chunk in chunks:
        values |= enumerate(np.frombuffer(chunk.items, "<u8").tolist(), chunk.head.first)
    return values


def _measures(values: dict[int, int], dictionary: Dictionary) -> tuple[Measure, ...]:
    if not dictionary.metrics.keys() >= values.keys():
        raise SegmentError("corrupt", "a value of an unknown metric")
    measures = []
    for number, value in values.items():
        name, label, kind = dictionary.metrics[number]
        if kind == layout.METRIC_COUNTER and value >= FILE_LIMIT:
            raise SegmentError("corrupt", "impossibly large counters")
        # Threads in the middle of an update can make a gauge appear negative.
        measures.append(Measure(name, label, kind, value if value < 1 << 63 else 0))
    return tuple(measures)


def _buckets(
    cells: NDArray[Any],
    keys: Keys,
    table: NDArray[np.uint32],
    chunks: Sequence[Chunk],
    dictionary: Dictionary,
) -> tuple[Lines, U64]:
    """The lines of the cells' histograms, and their (m, 8) weights."""
    chunks = of_kind(chunks, layout.LINES)
    heads = [chunk.head for chunk in chunks]
    numbers = cells["octave_line"].reshape(-1)
    lines = dictionary.lines
    if lines is None or not lines.fit(numbers, table, heads):
        lines = dictionary.lines = Lines.of(numbers, table, heads, keys)
    weights = np.frombuffer(items_of(chunks), "<u8").reshape(-1, layout.BUCKETS_PER_OCTAVE)
    of_lines: U64 = weights[lines.source]
    return lines, of_lines


def _summed(cells: NDArray[Any], keys: Keys, lines: Lines, weights: U64) -> Rows:
    words = cells.view("<u8").reshape(-1, layout.CELL.itemsize // 8)
    # Column by column in memory, since nearly all that follows computes with whole columns.
    values: U64 = words[:, _VALUES].copy(order="F")
    for counters in (values, weights):
        _check_measure(counters)
    if keys.row is not None:
        values = _sum_by(keys.row, values, len(keys.unique))
    if lines.group is not None:
        weights = _sum_by(lines.group, weights, len(lines.row_octave))
    return Rows(keys.unique, values, lines.row_octave, weights)


def _elapsed_ticks(header: Header) -> int:
    """From the segment's beginning to the last window, or to its end; 0 if no windows limit the
    estimates."""
    if not header.window_ns or not header.window_end_ticks:
        return 0
    return header.window_end_ticks - header.anchor_ticks


def _range_cost_ps(header: Header, samples: U64, keys: Keys) -> int:
    """Cost of recording all ranges, as measured at the start."""
    cost_ps = int(samples.sum()) * header.record_cost_ps
    extras = keys.extra_costs_ps
    if extras is not None:
        if float(samples.astype(np.float64) @ extras.astype(np.float64)) >= FILE_LIMIT:
            raise SegmentError("corrupt", "impossibly large costs")
        cost_ps += int(samples @ extras)
    return cost_ps


def overhead_ns(header: Header, range_cost_ps: int) -> int:
    """As of Segment; `range_cost_ps`: of its mark. Raises SegmentError if it is impossible."""
    cost_ps = range_cost_ps + header.uncounted_cost_ps
    if header.cost_factor_ppm:
        cost_ps = cost_ps * header.cost_factor_ppm // 10**6
    cost_ps += 1000 * header.window_thread_ns
    if cost_ps >= FILE_LIMIT:
        raise SegmentError("corrupt", "impossibly large costs")
    return cost_ps // 1000


def _check_measure(counters: U64) -> None:
    """Raises SegmentError if a column's sum exceeds the limit."""
    largest = int(counters.max(initial=0))
    if largest * len(counters) >= FILE_LIMIT and (
        (counters.sum(axis=0, dtype=np.float64) >= FILE_LIMIT).any()
    ):
        raise SegmentError("corrupt", "impossibly large counters")


def _sum_by(group: NDArray[np.intp], values: U64, count: int) -> U64:
    """The rows of `values` summed exactly by group; each group below `count` has a row."""
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(count))
    summed: U64 = np.add.reduceat(values[order], starts, axis=0) if count else values
    return summed
