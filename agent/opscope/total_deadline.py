"""Limits for HTTP clients: the bytes of an answer, and the seconds of a whole exchange.

A socket's timeout applies to each single wait: a server that sends a byte now and then never
exceeds it. Here one deadline covers the exchange from the name lookup to the last byte.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from opscope.name_lookup import NameLookup

_PIECE_BYTES = 64 << 10

Connection = TypeVar("Connection")


class TooLong(ValueError):  # noqa: N818 - a property of the answer
    """An answer has more bytes than the limit."""


class TotalDeadline:
    """The deadline of one client's exchanges: one at a time, over one connection at a time."""

    def __init__(self, lookup: NameLookup) -> None:
        """`lookup`: that of the client, over all its exchanges."""
        self._lookup = lookup
        self._lock = threading.Lock()
        self._watched: Any = None
        self._ends = 0.0
        self.is_over = False

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """An exchange: its reads and writes fail after this many seconds."""
        with self._lock:
            self._ends, self.is_over = time.monotonic() + seconds, False
        timer = threading.Timer(seconds, self._end)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def watch(self, connection: Any) -> None:
        """Watches this connection's socket from now on; call it again after TLS has wrapped it."""
        with self._lock:
            self._watched = connection
            if self.is_over:
                self._shut()

    def connected(
        self, host: str, port: int, connect: Callable[[str, float], Connection]
    ) -> Connection:
        """The result of `connect(address, seconds)` for the host's first address that answers.

        Each address gets an equal share of the seconds left. Raises OSError.
        """
        addresses = self._lookup.addresses(host, port, self._left_s)
        share_s = self._left_s / len(addresses)
        for address in addresses[:-1]:
            with suppress(OSError):
                return connect(address, share_s)
        return connect(addresses[-1], share_s)

    @property
    def _left_s(self) -> float:
        return max(self._ends - time.monotonic(), 1e-3)

    def _end(self) -> None:
        with self._lock:
            if time.monotonic() >= self._ends:  # the timer of an earlier exchange is ignored
                self.is_over = True
                self._shut()

    def _shut(self) -> None:
        # Not SSLSocket's own shutdown, which must not be called from another thread.
        with suppress(OSError, TypeError):
            socket.socket.shutdown(self._watched, socket.SHUT_RDWR)


def read_at_most(read: Callable[[int], bytes], limit_bytes: int) -> bytes:
    """All bytes of `read`, until it returns b"". Raises TooLong."""
    pieces, size = [], 0
    while piece := read(_PIECE_BYTES):
        size += len(piece)
        if size > limit_bytes:
            raise TooLong(f"the answer has more than {limit_bytes >> 20} MiB")
        pieces.append(piece)
    return b"".join(pieces)
