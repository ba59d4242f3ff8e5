"""Store an agent's state: a file in a directory that other users cannot write.

The agent locks that directory and the segments' directory while it runs: two agents on the same
files would each count some of them. A state is replaced atomically, and is on the disk before any
segment that it contains may be removed. An unusable state is parked: kept under another name, up to
a small number. state.py defines the file's format.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from contextlib import suppress

from opscope.errors import AgentError
from opscope.host.reserve import Reserve
from opscope.host.state import StateError
from opscope.replace_file import remove_remains, replace_file, sync_directory

NAME = "agent.state"

PARKED_LIMIT = 4
_PARKED = ".parked"
_BYTES_LIMIT = 256 << 20
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FULL = (errno.ENOSPC, errno.EDQUOT)


class StateFile:
    """`path` is absolute. Its directory is created (mode 0700) if it is missing.

    `segments`: the directory of the segments, which is locked too. If an agent kept its state there
    under the name NAME, and saved it later than the one at `path`, the agent continues that one.
    """

    def __init__(self, path: str, segments: str = "") -> None:
        self.path = path
        self._directory, self._name = os.path.split(path)
        self._segments = "" if segments == self._directory else segments
        self._fd = self._segments_fd = -1
        self._loaded: tuple[str, int] | None = None
        self._reserve = Reserve()

    def claim(self) -> None:
        """Makes this the only agent with this state and these segments. Raises AgentError if
        another agent has them, or if the directory is unusable."""
        fd = self._claimed(self._directory)
        self.close()
        self._fd = fd
        if self._segments:
            try:
                self._segments_fd = self._claimed(self._segments)
            except _UnusableError:
                pass  # another user's directory, in which no agent keeps a state
            except AgentError:
                self.close()
                raise
        remove_remains(self._name, directory_fd=fd)

    def _claimed(self, directory: str) -> int:
        try:
            with suppress(FileExistsError):
                os.mkdir(directory, 0o700)
            fd = os.open(directory, _DIRECTORY)
        except OSError as error:
            raise _UnusableError(directory, os.strerror(error.errno or 0)) from error
        try:
            found = os.fstat(fd)
            if found.st_uid not in (0, os.geteuid()):
                raise _UnusableError(directory, f"it belongs to uid {found.st_uid}")
            if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not found.st_mode & stat.S_ISVTX:
                raise _UnusableError(directory, "other users can write to it")
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise AgentError(
                    f"another agent already collects the segments of {directory}; stop it, or give "
                    "this one another --directory"
                ) from None
        except BaseException:
            os.close(fd)
            raise
        return fd

    def load(self) -> bytes | None:
        """The last saved state; None if there never was one. Raises StateError if unreadable."""
        self._loaded = self._last_saved()
        if self._loaded is None:
            return None
        name, directory_fd = self._loaded
        try:
            fd = os.open(name, _READ, dir_fd=directory_fd)
        except OSError as error:
            raise StateError(os.strerror(error.errno or 0)) from error
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
                raise StateError(f"it is not a regular file of uid {os.geteuid()}")
            if found.st_size > _BYTES_LIMIT:
                raise StateError(f"it has {found.st_size} bytes")
            with os.fdopen(fd, "rb", closefd=False) as file:
                return file.read(_BYTES_LIMIT + 1)
        except OSError as error:
            raise StateError(os.strerror(error.errno or 0)) from error
        finally:
            os.close(fd)

    def _last_saved(self) -> tuple[str, int] | None:
        """The newer state, at `path` or beside the segments, as name and directory descriptor."""
        found: list[tuple[int, int, str, int]] = []
        for name, fd in ((NAME, self._segments_fd), (self._name, self._fd)):
            if fd >= 0:
                with suppress(OSError):
                    there = os.stat(name, dir_fd=fd, follow_symlinks=False)
                    found.append((there.st_mtime_ns, len(found), name, fd))
        return max(found)[2:] if found else None

    def park(self) -> str:
        """Keeps the loaded state under another name, for an agent that can use it.

        Returns the name, "" on failure. Removes the oldest parked states beyond the limit.
        """
        if self._loaded is None:
            return ""
        name, fd = self._loaded
        parked = f"{name}.{time.time_ns()}{_PARKED}"
        try:
            os.rename(name, parked, src_dir_fd=fd, dst_dir_fd=fd)
            sync_directory(fd)
            earlier = sorted(
                one
                for one in os.listdir(fd)
                if one.startswith(f"{name}.") and one.endswith(_PARKED)
            )
            for one in earlier[:-PARKED_LIMIT]:
                with suppress(OSError):
                    os.unlink(one, dir_fd=fd)
        except OSError:
            return ""
        return parked

    def save(self, raw: bytes) -> None:
        """Replaces the file atomically; it is on the disk when this returns.

        Raises OSError and then leaves the file unchanged. On a full file system it uses the space
        that the previous save reserved.
        """
        if not self._is_where_it_was():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self._directory)
        try:
            self._replace(raw)
        except OSError as error:
            if error.errno not in _FULL or not self._reserve.give_up():
                raise
            self._replace(raw)
        self._reserve.keep(len(raw), self._fd)
        if self._segments_fd >= 0:
            # The file just saved contains all of its facts.
            with suppress(OSError):
                os.unlink(NAME, dir_fd=self._segments_fd)

    def _replace(self, raw: bytes) -> None:
        replace_file(self._name, raw, directory_fd=self._fd, mode=0o600, durable=True)

    def _is_where_it_was(self) -> bool:
        """Whether the directory still exists; if not, creates and locks it anew."""
        try:
            now = os.stat(self._directory, follow_symlinks=False)
        except FileNotFoundError:
            now = None
        held = os.fstat(self._fd)
        if now is not None and (now.st_dev, now.st_ino) == (held.st_dev, held.st_ino):
            return True
        try:
            self.claim()
        except AgentError:
            return False
        return True

    def close(self) -> None:
        """Releases the lock."""
        for fd in (self._fd, self._segments_fd):
            if fd >= 0:
                os.close(fd)
        self._fd = self._segments_fd = -1
        self._reserve.give_up()


class _UnusableError(AgentError):
    """A directory that cannot hold a state."""

    def __init__(self, directory: str, reason: str) -> None:
        super().__init__(
            f"cannot keep the state in {directory}: {reason}; choose another file with "
            "OPSCOPE_STATE, or OPSCOPE_STATE=none for no state"
        )
