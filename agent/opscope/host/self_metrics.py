"""The agent's own cost and work, which it exports with the other metrics."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class SelfMetrics:
    cpu_s: float = 0.0
    """CPU time of the agent since its start, in seconds."""
    memory_bytes: int = 0
    """Resident."""
    passes: Mapping[tuple[str], int] = field(default_factory=dict)
    """Over all segments (pass) or those of ended processes (sweep)."""
    files_read: int = 0
    """Segments read in the last pass."""
    files_removed: int = 0
    files_parked: int = 0
    """Segments of ended processes in another version's format, kept for its agent."""
    files_discarded: int = 0
    """Segments in another version's format that were removed unread, beyond the limit."""
    limited: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """By user and resource, the passes in which the user got less than it asked for."""
    state_writes: Mapping[tuple[str], int] = field(default_factory=dict)
    """Saves of the state, by result."""
    requests: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """HTTP requests, by path and status."""
    request_s: float = 0.0
    """Time from a request to the end of its answer."""


def memory_bytes() -> int:
    """Memory of this process; 0 if unknown."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE_BYTES
    except (OSError, ValueError, IndexError):
        return 0
