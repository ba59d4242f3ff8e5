"""native/TRACE.md gives every field of the layout, where the header file declares it."""

import re
from pathlib import Path

from opscope._native import ffi, lib
from opscope.timeline import layout

DOCUMENT = (Path(__file__).parents[2] / "native" / "TRACE.md").read_text()
STRUCTS = ("opscope_trace_header", "opscope_trace_block", "opscope_trace_record")


def test_the_tables_are_those_of_the_header_file() -> None:
    rows = re.findall(r"^\| (\d+) \| (\d+) \| `(\w+)` \|", DOCUMENT, re.MULTILINE)
    declared = [
        (str(field.offset), str(ffi.sizeof(field.type)), name)
        for struct in STRUCTS
        for name, field in ffi.typeof(struct).fields
    ]
    assert rows == declared


def test_the_kinds_are_those_of_the_header_file() -> None:
    rows = re.findall(r"^\| (\d) \| (?:an? )?([a-z]+) \|", DOCUMENT, re.MULTILINE)
    kinds = ffi.typeof("enum opscope_trace_kind").elements
    declared = [
        (str(value), name.removeprefix("OPSCOPE_TRACE_").lower()) for value, name in kinds.items()
    ]
    assert rows == sorted(declared)


def test_the_sizes_are_those_of_the_header_file() -> None:
    for size in (layout.HEADER_BYTES, layout.BLOCK_UNIT, layout.BLOCK_LIMIT):
        assert f"{size:,} bytes" in DOCUMENT or f"{size:,}" in DOCUMENT
    assert f"| `record_bytes` | {ffi.sizeof('opscope_trace_record')} |" in DOCUMENT
    assert lib.OPSCOPE_TRACE_VERSION == layout.VERSION == 1
