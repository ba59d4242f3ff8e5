"""Find the host's pids of processes in other pid namespaces, such as containers.

A segment has the pid of its process in its own namespace, often 1 in a container. A process that
may not be examined (another user's, without CAP_SYS_PTRACE) shows its pids to every user, but not
their namespace; it is then identified by pid and start time. Facts: pid_namespaces(7); proc(5)
for NSpid, the pids from the namespace of the reader to the innermost.
"""

from __future__ import annotations

import os
from collections import defaultdict
from functools import cached_property
from typing import NamedTuple

from opscope.segments import liveness


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
    """Finds the local pids of processes that segments name; scans /proc once, when needed."""

    def __init__(self) -> None:
        self._here = liveness.here().pid_namespace

    def pid_here(self, pid_namespace: int, pid: int, process_start: int) -> int | None:
        """The local pid; None if it is not visible from here."""
        if pid_namespace in (0, self._here):
            return pid
        for candidate, inner in self._by_start.get(process_start, ()):
            if inner.is_known_as(pid_namespace, pid, process_start):
                return candidate
        return None

    @cached_property
    def _by_start(self) -> dict[int, list[tuple[int, Inner]]]:
        found = defaultdict(list)
        for name in os.listdir("/proc"):
            inner = look_into(int(name)) if name.isdigit() else None
            if inner is not None:
                found[inner.process_start].append((int(name), inner))
        return found
