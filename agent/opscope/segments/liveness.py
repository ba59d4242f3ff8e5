"""Whether the process that a segment belongs to is still there.

By the lock that it holds on its file where the header says that it does: that works from any pid
namespace, and lasts for as long as somebody can write into the file. Else by boot id, pid
namespace, pid and start time together, as a pid alone comes around again; a process of another pid
namespace then cannot be looked up from here and counts as alive until the next boot. A boot id of
zeros is one that could not be read (no /proc, or one without /proc/sys, as by systemd's
ProcSubset=pid): it is no other than ours.
Facts: flock(2) and native/SEGMENT.md; proc(5) for /proc/<pid>/stat and boot_id; namespaces(7) for
the inode of /proc/self/ns/pid.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from opscope.agent.segment import Header
    from opscope.agent.segment_file import File


_UNKNOWN_BOOT = bytes(16)


class Here(NamedTuple):
    """Where this process runs; zero is what could not be read."""

    boot_id: bytes
    pid_namespace: int

    def is_other_boot(self, boot_id: bytes) -> bool:
        """Whether that is for certain not the boot that this process runs in."""
        return boot_id != self.boot_id and _UNKNOWN_BOOT not in (boot_id, self.boot_id)


def here() -> Here:
    """Read anew; neither changes while a process runs."""
    boot_id, pid_namespace = _UNKNOWN_BOOT, 0
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id") as file:
        boot_id = bytes.fromhex(file.read().strip().replace("-", ""))
    with suppress(OSError):
        pid_namespace = os.stat("/proc/self/ns/pid").st_ino
    return Here(boot_id, pid_namespace)


def process_start(pid: int) -> int | None:
    """When the process with this pid started, in clock ticks since boot; None: there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # Field 2, the name, is in parentheses and may hold any character.
    return int(text.rpartition(b")")[2].split()[19])


def is_dead(boot_id: bytes, pid_namespace: int, pid: int, start: int, where: Here) -> bool:
    """Whether that process is gone for certain, as seen from `where`."""
    if where.is_other_boot(boot_id):
        return True
    if pid_namespace != where.pid_namespace or pid_namespace == 0:
        return False
    try:
        return process_start(pid) != start
    except OSError:
        return False


def is_over(file: File, header: Header, where: Here) -> bool:
    """Whether nobody will write into that segment any more; if so, all of it is there."""
    if header.is_closed or where.is_other_boot(header.boot_id):
        return True
    if header.by_lock:
        is_locked = file.is_locked()
        if is_locked is not None:
            return not is_locked
    return is_dead(header.boot_id, header.pid_namespace, header.pid, header.process_start, where)
