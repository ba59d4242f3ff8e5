"""The trace's layout for `struct`, derived from the declarations in opscope/trace.h.

Names, offsets and sizes come from the cffi module.
"""

from __future__ import annotations

import struct
from typing import Any

from opscope._native import ffi, lib

_CODES = {
    ("uint8_t", 1): "B",
    ("uint32_t", 4): "I",
    ("uint64_t", 8): "Q",
}
WORD_BYTES = 8


def _struct_of(name: str) -> tuple[struct.Struct, tuple[str, ...]]:
    """The `struct` of a declared C struct, and the names of its fields in the same order."""
    codes, names, end = "<", [], 0
    for field_name, field in ffi.typeof(name).fields:
        code = _code(field.type)
        codes += "x" * (field.offset - end) + code
        end = field.offset + struct.calcsize("<" + code)
        names.append(field_name)
    codes += "x" * (ffi.sizeof(name) - end)
    return struct.Struct(codes), tuple(names)


def _code(ctype: Any) -> str:
    if ctype.kind == "array":
        return f"{ffi.sizeof(ctype)}s"
    return _CODES[ctype.cname, ffi.sizeof(ctype)]


HEADER, HEADER_FIELDS = _struct_of("opscope_trace_header")
BLOCK, BLOCK_FIELDS = _struct_of("opscope_trace_block")
RECORD, RECORD_FIELDS = _struct_of("opscope_trace_record")

VERSION: int = lib.OPSCOPE_TRACE_VERSION
HEADER_BYTES: int = lib.OPSCOPE_TRACE_HEADER_BYTES
BLOCK_UNIT: int = lib.OPSCOPE_TRACE_BLOCK_UNIT
BLOCK_LIMIT: int = lib.OPSCOPE_TRACE_BLOCK_LIMIT
LEAST_BYTES: int = lib.OPSCOPE_TRACE_LEAST_BYTES
MOST_BYTES: int = lib.OPSCOPE_TRACE_MOST_BYTES
DEFAULT_BYTES: int = lib.OPSCOPE_TRACE_DEFAULT_BYTES

LIVE: int = lib.OPSCOPE_TRACE_LIVE
CLOSED: int = lib.OPSCOPE_TRACE_CLOSED
SHAPES: int = lib.OPSCOPE_TRACE_SHAPES

RANGE: int = lib.OPSCOPE_TRACE_RANGE
NAME: int = lib.OPSCOPE_TRACE_NAME
LABELS: int = lib.OPSCOPE_TRACE_LABELS
FORK: int = lib.OPSCOPE_TRACE_FORK
TASK: int = lib.OPSCOPE_TRACE_TASK
ALLOCATION: int = lib.OPSCOPE_TRACE_ALLOCATION

FAILED: int = lib.OPSCOPE_TRACE_FAILED
ASYNC: int = lib.OPSCOPE_TRACE_ASYNC
BACKWARD: int = lib.OPSCOPE_TRACE_BACKWARD
CUT: int = lib.OPSCOPE_TRACE_CUT
LOST: int = lib.OPSCOPE_TRACE_LOST

CLOCK_SOURCES: tuple[int, ...] = (
    lib.OPSCOPE_CLOCK_TSC,
    lib.OPSCOPE_CLOCK_CNTVCT,
    lib.OPSCOPE_CLOCK_MONOTONIC,
)

PHASES = tuple(
    name.removeprefix("OPSCOPE_").lower()
    for value, name in sorted(ffi.typeof("opscope_phase").elements.items())
    if value != lib.OPSCOPE_PHASE_COUNT
)
# Phases from here on are strong: ranges within such a range have its phase too.
FIRST_STRONG_PHASE: int = lib.OPSCOPE_BACKWARD
