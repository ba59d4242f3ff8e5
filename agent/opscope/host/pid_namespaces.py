"""Find the host's pids of processes in other pid namespaces, such as containers.

A segment has the pid of its process in its own namespace, often 1 in a container. A process that
may not be examined (another user's, without CAP_SYS_PTRACE) shows its pids to every user, but not
their namespace; it is then identified by pid and start time. Facts: pid_namespaces(7); proc(5)
for NSpid, the pids from the namespace of the reader to the innermost.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from typing import NamedTuple

from opscope.segments import liveness

# Searches of /proc by one Pids.
_SCANS_LIMIT = 4
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class Inner(NamedTuple):
    """A process of a nested namespace, by its identity there."""

    pid_namespace: int
    """0 if the process may not be examined."""
    pid: int
    process_start: int
    """Clock ticks since boot, independent of the namespace."""

    def is_known_as(self, pid_namespace: int, pid: int, process_start: int) -> bool:
        same = (self.pid, self.process_start) == (pid, process_start)
        return same and self.pid_namespace in (0, pid_namespace)


def look_into(pid: int) -> Inner | None:
    """Identity of the process in its namespace; None if it has ended or is in this namespace."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            (line,) = (line for line in file if line.startswith(b"NSpid:"))
        pids = line.split()[1:]
        start = liveness.process_start(pid) if len(pids) > 1 else None
    except (OSError, ValueError):
        return None
    if start is None:
        return None
    try:
        namespace = os.stat(f"/proc/{pid}/ns/pid").st_ino
    except OSError:
        namespace = 0
    return Inner(namespace, int(pids[-1]), start)


class Pids:
    """Finds the local pids of processes that segments name; scans /proc when needed, and again for
    processes that started since, a few times in all."""

    def __init__(self) -> None:
        self._here = liveness.here().pid_namespace
        self._by_start: dict[int, list[tuple[int, Inner]]] = {}
        self._scanned_at = -1
        """In clock ticks since boot, as the start of a process."""
        self._scans_left = _SCANS_LIMIT

    def pid_here(self, pid_namespace: int, pid: int, process_start: int) -> int | None:
        """The local pid; None if it is not visible from here."""
        if pid_namespace in (0, self._here):
            return pid
        if process_start >= self._scanned_at and self._scans_left:
            self._scan()
        for candidate, inner in self._by_start.get(process_start, ()):
            if inner.is_known_as(pid_namespace, pid, process_start):
                return candidate
        return None

    def _scan(self) -> None:
        self._scanned_at = int(time.clock_gettime(time.CLOCK_BOOTTIME) * _TICKS_PER_SECOND)
        self._scans_left -= 1
        found = defaultdict(list)
        for name in os.listdir("/proc"):
            inner = look_into(int(name)) if name.isdigit() else None
            if inner is not None:
                found[inner.process_start].append((int(name), inner))
        self._by_start = found
