"""The segment's layout as NumPy sees it, derived from the declarations in opscope/segment.h.

Names, offsets and sizes come from the cffi module. The parts of a cell's key, which C declares only
in a comment of that header, are repeated below.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opscope._native import ffi, lib

U64 = NDArray[np.uint64]


def dtype_of(name: str) -> np.dtype[Any]:
    """The NumPy dtype of a declared C struct: same names, offsets and size, little-endian."""
    return _dtype(ffi.typeof(name))


def struct_of(dtype: np.dtype[Any]) -> struct.Struct:
    """The dtype for one single record, which this reads much faster; byte arrays become bytes."""
    fields: Any = dtype.fields  # in order
    codes, end = ["<"], 0
    for field, offset in fields.values():
        is_bytes = field.kind == "S" or field.base.itemsize < field.itemsize
        codes.append("x" * (offset - end))
        codes.append(f"{field.itemsize}s" if is_bytes else _CODES[field.itemsize])
        end = offset + field.itemsize
    return struct.Struct("".join(codes))


_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}


def _dtype(ctype: Any) -> np.dtype[Any]:
    if ctype.kind == "struct":
        fields = ctype.fields
        return np.dtype(
            {
                "names": [name for name, _ in fields],
                "formats": [_dtype(field.type) for _, field in fields],
                "offsets": [field.offset for _, field in fields],
                "itemsize": ffi.sizeof(ctype),
            }
        )
    if ctype.kind == "array":
        if ctype.item.cname == "char":
            return np.dtype((np.bytes_, ctype.length))
        return np.dtype((_dtype(ctype.item), (ctype.length,)))
    return np.dtype("<f8" if ctype.cname == "double" else f"<u{ffi.sizeof(ctype)}")


HEADER = dtype_of("opscope_segment_header")
CONTROL = dtype_of("opscope_control")
ANSWER = dtype_of("opscope_control_answer")
CHUNK = dtype_of("opscope_chunk")
ENTRY = dtype_of("opscope_entry")
CELL = dtype_of("opscope_cell")
LINE = dtype_of("opscope_line")
EXEMPLAR = dtype_of("opscope_exemplar")
VARIANCE = dtype_of("opscope_variance")
OFF_CPU = dtype_of("opscope_off_cpu")

VERSION: int = lib.OPSCOPE_SEGMENT_VERSION
HEADER_BYTES: int = lib.OPSCOPE_SEGMENT_HEADER_BYTES
CONTROL_OFFSET: int = lib.OPSCOPE_SEGMENT_CONTROL_OFFSET
ANSWER_OFFSET: int = lib.OPSCOPE_SEGMENT_ANSWER_OFFSET
CHUNK_BYTES: int = lib.OPSCOPE_SEGMENT_CHUNK_BYTES
CHUNK_LIMIT: int = lib.OPSCOPE_SEGMENT_CHUNK_LIMIT
CHUNK_HEADER_BYTES: int = lib.OPSCOPE_SEGMENT_CHUNK_HEADER_BYTES
OCTAVES: int = lib.OPSCOPE_SEGMENT_OCTAVES
BUCKETS_PER_OCTAVE: int = lib.OPSCOPE_SEGMENT_BUCKETS_PER_OCTAVE
SECOND_LOG2: int = lib.OPSCOPE_SEGMENT_SECOND_LOG2
WEIGHT_ONE = 1 << int(lib.OPSCOPE_SEGMENT_WEIGHT_LOG2)

LIVE: int = lib.OPSCOPE_SEGMENT_LIVE
CLOSED: int = lib.OPSCOPE_SEGMENT_CLOSED
LIVENESS_LOCK: int = lib.OPSCOPE_LIVENESS_LOCK
CLOCK_SOURCES: tuple[int, ...] = (
    lib.OPSCOPE_CLOCK_TSC,
    lib.OPSCOPE_CLOCK_CNTVCT,
    lib.OPSCOPE_CLOCK_MONOTONIC,
)

DICTIONARY: int = lib.OPSCOPE_CHUNK_DICTIONARY
CELLS: int = lib.OPSCOPE_CHUNK_CELLS
LINES: int = lib.OPSCOPE_CHUNK_LINES
METRICS: int = lib.OPSCOPE_CHUNK_METRICS
EXEMPLARS: int = lib.OPSCOPE_CHUNK_EXEMPLARS
VARIANCES: int = lib.OPSCOPE_CHUNK_VARIANCES
OFF_CPU_TIMES: int = lib.OPSCOPE_CHUNK_OFF_CPU

ENTRY_OP: int = lib.OPSCOPE_ENTRY_OP
ENTRY_LABELS: int = lib.OPSCOPE_ENTRY_LABELS
ENTRY_USAGE: int = lib.OPSCOPE_ENTRY_USAGE
ENTRY_NOTE: int = lib.OPSCOPE_ENTRY_NOTE
ENTRY_METRIC: int = lib.OPSCOPE_ENTRY_METRIC

METRIC_COUNTER: int = lib.OPSCOPE_METRIC_COUNTER
METRIC_GAUGE: int = lib.OPSCOPE_METRIC_GAUGE
METRIC_PEAK: int = lib.OPSCOPE_METRIC_PEAK

ROOM_BYTES = CHUNK_BYTES - CHUNK_HEADER_BYTES
CELLS_PER_CHUNK = ROOM_BYTES // CELL.itemsize
LINES_PER_CHUNK = ROOM_BYTES // LINE.itemsize
METRIC_BYTES = 8
METRICS_PER_CHUNK = ROOM_BYTES // METRIC_BYTES
EXEMPLARS_PER_CHUNK = ROOM_BYTES // EXEMPLAR.itemsize
VARIANCES_PER_CHUNK = ROOM_BYTES // VARIANCE.itemsize
OFF_CPU_PER_CHUNK = ROOM_BYTES // OFF_CPU.itemsize
# Copies of macros in opscope/segment.h, which the cffi module lacks.
EXEMPLAR_SEED, EXEMPLAR_FACTOR = 0x6F7073636F706521, 0x9E3779B97F4A7C15

PHASES = tuple(
    name.removeprefix("OPSCOPE_").lower()
    for value, name in sorted(ffi.typeof("opscope_phase").elements.items())
    if value != lib.OPSCOPE_PHASE_COUNT
)

# opscope_cell.key: operator id | phase << 32 | label set << 40
KEY_PHASE_SHIFT, KEY_LABELS_SHIFT = 32, 40
KEY_OP_MASK, KEY_PHASE_MASK = 0xFFFFFFFF, 0xFF

# opscope_op.id in opscope/record.h; a table has a cell of it before the operator first runs.
OTHER_OP_ID, OTHER_OP = 1, "other"
