"""The agent's own cost and work, which it exports with the other metrics."""

from __future__ import annotations

import os
import resource
import time
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
    virtual_bytes: int = 0
    """Of these four, 0 is unknown."""
    start_unix_s: float = 0.0
    open_files: int = 0
    most_files: int = 0


def memory_bytes() -> int:
    """Resident memory of this process; 0 if unknown."""
    return _pages(1) * _PAGE_BYTES


def virtual_bytes() -> int:
    """Virtual memory of this process; 0 if unknown."""
    return _pages(0) * _PAGE_BYTES


def _pages(column: int) -> int:
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[column])
    except (OSError, ValueError, IndexError):
        return 0


def open_files() -> tuple[int, int]:
    """Open files of this process, without the one that counts them, and the most that it may have;
    0 if unknown."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    try:
        return len(os.listdir("/proc/self/fd")) - 1, max(most, 0)
    except OSError:
        return 0, max(most, 0)


def start_unix_s() -> float:
    """When this process started; 0 if unknown. The system's clock may have been set since."""
    try:
        with open("/proc/self/stat", "rb") as file:
            # The program's name may contain blanks and parentheses.
            ticks = int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0.0
    since_boot_s = time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.time() - since_boot_s + ticks / os.sysconf("SC_CLK_TCK")
