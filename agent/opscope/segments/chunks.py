"""The chunks of a segment: read their heads, and the items that they contain.

A chunk's head is read with as many of its items as it had at the last read, by one call; what has
been added since follows by another one. Order between the two is kept: items that the head counts
are read with it or after it.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from opscope.segments import layout
from opscope.segments.segment_file import Reader, SegmentError


class Head(NamedTuple):
    """The start of a chunk, validated."""

    kind: int
    table: int
    first: int
    used: int


class Chunk(NamedTuple):
    head: Head
    items: bytes | memoryview
    """The bytes of all used items; empty if they were not asked for."""


COUNTED = frozenset((layout.CELLS, layout.METRICS, layout.VARIANCES, layout.OFF_CPU_TIMES))
"""The kinds whose items are read before the names and lines that they refer to."""
AFTER = frozenset((layout.LINES, layout.EXEMPLARS))
"""The kinds whose items are read afterwards, as a whole."""
_NO_KINDS: frozenset[int] = frozenset()

_ITEM_BYTES = {
    layout.CELLS: layout.CELL.itemsize,
    layout.LINES: layout.LINE.itemsize,
    layout.METRICS: layout.METRIC_BYTES,
    layout.EXEMPLARS: layout.EXEMPLAR.itemsize,
    layout.VARIANCES: layout.VARIANCE.itemsize,
    layout.OFF_CPU_TIMES: layout.OFF_CPU.itemsize,
}
_MOST = {
    layout.DICTIONARY: layout.ROOM_BYTES,
    **{kind: layout.ROOM_BYTES // size for kind, size in _ITEM_BYTES.items()},
}
"""The largest `used` by kind; chunks of unknown kinds may have any."""
_ANY = (1 << 32) - 1
_HEAD = struct.Struct("<4I")


def read_heads(read: Reader, count: int) -> list[Head]:
    """The first `count` heads. Raises SegmentError, as do the functions below."""
    return [_read(read, index, _NO_KINDS, None).head for index in range(count)]


def read_counted(read: Reader, count: int, known: Sequence[Head]) -> list[Chunk]:
    """The first `count` chunks, with the items of kinds COUNTED.

    `known`: the heads at the last read. A chunk's kind never changes; chunks of other kinds come
    from there, without items.
    """
    chunks = [
        _read(read, index, COUNTED, head) if head.kind in COUNTED else Chunk(head, b"")
        for index, head in enumerate(known[:count])
    ]
    chunks += [_read(read, index, COUNTED, None) for index in range(len(chunks), count)]
    return chunks


def read_others(
    read: Reader,
    count: int,
    counted: Sequence[Chunk],
    known: Sequence[Head],
    kinds: Collection[int] = AFTER,
) -> list[Chunk]:
    """The first `count` chunks: those of `counted` that are COUNTED, and all others anew, with the
    items of `kinds`. `known`: as above."""
    chunks = [
        chunk
        if chunk.head.kind in COUNTED
        else _read(read, index, kinds, known[index] if index < len(known) else None)
        for index, chunk in enumerate(counted[:count])
    ]
    chunks += [_read(read, index, kinds, None) for index in range(len(chunks), count)]
    return chunks


def _read(read: Reader, index: int, kinds: Collection[int], known: Head | None) -> Chunk:
    """`kinds`: those whose items are wanted; `known`: the head at the last read."""
    start = layout.HEADER_BYTES + index * layout.CHUNK_BYTES
    size = _HEAD.size
    if known is not None and known.kind in kinds:
        size = layout.CHUNK_HEADER_BYTES + known.used * _ITEM_BYTES[known.kind]
    raw = read(start, size)
    if len(raw) < _HEAD.size:
        raise SegmentError("truncated", f"chunk {index} is missing")
    numbers = _HEAD.unpack_from(raw)
    if known is not None and numbers == known and len(raw) == size:
        return Chunk(known, memoryview(raw)[layout.CHUNK_HEADER_BYTES :])
    head = Head._make(numbers)
    if head.used > _MOST.get(head.kind, _ANY):
        raise SegmentError("corrupt", "a chunk uses more bytes than it has")
    if head.kind not in kinds:
        return Chunk(head, b"")
    size = head.used * _ITEM_BYTES[head.kind]
    items = memoryview(raw)[layout.CHUNK_HEADER_BYTES : layout.CHUNK_HEADER_BYTES + size]
    if len(items) < size:
        items = memoryview(bytes(items) + read_items(read, index, len(items), size - len(items)))
    return Chunk(head, items)


def of_kind(chunks: Iterable[Chunk], kind: int) -> list[Chunk]:
    return [chunk for chunk in chunks if chunk.head.kind == kind]


def items_of(chunks: Iterable[Chunk]) -> bytes:
    """The items of all these chunks."""
    return b"".join([chunk.items for chunk in chunks])


def all_used(heads: Sequence[Head]) -> int:
    """A number that grows with the chunks and their contents."""
    return len(heads) + sum([head.used for head in heads])


def read_items(read: Reader, index: int, offset: int, size: int) -> bytes:
    """`size` bytes from `offset` on of what chunk `index` contains. Raises SegmentError."""
    start = layout.HEADER_BYTES + index * layout.CHUNK_BYTES + layout.CHUNK_HEADER_BYTES
    raw = read(start + offset, size)
    if len(raw) != size:
        raise SegmentError("truncated", f"chunk {index}")
    return raw
