"""Do work one item at a time, in turns by share: a frequent caller delays only itself."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from opscope.errors import AgentError

_WAITING_LIMIT, _WAITING_OF_SHARE = 16, 8
_WAIT_S = 5.0


class Busy(AgentError):  # noqa: N818 - a state, not an error
    """Too many callers wait, or one has waited too long."""


class FairQueue:
    """Any thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._is_taken = False
        self._waiting: list[tuple[str, object]] = []
        """(share, caller), in the order of arrival."""
        self._latest: dict[str, int] = {}
        """For each waiting share, the number of its last turn."""
        self._count = 0

    @contextmanager
    def turn(self, share: str) -> Iterator[None]:
        """A block in which no other caller has a turn. Raises Busy."""
        me = share, object()
        with self._changed:
            counts = Counter(one for one, _ in self._waiting)
            if len(self._waiting) >= _WAITING_LIMIT or counts[share] >= _WAITING_OF_SHARE:
                raise Busy("too many wait")
            self._waiting.append(me)
            try:
                deadline = time.monotonic() + _WAIT_S
                while self._is_taken or self._next() is not me:
                    left = deadline - time.monotonic()
                    if left <= 0:
                        raise Busy("waited too long")
                    self._changed.wait(left)
                self._is_taken = True
                self._count += 1
                self._latest[share] = self._count
            finally:
                self._waiting.remove(me)
                shares = {one for one, _ in self._waiting} | {share}
                self._latest = {one: at for one, at in self._latest.items() if one in shares}
        try:
            yield
        finally:
            with self._changed:
                self._is_taken = False
                self._changed.notify_all()

    def _next(self) -> tuple[str, object]:
        """The first caller of the share whose last turn was longest ago."""
        return min(self._waiting, key=lambda one: self._latest.get(one[0], 0))
