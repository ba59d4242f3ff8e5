"""Name lookups that end in time: `NameLookup().addresses(host, port, seconds)`.

The system's resolver cannot be interrupted, and may wait for minutes. So each lookup runs in a
thread of its own, and the caller waits for a limited time. One that hangs keeps its thread. Until
it ends, no other lookup starts, so there is at most one such thread.
"""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress


class _Question:
    """One lookup by the system's resolver."""

    def __init__(self, host: str, port: int) -> None:
        self.asked = host, port
        self.done = threading.Event()
        self._addresses: list[str] = []
        self._error: Exception | None = None
        threading.Thread(target=self._ask, name=f"lookup of {host}", daemon=True).start()

    def _ask(self) -> None:
        try:
            self._addresses = _addresses(*self.asked)
        except Exception as error:  # reported to the caller
            self._error = error
        self.done.set()

    def answer(self) -> list[str]:
        if self._error is not None:
            raise self._error
        return self._addresses


class NameLookup:
    """The lookups of one client, one at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._question: _Question | None = None

    def addresses(self, host: str, port: int, seconds: float) -> list[str]:
        """The numeric addresses of a host, at least one.

        Raises TimeoutError if the resolver does not answer in time, OSError if it finds none.
        """
        with suppress(OSError):
            return _addresses(host, port, socket.AI_NUMERICHOST)
        ends = time.monotonic() + seconds
        while True:
            with self._lock:
                if self._question is None or self._question.done.is_set():
                    self._question = _Question(host, port)
                question = self._question
            if not question.done.wait(max(ends - time.monotonic(), 0.0)):
                raise TimeoutError(f"the lookup of {question.asked[0]} has not ended")
            if question.asked == (host, port):
                return question.answer()


def _addresses(host: str, port: int, flags: int = 0) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))
