"""The unobserved Python processes of this host, each with the reason.

The reasons come from the ledger of attaching, or from /proc for processes that never got that far.
Observed processes are in a snapshot.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from opscope.host import ledgers, pid_namespaces
from opscope.host.snapshot import Process
from opscope.processes import python_processes
from opscope.segments import directories, liveness


class Unobserved(NamedTuple):
    pid: int
    user: str
    program: str
    why: str
    code: str
    """One of ledger.CODES; `armed`, which is no refusal; or `not-started`."""


def unobserved(patterns: Sequence[str], observed: Iterable[Process]) -> list[Unobserved]:
    """All unobserved processes except this one, by pid.

    `patterns`: globs of the segments' directories, which hold the ledger too.
    """
    alive = [one for one in observed if one.is_alive]
    here = liveness.here().pid_namespace
    known = {(one.pid, one.process_start) for one in alive if one.pid_namespace in (0, here)}
    elsewhere = {
        (one.pid_namespace, one.pid, one.process_start)
        for one in alive
        if one.pid_namespace not in (0, here)
    }
    reasons = {
        (entry.pid, entry.process_start): entry
        for entry in ledgers.read(directories.find_ledgers(directories.find(patterns)))[0]
    }
    running = {(one.pid, one.process_start): one for one in python_processes.running()}
    for key in reasons.keys() - running.keys():
        other = python_processes.look_up(key[0], any_executable=True)
        if other is not None and other.process_start == key[1]:
            running[key] = other
    found = []
    for key, process in running.items():
        if key in known or process.pid == os.getpid():
            continue
        inner = pid_namespaces.look_into(process.pid)
        if inner is None:
            entry = reasons.get(key)
        elif any(inner.is_known_as(*one) for one in elsewhere):
            continue
        else:
            entry = reasons.get((inner.pid, inner.process_start))
        if entry is not None:
            why, code = entry.text, entry.code
        else:
            code, why = process.start
        found.append(Unobserved(process.pid, process.user, process.program, why, code))
    return sorted(found)
