"""Limit the bytes and seconds of one request and one answer on a connection.

A deadline covers the whole request or answer: a client that sends or takes single bytes cannot
extend it.
"""

from __future__ import annotations

import io
import socket
import time
from collections.abc import Callable

REQUEST_BYTES = 32 << 10
FIRST_BYTE_S, IDLE_S = 5.0, 75.0
"""Seconds until a connection's first request begins, and until a later one does."""
REQUEST_S = 5.0
"""Seconds from a request's first byte to its last, and for the handshake."""
ANSWER_S = 30.0
"""Seconds from an answer's first byte to its last."""
BLOCK_S, BLOCK_BYTES = 5.0, 64 << 10
"""Bytes to send at once."""


class Incoming(io.RawIOBase):
    """Reads requests; TimeoutError for a request that is too long in bytes or seconds."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._left = 0
        self._deadline = 0.0
        self._is_begun = False

    def await_request(self, seconds: float) -> None:
        """Sets the time limit for the next request's first byte, in seconds."""
        self._left = REQUEST_BYTES
        self._deadline = time.monotonic() + seconds
        self._is_begun = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        seconds = self._deadline - time.monotonic()
        if seconds <= 0 or self._left <= 0:
            raise TimeoutError
        self._connection.settimeout(seconds)
        view = memoryview(buffer)[: self._left]  # type: ignore[arg-type]
        count = self._connection.recv_into(view)
        self._left -= count
        if not self._is_begun:
            self._is_begun = True
            self._deadline = time.monotonic() + REQUEST_S
        return count


class Outgoing(io.RawIOBase):
    """Writes answers; TimeoutError once a client takes an answer too slowly."""

    def __init__(
        self, connection: socket.socket, is_sending: Callable[[float | None], None]
    ) -> None:
        """Calls `is_sending` with the time as each block begins, and with None as it ends."""
        self._connection = connection
        self._is_sending = is_sending
        self._deadline: float | None = None

    def begin(self) -> None:
        """Starts the time limit of an answer at its next byte."""
        self._deadline = None

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        whole = memoryview(data)  # type: ignore[arg-type]
        if self._deadline is None:
            self._deadline = time.monotonic() + ANSWER_S
        try:
            for begin in range(0, len(whole), BLOCK_BYTES):
                self._send(whole[begin : begin + BLOCK_BYTES], self._deadline)
        except OSError:
            self._deadline = 0.0
            raise
        return len(whole)

    def _send(self, block: memoryview, deadline: float) -> None:
        now = time.monotonic()
        deadline = min(deadline, now + BLOCK_S)
        self._is_sending(now)
        while block:
            seconds = deadline - time.monotonic()
            if seconds <= 0:
                raise TimeoutError
            self._connection.settimeout(seconds)
            block = block[self._connection.send(block) :]
        self._is_sending(None)
