"""Parse one trace: bytes in, threads and their records out. native/TRACE.md defines the format.

The bytes come from another process, which may still be writing, may have been killed while it
wrote, or may be hostile: every number is checked before use, and an invalid one raises TraceError.
nesting.py determines the nesting, two_reads.py says why all is read twice.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from opscope.errors import OpscopeError
from opscope.printable import printable
from opscope.timeline import layout
from opscope.timeline.two_reads import Read, read_twice, with_times

_TEXT_LIMIT = 256
_TICKS_PER_SECOND = (10**5, 10**11)
_TICKS_LIMIT = 1 << 63
_OP_LIMIT = 1 << 17
_RANK_LIMIT = 16


class TraceError(OpscopeError):
    """An unreadable trace; the text has the reason."""


class Header(NamedTuple):
    """The header's fields, validated."""

    state: int
    flags: int
    serial: int
    boot_id: bytes
    pid_namespace: int
    pid: int
    process_start: int
    uid: int
    clock_source: int
    ticks_per_second: int
    anchor_ticks: int
    anchor_unix_ns: int
    end_anchor_ticks: int
    """0 if the trace has not ended, or if its process ended first."""
    end_anchor_unix_ns: int
    duration_ns: int
    limit_bytes: int
    claimed_bytes: int
    lost_count: int
    record_cost_ps: int
    inside_cost_ps: int


class Block(NamedTuple):
    """A part of the file, written by one thread."""

    offset: int
    size: int
    thread_id: int
    system_id: int
    lost_count: int
    taken_ticks: int
    ready_ticks: int
    thread_name: str


class Name(NamedTuple):
    name: str
    overload: str
    scope: int


Labels = tuple[tuple[str, str], ...]
Shapes = tuple[tuple[int, ...] | None, ...]


class Record(NamedTuple):
    """A range, a task, a fork of a task, or an allocation."""

    kind: int
    start: int
    end: int
    """Ticks; 0: open when the trace ended, or never closed."""
    op: int
    phase: int
    flags: int
    number: int
    """Of a range: its sequence number or -1; of a fork and its task: a common number; of an
    allocation: its bytes."""
    forward_thread_id: int
    labels: Labels
    shapes: Shapes | None


class Thread(NamedTuple):
    thread_id: int
    system_id: int
    name: str
    blocks: tuple[Block, ...]
    """The blocks in the order in which they were filled."""

    @property
    def lost_count(self) -> int:
        return sum(block.lost_count for block in self.blocks)


def read_header(read: Read) -> Header:
    """Reads the header alone. Raises TraceError."""
    first, raw = read_twice(read, 0, layout.HEADER.size)
    if len(raw) < layout.HEADER.size:
        raise TraceError(f"truncated: {len(raw)} bytes")
    fields = dict(zip(layout.HEADER_FIELDS, layout.HEADER.unpack(raw), strict=True))
    fields["state"] = layout.HEADER.unpack(first)[layout.HEADER_FIELDS.index("state")]
    if fields["state"] != layout.CLOSED:
        fields["end_anchor_ticks"] = fields["end_anchor_unix_ns"] = 0  # perhaps only one is there
    if fields["magic"] != b"OPTRACE\0":
        raise TraceError("not a trace")
    if fields["version"] != layout.VERSION:
        raise TraceError(f"version {fields['version']}, not {layout.VERSION}")
    checks = {
        "state": fields["state"] in (layout.LIVE, layout.CLOSED),
        "header_bytes": fields["header_bytes"] == layout.HEADER_BYTES,
        "block_unit": fields["block_unit"] == layout.BLOCK_UNIT,
        "record_bytes": fields["record_bytes"] == layout.RECORD.size,
        "clock_source": fields["clock_source"] in layout.CLOCK_SOURCES,
        "ticks_per_second": _TICKS_PER_SECOND[0]
        <= fields["ticks_per_second"]
        <= _TICKS_PER_SECOND[1],
        "anchor_ticks": fields["anchor_ticks"] < _TICKS_LIMIT,
        "anchor_unix_ns": fields["anchor_unix_ns"] < _TICKS_LIMIT,
        "end_anchor_ticks": fields["end_anchor_ticks"] < _TICKS_LIMIT,
        "end_anchor_unix_ns": fields["end_anchor_unix_ns"] < _TICKS_LIMIT,
        "limit_bytes": fields["limit_bytes"] <= layout.MOST_BYTES,
        "record_cost_ps": fields["inside_cost_ps"] <= fields["record_cost_ps"] < _TICKS_LIMIT,
    }
    for name, holds in checks.items():
        if not holds:
            raise TraceError(f"damaged: {name} of the header is {fields[name]}")
    return Header(**{name: fields[name] for name in Header._fields})


class Trace:
    """One process's trace. `threads` in order of their first block, `names` by operator id.

    Raises TraceError if the file is no trace or is damaged; so does `records`.
    """

    def __init__(self, read: Read) -> None:
        self._read = read
        self.header = read_header(read)
        blocks = list(self._blocks())
        threads: dict[int, list[Block]] = {}
        for block in blocks:
            threads.setdefault(block.thread_id, []).append(block)
        self.threads = tuple(
            Thread(thread_id, own[-1].system_id, own[-1].thread_name, tuple(own))
            for thread_id, own in threads.items()
        )
        self.names: dict[int, Name] = {}
        for block in blocks:
            for op, name in self._names(block):
                self.names.setdefault(op, name)

    @property
    def lost_count(self) -> int:
        """Ranges, tasks and allocations that found no room."""
        return self.header.lost_count + sum(thread.lost_count for thread in self.threads)

    def name(self, op: int) -> str:
        """The operator's name."""
        known = self.names.get(op)
        return known.name if known is not None else f"operator {op}"

    def _blocks(self) -> Iterator[Block]:
        offset = layout.HEADER_BYTES
        end = offset + min(self.header.claimed_bytes, layout.MOST_BYTES)
        while offset < end:
            first, raw = read_twice(self._read, offset, layout.BLOCK.size)
            if len(raw) < layout.BLOCK.size:
                return
            _, thread_id, system_id, lost, taken, ready, name = layout.BLOCK.unpack(raw)
            (size,) = _WORD.unpack_from(first)
            if size == 0:
                offset += layout.BLOCK_UNIT  # reserved, but not or not yet written
                continue
            if size % layout.BLOCK_UNIT or size > layout.BLOCK_LIMIT:
                raise TraceError(f"damaged: a block of {size} bytes at {offset}")
            if not 0 < thread_id < _TICKS_LIMIT or system_id >= 1 << 32 or lost >= _TICKS_LIMIT:
                raise TraceError(f"damaged: the block at {offset}")
            if taken > ready or ready >= _TICKS_LIMIT:
                raise TraceError(f"damaged: the times of the block at {offset}")
            text = _printable(name.partition(b"\0")[0].decode(errors="replace"))
            yield Block(offset, size, thread_id, system_id, lost, taken, ready, text)
            offset += size

    def _raw_records(self, block: Block) -> Iterator[tuple[tuple[int, ...], bytes, int]]:
        """Fields of each record, the block's bytes, and the offset of the record's words."""
        records = block.offset + layout.BLOCK.size, block.size - layout.BLOCK.size
        first, raw = read_twice(self._read, *records)
        if first != raw:
            raw = with_times(raw, first)
        size, unpack, word = layout.RECORD.size, layout.RECORD.unpack_from, layout.WORD_BYTES
        at, end = 0, len(raw)
        while at + size <= end:
            fields = unpack(raw, at)
            if fields[0] == 0:
                return
            at += size
            words_end = at + word * fields[6]
            if words_end > end:
                raise TraceError(f"damaged: a record extends beyond the block at {block.offset}")
            yield fields, raw, at
            at = words_end

    def _names(self, block: Block) -> Iterator[tuple[int, Name]]:
        """The operators named in the block."""
        for fields, raw, at in self._raw_records(block):
            if fields[3] == layout.NAME:
                strings = _strings(raw[at : at + layout.WORD_BYTES * fields[6]])
                name, overload = (*strings, "", "")[:2]
                yield fields[2], Name(name, overload, fields[5])

    def records(self, thread: Thread) -> Iterator[Record | Block]:
        """The thread's records, in order of their starts; each block precedes its records."""
        labels: Labels = ()
        phases = len(layout.PHASES)
        for block in thread.blocks:
            yield block
            for fields, raw, at in self._raw_records(block):
                start, end, op, kind, phase, flags, more = fields
                if kind == layout.LABELS:
                    labels = _labels(raw[at : at + layout.WORD_BYTES * more])
                if kind not in _KINDS:
                    continue
                if (
                    start >= _TICKS_LIMIT
                    or end >= _TICKS_LIMIT
                    or phase >= phases
                    or op >= _OP_LIMIT
                ):
                    raise TraceError(f"damaged: a record of the block at {block.offset}")
                if end and end < start:
                    end = start  # another processor's counter is slightly behind
                number, forward, shapes = -1, 0, None
                if kind != layout.RANGE:
                    number = _WORD.unpack_from(raw, at)[0] if more else 0
                elif more:
                    number, forward, shapes = _numbers(raw, at, more)
                yield Record(kind, start, end, op, phase, flags, number, forward, labels, shapes)


_KINDS = (layout.RANGE, layout.FORK, layout.TASK, layout.ALLOCATION)
_WORD = struct.Struct("<Q")
_NUMBERS = struct.Struct("<qQ")


def _numbers(raw: bytes, at: int, more: int) -> tuple[int, int, Shapes | None]:
    """Sequence number, forward thread id and shapes of a range."""
    if more < 2:
        raise TraceError("damaged: an incomplete range")
    number, forward = _NUMBERS.unpack_from(raw, at)
    shapes = (
        _shapes(struct.unpack_from(f"<{more - 2}q", raw, at + _NUMBERS.size)) if more > 2 else None
    )
    return number, forward, shapes


def _labels(text: bytes) -> Labels:
    strings = _strings(text)
    pairs = zip(strings[::2], strings[1::2], strict=False)
    return tuple(sorted((key, value) for key, value in pairs if key))  # an empty key is padding


def _strings(text: bytes) -> list[str]:
    """The NUL-terminated strings, followed by empty ones for padding."""
    strings = text.decode(errors="replace").split("\0")
    if strings.pop():
        raise TraceError("damaged: an unterminated text")
    return [_printable(string) for string in strings]


def _printable(text: str) -> str:
    return printable(text[:_TEXT_LIMIT])


def _shapes(words: tuple[int, ...]) -> Shapes:
    count = words[0]
    if not 0 <= count < len(words):
        raise TraceError(f"damaged: {count} words of shapes in {len(words)}")
    shapes: list[tuple[int, ...] | None] = []
    index = 1
    while index <= count:
        rank = words[index]
        index += 1
        if rank < 0:
            shapes.append(None)
            continue
        if rank > _RANK_LIMIT or index + rank > count + 1:
            raise TraceError(f"damaged: a shape of rank {rank}")
        shapes.append(words[index : index + rank])
        index += rank
    return tuple(shapes)
