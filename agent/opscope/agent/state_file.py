"""Where an agent's state is kept: a file of its own in a directory that nobody else may write.

The directory is claimed for as long as the agent runs, by a lock: two agents that take in the same
files would each count some of them. What the file's bytes mean is in state.py.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
from contextlib import suppress

from opscope.agent.state import StateError
from opscope.errors import AgentError

NAME = "agent.state"

_BYTES_LIMIT = 256 << 20
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class StateFile:
    """`path` is absolute. Its directory is made (mode 0700) where it is missing."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._directory, self._name = os.path.split(path)
        self._fd = -1

    def claim(self) -> None:
        """Makes this the one agent with this state. Raises AgentError where there is another, or
        the directory cannot be used."""
        try:
            with suppress(FileExistsError):
                os.mkdir(self._directory, 0o700)
            fd = os.open(self._directory, _DIRECTORY)
        except OSError as error:
            raise AgentError(self._refusal(os.strerror(error.errno or 0))) from error
        try:
            found = os.fstat(fd)
            if found.st_uid not in (0, os.geteuid()):
                raise AgentError(self._refusal(f"it belongs to uid {found.st_uid}"))
            if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not found.st_mode & stat.S_ISVTX:
                raise AgentError(self._refusal("it can be written by others"))
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise AgentError(
                    f"another agent takes in the segments of {self._directory}; stop it, or give "
                    "this one another --directory"
                ) from None
            self._remove_remains(fd)
        except BaseException:
            os.close(fd)
            raise
        self.close()
        self._fd = fd

    def _refusal(self, reason: str) -> str:
        return (
            f"state cannot be kept in {self._directory}: {reason}; choose another file with "
            "OPSCOPE_STATE, or OPSCOPE_STATE=none to go without"
        )

    def _remove_remains(self, fd: int) -> None:
        """Files that an agent was writing when it ended."""
        for name in os.listdir(fd):
            if name.startswith(f"{self._name}.") and name.endswith(".new"):
                with suppress(OSError):
                    os.unlink(name, dir_fd=fd)

    def load(self) -> bytes | None:
        """What was saved last; None: nothing ever. Raises StateError where it cannot be read."""
        try:
            fd = os.open(self._name, _READ, dir_fd=self._fd)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StateError(os.strerror(error.errno or 0)) from error
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
                raise StateError(f"it is no file of uid {os.geteuid()}")
            if found.st_size > _BYTES_LIMIT:
                raise StateError(f"it has {found.st_size} bytes")
            with os.fdopen(fd, "rb", closefd=False) as file:
                return file.read(_BYTES_LIMIT + 1)
        except OSError as error:
            raise StateError(os.strerror(error.errno or 0)) from error
        finally:
            os.close(fd)

    def save(self, raw: bytes) -> None:
        """Replaces the file whole. Raises OSError; then it is as it was.

        Not synced to a disk: it need outlive the agent, and not the host.
        """
        if not self._is_where_it_was():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self._directory)
        name = f"{self._name}.{secrets.token_hex(8)}.new"
        fd = os.open(name, _WRITE, 0o600, dir_fd=self._fd)
        try:
            try:
                left = memoryview(raw)
                while left:
                    left = left[os.write(fd, left) :]
            finally:
                os.close(fd)
            os.rename(name, self._name, src_dir_fd=self._fd, dst_dir_fd=self._fd)
        except OSError:
            with suppress(OSError):
                os.unlink(name, dir_fd=self._fd)
            raise

    def _is_where_it_was(self) -> bool:
        """Whether the directory has not been removed; if so, it is made and claimed anew."""
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

    def spoil(self) -> None:
        """Makes what was saved worthless, as it no longer holds: an empty file takes no room."""
        with suppress(OSError):
            fd = os.open(
                self._name,
                os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC,
                dir_fd=self._fd,
            )
            try:
                os.ftruncate(fd, 0)
            finally:
                os.close(fd)

    def close(self) -> None:
        """Gives up the claim."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
