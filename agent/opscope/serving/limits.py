"""What one client, and all clients together, may take of the server."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Beyond each, requests are refused at once: RESOURCE_EXHAUSTED, or 413, 429 and 431."""

    message_bytes: int = 64 << 20
    """Of a request."""
    memory_bytes: int = 1 << 30
    """Of the requests that HTTP receives or that wait or run, together."""
    requests: int = 2000
    """In flight, of all models and both protocols."""
    connections: int = 1000
    """Of HTTP; each has one request at a time."""
    head_bytes: int = 16 << 10
    """Of a request's head in HTTP."""
    idle_s: float = 60.0
    """Without a request, before a connection is closed."""
    receive_s: float = 30.0
    """From the first byte of a request to its last, and for the client to take the answer."""
    drain_s: float = 30.0
    """From SIGTERM to the end of the last answer."""


class Admission:
    """Counts what is in flight against the limits. For one thread."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.requests = 0
        self.bytes = 0

    def enter(self, size: int) -> bool:
        """Whether there is room for one more request; then `leave` has to follow."""
        if self.requests >= self.limits.requests or (
            self.requests and self.bytes + size > self.limits.memory_bytes
        ):
            return False
        self.requests += 1
        self.bytes += size
        return True

    def grow(self, size: int) -> bool:
        """Whether there is room for so many more bytes of a request that has entered."""
        if self.bytes + size > self.limits.memory_bytes and self.requests > 1:
            return False
        self.bytes += size
        return True

    def leave(self, size: int) -> None:
        self.requests -= 1
        self.bytes -= size
