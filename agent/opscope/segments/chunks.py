"""The chunks of a segment: read their heads, and the items that they contain.

A chunk's head is read with as many of its items as it had at the last read, by one call; what has
been added since follows by another one. Order between the two is kept: items that the head counts
are read with it or after it.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, NamedTuple

from opscope.segments import layout
from opscope.segments.segment_file import Reader, SegmentError


class Head(NamedTuple):
    """The start of a chunk, validated."""

    kind: int
    table: int
    first: int
    used: int


if TYPE_CHECKING:
    Packed = array[int]

NO_HEADS: Packed = array("I")


class Chunk(NamedTuple):
    head: Head
    items: bytes | memoryview
    """The bytes of all used items; empty if they were not asked for."""


COUNTED = frozenset((layout.CELLS, layout.METRICS, layout.VARIANCES))
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
    return [_read(read, index, _NO_KINDS).head for index in range(count)]


def packed(heads: Iterable[Head]) -> Packed:
    """The heads in little memory, to be kept between reads."""
    return array("I", chain.from_iterable(heads))


def read_counted(read: Reader, count: int, known: Packed) -> list[Chunk]:
    """The first `count` chunks, with the items of kinds COUNTED.

    `known`: the heads at the last read. A chunk's kind never changes; chunks of other kinds come
    from there, without items.
    """
    return [
        Chunk(Head._make(known[4 * index : 4 * index + 4]), b"")
        if kind is not None and kind not in COUNTED
        else _read(read, index, COUNTED, kind, used)
        for index, (kind, used) in enumerate(_kinds(known, count))
    ]


def read_others(
    read: Reader,
    count: int,
    counted: Sequence[Chunk],
    known: Packed,
    kinds: Collection[int] = AFTER,
) -> list[Chunk]:
    """The first `count` chunks: those of `counted` that are COUNTED, and all others anew, with the
    items of `kinds`."""
    is_read = [chunk.head.kind in COUNTED for chunk in counted]
    is_read += repeat(False, count - len(is_read))
    return [
        counted[index] if is_read[index] else _read(read, index, kinds, kind, used)
        for index, (kind, used) in enumerate(_kinds(known, count))
    ]


def _kinds(known: Packed, count: int) -> Iterator[tuple[int | None, int]]:
    """The kind of each of `count` chunks and how much of it was used; None: unknown."""
    return islice(chain(zip(known[::4], known[3::4], strict=True), repeat((None, 0))), count)


def _read(
    read: Reader, index: int, kinds: Collection[int], known: int | None = None, used: int = 0
) -> Chunk:
    """`kinds`: those whose items are wanted; `known`: the chunk's kind, if it was read before, and
    `used`, what it had then."""
    likely = used * _ITEM_BYTES[known] if known is not None and known in kinds else 0
    start = layout.HEADER_BYTES + index * layout.CHUNK_BYTES
    raw = read(start, layout.CHUNK_HEADER_BYTES + likely if likely else _HEAD.size)
    if len(raw) < _HEAD.size:
        raise SegmentError("truncated", f"chunk {index} is missing")
    head = Head._make(_HEAD.unpack_from(raw))
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


def all_used(heads: Iterable[Head]) -> int:
    """The sum of `used` of all chunks."""
    return sum([head.used for head in heads])


def read_items(read: Reader, index: int, offset: int, size: int) -> bytes:
    """`size` bytes from `offset` on of what chunk `index` contains. Raises SegmentError."""
    start = layout.HEADER_BYTES + index * layout.CHUNK_BYTES + layout.CHUNK_HEADER_BYTES
    raw = read(start + offset, size)
    if len(raw) != size:
        raise SegmentError("truncated", f"chunk {index}")
    return raw
