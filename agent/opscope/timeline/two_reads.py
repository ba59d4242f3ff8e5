"""Read a trace that is still being written, in the order in which its writer publishes.

The writer stores last what publishes the rest: a header's state, a block's size, a record's start,
and the end of a record's range. A processor may load the words of one read in any order (aarch64
does), and so see such a word without what it publishes. Take that word from a first read, and all
else from a second one.
"""

from collections.abc import Callable

from opscope.timeline import layout

# read(offset, size): at most `size` bytes from `offset` on; fewer at the end of the file.
Read = Callable[[int, int], bytes]


def read_twice(read: Read, offset: int, size: int) -> tuple[bytes, bytes]:
    """That part of the file, and the same again; both of one length.

    All loads of the second read come after those of the first. Between the two, the interpreter
    gives up its lock and takes it again, a release and then an acquire; and for each page the
    kernel takes a reference by an operation that orders all loads (Linux's atomic_add_unless).
    """
    first = read(offset, size)
    second = read(offset, size)
    both = min(len(first), len(second))
    return first[:both], second[:both]


def with_times(raw: bytes, first: bytes) -> bytes:
    """The records of the second read, with the starts and ends of the first, up to its last one."""
    merged = bytearray(raw)
    times, size = 2 * layout.WORD_BYTES, layout.RECORD.size
    at = 0
    while at + size <= len(raw):
        merged[at : at + times] = first[at : at + times]
        if not any(first[at : at + layout.WORD_BYTES]):
            break
        at += size + layout.WORD_BYTES * layout.RECORD.unpack_from(raw, at)[6]
    return bytes(merged)
