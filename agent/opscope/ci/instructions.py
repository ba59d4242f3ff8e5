"""Count the instructions of child processes with the kernel's perf_event_open(2).

The count is of user mode alone. It covers the child and all processes and threads that it starts,
as far as they have ended when it is read. Virtual machines often have no counter, and
`kernel.perf_event_paranoid` may forbid one; then `reason` says so, and nothing else changes.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct

_SYSCALLS = {"x86_64": 298, "aarch64": 241}
_ATTR_BYTES = 128
_HARDWARE, _INSTRUCTIONS = 0, 1
# Flags of perf_event_attr. The caller's own counter never runs: only an exec, in a child, enables
# the copy that the child inherits.
_DISABLED, _INHERIT, _NO_KERNEL, _NO_HYPERVISOR, _ON_EXEC = 1 << 0, 1 << 1, 1 << 5, 1 << 6, 1 << 12
_TIME_ENABLED, _TIME_RUNNING = 1, 2
_CLOSE_ON_EXEC = 8


class InstructionCounter:
    """A counter of the children that the calling thread starts while it is open.

    >>> with InstructionCounter() as counter:
    ...     _ = os.spawnvp(os.P_WAIT, "true", ["true"])
    ...     counted = counter.read()
    >>> counted is None or counted > 0
    True
    """

    def __init__(self) -> None:
        self.reason = ""
        """Why there is no counter; empty if there is one."""
        self._fd = -1
        number = _SYSCALLS.get(platform.machine())
        if number is None:
            self.reason = f"not known how to ask for a counter on {platform.machine()}"
            return
        libc = ctypes.CDLL(None, use_errno=True)
        # The calling thread, on any processor, in no group.
        self._fd = libc.syscall(number, _attributes(), 0, -1, -1, _CLOSE_ON_EXEC)
        if self._fd < 0:
            self.reason = _why(ctypes.get_errno())

    def read(self) -> int | None:
        """The instructions so far; None without a counter, or if it did not run all the time."""
        if self._fd < 0:
            return None
        count, enabled, running = struct.unpack("3Q", os.read(self._fd, 24))
        return int(count) if 0 < enabled == running else None

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> InstructionCounter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _attributes() -> ctypes.Array[ctypes.c_char]:
    flags = _DISABLED | _INHERIT | _NO_KERNEL | _NO_HYPERVISOR | _ON_EXEC
    # type, size, config, sample_period, sample_type, read_format, flags
    fields = struct.pack(
        "IIQQQQQ", _HARDWARE, _ATTR_BYTES, _INSTRUCTIONS, 0, 0, _TIME_ENABLED | _TIME_RUNNING, flags
    )
    return ctypes.create_string_buffer(fields, _ATTR_BYTES)


def _why(number: int) -> str:
    if number in (errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP):
        return "this machine gives programs no counter of instructions"
    if number in (errno.EPERM, errno.EACCES):
        return "kernel.perf_event_paranoid, or the container's seccomp profile, forbids a counter"
    return f"perf_event_open: {os.strerror(number)}"
