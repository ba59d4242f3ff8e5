"""Decide whether the process of a segment still runs.

If the header says that the process locks its file, the lock decides: it works across pid namespaces
and lasts as long as any process can write into the file. Otherwise boot id, pid namespace, pid and
start time decide together, since pids are reused. A process in another pid namespace then cannot be
looked up and counts as alive until the next boot. A boot id of zeros means that it could not be
read (no /proc, or no /proc/sys, as with systemd's ProcSubset=pid); it counts as this boot.

Facts: flock(2) and native/SEGMENT.md; proc(5) for /proc/<pid>/stat and boot_id; namespaces(7) for
the inode of /proc/self/ns/pid.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from opscope.segments.segment import Header
    from opscope.segments.segment_file import File


_UNKNOWN_BOOT = bytes(16)


class Here(NamedTuple):
    """Boot id and pid namespace of this process; zero if unreadable."""

    boot_id: bytes
    pid_namespace: int

    def is_other_boot(self, boot_id: bytes) -> bool:
        """Whether the boot id is certainly not that of this process."""
        return boot_id != self.boot_id and _UNKNOWN_BOOT not in (boot_id, self.boot_id)


def here() -> Here:
    """Reads both anew; neither changes while a process runs."""
    boot_id, pid_namespace = _UNKNOWN_BOOT, 0
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id") as file:
        boot_id = bytes.fromhex(file.read().strip().replace("-", ""))
    with suppress(OSError):
        pid_namespace = os.stat("/proc/self/ns/pid").st_ino
    return Here(boot_id, pid_namespace)


def process_start(pid: int) -> int | None:
    """Start time of the process with this pid, in clock ticks since boot; None if it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # Field 2, the name, is in parentheses and may contain any character.
    return int(text.rpartition(b")")[2].split()[19])


def is_dead(boot_id: bytes, pid_namespace: int, pid: int, start: int, where: Here) -> bool:
    """Whether that process has certainly ended, as seen from `where`."""
    if where.is_other_boot(boot_id):
        return True
    if pid_namespace != where.pid_namespace or pid_namespace == 0:
        return False
    try:
        return process_start(pid) != start
    except OSError:
        return False


def is_over(file: File, header: Header, where: Here) -> bool:
    """Whether no process can write into the segment any more, so that it is complete."""
    if header.is_closed or where.is_other_boot(header.boot_id):
        return True
    if header.by_lock:
        is_locked = file.is_locked()
        if is_locked is not None:
            return not is_locked
    return is_dead(header.boot_id, header.pid_namespace, header.pid, header.process_start, where)
