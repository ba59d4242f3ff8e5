"""The body of a page as a stream of blocks: collected, compressed and framed as it is generated.

The page of a large host has more than 100 MiB. It is never in memory as a whole: each block reuses
the memory of the previous one. http_server.py sends the blocks.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from itertools import chain, islice

# Below malloc's M_MMAP_THRESHOLD (128 KiB), above which each block would be new kernel memory.
_BLOCK_BYTES = 64 << 10


def in_blocks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in blocks of about 64 KiB; none is empty."""
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
    """The page in blocks. Generates the first ones now, so that an early failure still reaches the
    client as a status. Returns the whole page if it fits into one block."""
    blocks = in_blocks(pieces)
    first = list(islice(blocks, 2))
    return chain(first, blocks) if len(first) > 1 else b"".join(first)


def packed(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The blocks as gzip without a time, so that equal pages have equal bytes. Level 1 suffices for
    repetitive text, in a fifth of the time."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 16 + zlib.MAX_WBITS)

    def pieces() -> Iterator[bytes]:
        for block in blocks:
            yield packer.compress(block)
        yield packer.flush()

    return in_blocks(pieces())


def chunked(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Each block as a chunk of HTTP/1.1 (RFC 9112, 7.1), then the last chunk, which tells a client
    that the page is complete."""
    for block in blocks:
        yield b"%x\r\n%b\r\n" % (len(block), block)
    yield b"0\r\n\r\n"
