"""Reserve space on a file system for later: an unnamed file with blocks of its own.

A full file system still accepts a file of that size after the reserve is released. An unnamed file
needs no cleanup: it ends with its process.
"""

from __future__ import annotations

import os
from contextlib import suppress

_LEAST_BYTES = 64 << 10


class Reserve:
    """Empty at first."""

    def __init__(self) -> None:
        self._fd = -1
        self._nbytes = 0

    def keep(self, nbytes: int, directory_fd: int) -> None:
        """Reserves `nbytes` on the file system of this directory, if it has that much space."""
        if self._nbytes >= nbytes:
            return
        self.give_up()
        wanted = max(2 * nbytes, _LEAST_BYTES)
        flags = os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC
        with suppress(OSError):
            self._fd = os.open(".", flags, 0o600, dir_fd=directory_fd)
            os.posix_fallocate(self._fd, 0, wanted)
            self._nbytes = wanted

    def give_up(self) -> bool:
        """Releases the reserve; whether there was one."""
        had = self._nbytes > 0
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._nbytes = -1, 0
        return had
