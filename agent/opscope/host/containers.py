"""The containers of observed processes, read once for each from its cgroup."""

from __future__ import annotations

from opscope.host.pid_namespaces import Pids
from opscope.host.snapshot import Process
from opscope.processes import cgroups
from opscope.processes.cgroups import Container
from opscope.segments import liveness


class Containers:
    def __init__(self) -> None:
        self.pids = Pids()

    def begin_pass(self) -> None:
        """Processes that started since the last pass are looked for anew."""
        self.pids = Pids()

    def of(self, process: Process) -> Container:
        """Empty if the process has ended, or is not visible from here."""
        if not process.is_alive:
            return Container()
        pid = self.pids.pid_here(process.pid_namespace, process.pid, process.process_start)
        if pid is None:
            return Container()
        found = cgroups.container_of(pid)
        # Afterwards, because the pid may have become another process's.
        is_same = liveness.process_start(pid) == process.process_start
        return found if is_same else Container()
