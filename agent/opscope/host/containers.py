"""The containers of observed processes, read once for each from its cgroup.

If each container has series of its own, host/state.py keeps those of running processes: a process
that ends before the next agent starts still counts under the same series.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from opscope.host.pid_namespaces import Pids
from opscope.host.snapshot import Process
from opscope.processes import cgroups
from opscope.processes.cgroups import Container
from opscope.segments import liveness

_TAKEN_LIMIT = 4096


class Identity(NamedTuple):
    uid: int
    pid_namespace: int
    pid: int
    process_start: int


class Containers:
    def __init__(self) -> None:
        self.pids = Pids()
        self.changes = 0
        """Containers noted so far."""
        self._noted: dict[Identity, Container] = {}

    def begin_pass(self) -> None:
        """Processes that started since the last pass are looked for anew."""
        self.pids = Pids()

    def of(self, process: Process) -> Container:
        """Empty if the process has ended, or is not visible from here, and was not noted."""
        if noted := self._noted.get(_identity(process)):
            return noted
        if not process.is_alive:
            return Container()
        pid = self.pids.pid_here(process.pid_namespace, process.pid, process.process_start)
        if pid is None:
            return Container()
        found = cgroups.container_of(pid)
        # Afterwards, because the pid may have become another process's.
        is_same = liveness.process_start(pid) == process.process_start
        return found if is_same else Container()

    def note(self, process: Process, container: Container) -> Identity | None:
        """Keeps the container until `forget` gets the identity; None: nothing to keep."""
        if not any(container):
            return None
        identity = _identity(process)
        if identity not in self._noted:
            self._noted[identity] = container
            self.changes += 1
        return identity

    def forget(self, identity: Identity) -> None:
        self._noted.pop(identity, None)

    def facts(self) -> Iterator[tuple[int | str, ...]]:
        """What is noted, for `take`."""
        return ((*identity, *container) for identity, container in self._noted.items())

    def take(self, facts: Iterable[tuple[int, int, int, int, str, str]]) -> None:
        """The newest of them: those of files that vanished without an agent are never forgotten."""
        newest = [*facts][-_TAKEN_LIMIT:]
        self._noted = {Identity(*one[:4]): Container(*one[4:]) for one in newest}


def _identity(process: Process) -> Identity:
    return Identity(process.uid, process.pid_namespace, process.pid, process.process_start)
