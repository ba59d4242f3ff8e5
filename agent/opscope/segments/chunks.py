"""The chunks of a segment: read their headers, and the items that they contain."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from opscope.segments import layout
from opscope.segments.segment_file import Reader, SegmentError

NO_HEADS: NDArray[Any] = np.zeros(0, layout.CHUNK)
# Whether what the chunk contains is read before the names and lines; by its kind, as in _ROOM.
_COUNTED = layout.CELLS, layout.METRICS, layout.VARIANCES
IS_COUNTED = np.array([kind in _COUNTED for kind in range(layout.VARIANCES + 2)])
# The most bytes that a chunk can use, by its kind; the last entry is for all unknown kinds.
_ROOM = np.array([0xFFFFFFFF] * (layout.VARIANCES + 2))
_ROOM[layout.DICTIONARY] = layout.ROOM_BYTES
_ROOM[layout.CELLS] = layout.CELLS_PER_CHUNK
_ROOM[layout.LINES] = layout.LINES_PER_CHUNK
_ROOM[layout.METRICS] = layout.METRICS_PER_CHUNK
_ROOM[layout.EXEMPLARS] = layout.EXEMPLARS_PER_CHUNK
_ROOM[layout.VARIANCES] = layout.VARIANCES_PER_CHUNK


def read_heads(
    read: Reader,
    count: int,
    earlier: NDArray[Any] = NO_HEADS,
    kept: NDArray[np.bool_] = IS_COUNTED,
) -> NDArray[Any]:
    """The first `count` chunk headers. Those whose kind is `kept` are as in `earlier`, if it has
    them: a chunk's kind never changes, and a caller needs a new `used` of the others only."""
    size = layout.CHUNK.itemsize
    known = earlier.tobytes()
    is_known = kept[np.minimum(earlier["kind"], len(kept) - 1)].tolist() + [False] * count
    raw = b"".join(
        [
            known[index * size : (index + 1) * size]
            if is_known[index]
            else read(layout.HEADER_BYTES + index * layout.CHUNK_BYTES, size)
            for index in range(count)
        ]
    )
    if len(raw) != count * size:
        raise SegmentError("truncated", f"some of {count} chunks are missing")
    heads = np.frombuffer(raw, layout.CHUNK)
    if (heads["used"] > _ROOM[np.minimum(heads["kind"], len(_ROOM) - 1)]).any():
        raise SegmentError("corrupt", "a chunk uses more bytes than it has")
    return heads


def all_used(heads: NDArray[Any]) -> int:
    """The sum of `used` of all chunks."""
    return int(heads["used"].sum(dtype=np.uint64))


def of_kind(heads: NDArray[Any], kind: int) -> NDArray[np.intp]:
    """The indices of the chunks of this kind."""
    found: NDArray[np.intp] = (heads["kind"] == kind).nonzero()[0]
    return found


def read_items(read: Reader, index: int, offset: int, size: int) -> bytes:
    """`size` bytes from `offset` on of what chunk `index` contains. Raises SegmentError."""
    start = layout.HEADER_BYTES + index * layout.CHUNK_BYTES + layout.CHUNK_HEADER_BYTES
    raw = read(start + offset, size)
    if len(raw) != size:
        raise SegmentError("truncated", f"chunk {index}")
    return raw
