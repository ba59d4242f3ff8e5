"""Which pids here the processes of other pid namespaces have: those of containers, from their host.

A segment says the pid that its process has in its own namespace, in a container mostly 1. A process
that may not be looked into (another user's, without CAP_SYS_PTRACE) tells its pids to everybody,
but not the namespace that they are of; it is then known by pid and start time alone. Facts:
pid_namespaces(7); proc(5) for NSpid, which goes from the reader's namespace to the innermost.
"""

from __future__ import annotations

import os
from collections import defaultdict
from functools import cached_property
from typing import NamedTuple

from opscope.agent import liveness


class Inner(NamedTuple):
    """A process of a namespace within ours, by what it is there."""

    pid_namespace: int
    """0: it may not be looked into."""
    pid: int
    process_start: int
    """As everywhere: it does not depend on the namespace."""

    def is_known_as(self, pid_namespace: int, pid: int, process_start: int) -> bool:
        same = (self.pid, self.process_start) == (pid, process_start)
        return same and self.pid_namespace in (0, pid_namespace)


def look_into(pid: int) -> Inner | None:
    """What the process with this pid is in its namespace; None where it is gone, or of ours."""
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
    """The pids here of processes that segments name; /proc is looked through once, if at all."""

    def __init__(self) -> None:
        self._here = liveness.here().pid_namespace

    def pid_here(self, pid_namespace: int, pid: int, process_start: int) -> int | None:
        """None where it cannot be seen from here."""
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
