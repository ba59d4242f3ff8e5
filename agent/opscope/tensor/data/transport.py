"""Send batches from a worker to its consumer: large memory in an unnamed file, the rest in a pipe.

A worker pickles a batch with its large buffers out of band, writes these into a memfd, and sends
the descriptor over the pipe (a Unix socket); the consumer maps the file. Unnamed files leave
nothing behind, even if a process is killed. Messages in the pipe itself are small, so a worker
never blocks on a slow consumer.
"""

from __future__ import annotations

import io
import os
import pickle
import socket
import tempfile
from multiprocessing.connection import Connection
from multiprocessing.reduction import recvfds, sendfds
from typing import Any

from opscope._tensor import Tensor, map_file
from opscope.tensor import pickling

# Below this size, in bytes, a copy through the pipe is cheaper than a mapping.
LARGE_BYTES = 1 << 14
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

_AT_ONCE = 64  # buffers in one system call; the kernel's limit is 1024


class Parcel:
    """A received message: `head` is small and available, `open` returns the body."""

    __slots__ = ("_body", "_mapped", "head")

    def __init__(self, head: Any, body: bytes | Tensor, mapped: list[Tensor]) -> None:
        self.head = head
        self._body = body
        self._mapped = mapped

    def open(self) -> Any:
        """The object that was sent; its large parts are in the shared memory."""
        return pickle.loads(self._body, buffers=self._mapped)


class _Pickler(pickle.Pickler):
    """Pickles each tensor alone: a sample may be a small view of the whole dataset."""

    def reducer_override(self, obj: Any) -> Any:
        return pickling.reduce_alone(obj) if isinstance(obj, Tensor) else NotImplemented


def pack(body: Any) -> tuple[bytes, list[Any]]:
    """A pickle and its large buffers. Raises pickle's exceptions."""
    large: list[Any] = []

    def is_small(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes < LARGE_BYTES:
            return True
        large.append(raw)
        return False

    written = io.BytesIO()
    _Pickler(written, protocol=5, buffer_callback=is_small).dump(body)
    return written.getvalue(), large


def send(connection: Connection, head: Any, body: tuple[bytes, list[Any]]) -> None:
    """Send the result of pack(), with a small head. OSError if the receiver is gone."""
    text, large = body
    inline: bytes | None = text
    if len(text) >= LARGE_BYTES:
        inline, large = None, [*large, memoryview(text)]
    sizes = [part.nbytes for part in large]
    if not large:
        connection.send((head, inline, sizes))
        return
    file = _anonymous_file()
    try:
        _write(file, large)
        connection.send((head, inline, sizes))
        with socket.socket(fileno=os.dup(connection.fileno())) as channel:
            sendfds(channel, [file])
    finally:
        os.close(file)


def receive(connection: Connection) -> Parcel:
    """The next message. EOFError or OSError if the sender is gone."""
    head, inline, sizes = connection.recv()
    if not sizes:
        return Parcel(head, inline, [])
    with socket.socket(fileno=os.dup(connection.fileno())) as channel:
        (file,) = recvfds(channel, 1)
    try:
        mapped = []
        at = 0
        for size in sizes:
            mapped.append(map_file(file, at, size))
            at += _pages(size)
    finally:
        os.close(file)
    body = mapped.pop() if inline is None else inline
    return Parcel(head, body, mapped)


def _pages(size: int) -> int:
    return -(-size // PAGE_BYTES) * PAGE_BYTES


def _anonymous_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("opscope batch", os.MFD_CLOEXEC)
    return os.open(
        "/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir(),
        os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC,
        0o600,
    )


def _write(file: int, parts: list[Any]) -> None:
    """Each part at the start of a page."""
    pieces: list[Any] = []
    for part in parts:
        pieces += [part, memoryview(bytes(_pages(part.nbytes) - part.nbytes))]
    pieces = [piece for piece in pieces if piece.nbytes]
    while pieces:
        written = os.writev(file, pieces[:_AT_ONCE])
        while pieces and written >= pieces[0].nbytes:
            written -= pieces.pop(0).nbytes
        if written:
            pieces[0] = pieces[0][written:]
