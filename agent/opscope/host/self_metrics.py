"""What the agent itself costs and does, which it tells with the rest."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class OwnCost:
    cpu_s: float = 0.0
    """Processor time since its start."""
    memory_bytes: int = 0
    """Resident."""
    passes: Mapping[tuple[str], int] = field(default_factory=dict)
    """Over all segments (pass) or those of ended processes (sweep)."""
    files_read: int = 0
    """In the last pass."""
    files_removed: int = 0
    state_writes: Mapping[tuple[str], int] = field(default_factory=dict)
    """Of the sums that outlive the agent, by result."""
    requests: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """By path and status."""
    request_s: float = 0.0
    """Time from requests to the end of their answers."""


def memory_bytes() -> int:
    """Of this process; 0 where it cannot be told."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE_BYTES
    except (OSError, ValueError, IndexError):
        return 0
