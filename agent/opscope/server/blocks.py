"""The body of a page that comes in pieces: gathered, packed and framed while it is made.

A page of a large host has more than 100 MiB. Made a block at a time, each in memory that the one
before has left, it takes none of it; it is never there whole. Who sends the blocks is
http_server.py.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from itertools import chain, islice

# Below what malloc would ask the kernel for anew each time (M_MMAP_THRESHOLD, 128 KiB).
_BLOCK_BYTES = 64 << 10


def in_blocks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in blocks of some 64 KiB; none is empty."""
    block: list[bytes] = []
    size = 0
    for piece in pieces:
        block.append(piece)
        size += len(piece)
        if size >= _BLOCK_BYTES:
            yield b"".join(block)
            block, size = [], 0
    if size:
        yield b"".join(block)


def begun(pieces: Iterable[bytes]) -> bytes | Iterator[bytes]:
    """In blocks, the first of which are made now: what fails there can still be said to the client.
    Whole where it is no more than one."""
    blocks = in_blocks(pieces)
    first = list(islice(blocks, 2))
    return chain(first, blocks) if len(first) > 1 else b"".join(first)


def packed(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """As gzip, without a time, so that the same page is the same bytes. The first level is enough
    for text that repeats itself, in a fifth of the time."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 16 + zlib.MAX_WBITS)

    def pieces() -> Iterator[bytes]:
        for block in blocks:
            yield packer.compress(block)
        yield packer.flush()

    return in_blocks(pieces())


def chunked(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Each as a chunk of HTTP/1.1 (RFC 9112, 7.1), and the last one, without which a client knows
    that it does not have all."""
    for block in blocks:
        yield b"%x\r\n%b\r\n" % (len(block), block)
    yield b"0\r\n\r\n"
