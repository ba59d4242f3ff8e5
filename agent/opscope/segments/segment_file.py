"""Open and read a segment file of another user, without trusting its name.

It is opened without following links and without blocking, must be a regular file of sane size that
belongs to the directory's owner, and is read with pread: a file that shrinks meanwhile causes a
short read, never SIGBUS. This module also checks the writer's lock; segment.py parses the bytes.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from opscope._native import lib
from opscope.errors import OpscopeError

# read(offset, size): at most `size` bytes from `offset` on; fewer at the end of the file.
Reader = Callable[[int, int], bytes]

# Not from layout.py, which imports NumPy: commands that read no segment start sooner.
SIZE_LIMIT: int = (
    lib.OPSCOPE_SEGMENT_HEADER_BYTES
    + lib.OPSCOPE_SEGMENT_CHUNK_LIMIT * lib.OPSCOPE_SEGMENT_CHUNK_BYTES
)

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class SegmentError(OpscopeError):
    """An unreadable segment. `reason` is one of REASONS; the text has details."""

    REASONS = (
        "empty",
        "truncated",
        "magic",
        "version",
        "corrupt",
        "identity",
        "oversized",
        "not-a-file",
        "owner",
        "unreadable",
        "unfinished",
        "too-much",
        "failed",
    )

    def __init__(self, reason: str, text: str = "") -> None:
        super().__init__(f"{reason}: {text}" if text else reason)
        self.reason = reason


class File:
    """An open segment file: a Reader that also checks the lock."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def __call__(self, offset: int, size: int) -> bytes:
        try:
            return os.pread(self._fd, size, offset)
        except OSError as error:
            raise SegmentError("unreadable", os.strerror(error.errno or 0)) from error

    def is_locked(self) -> bool | None:
        """Whether a process maps the file for writing; None if unknown.

        If no process does, the file stays locked for readers until it is closed.
        """
        try:
            fcntl.flock(self._fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return None
        return False


@contextmanager
def opened(name: str, directory_fd: int) -> Iterator[File]:
    """The file `name` in that directory, closed at the end.

    Raises FileNotFoundError if it has disappeared, SegmentError if it must not be read.
    """
    fd = _open(name, directory_fd)
    try:
        _check(os.fstat(fd), os.fstat(directory_fd))
        yield File(fd)
    finally:
        os.close(fd)


def _open(name: str, directory_fd: int) -> int:
    try:
        return os.open(name, _FLAGS, dir_fd=directory_fd)
    except FileNotFoundError:
        raise
    except OSError as error:
        reason = "not-a-file" if error.errno in (errno.ELOOP, errno.ENXIO) else "unreadable"
        raise SegmentError(reason, os.strerror(error.errno or 0)) from error


def _check(file: os.stat_result, directory: os.stat_result) -> None:
    if not stat.S_ISREG(file.st_mode):
        raise SegmentError("not-a-file")
    # In a directory like /dev/shm every user may have files, but only their own.
    shared = directory.st_uid == 0 and directory.st_mode & stat.S_ISVTX
    if file.st_uid != directory.st_uid and not shared:
        raise SegmentError("owner", f"uid {file.st_uid}")
    # Space is reserved in steps, so a file may be a little larger than its chunks.
    if file.st_size > 2 * SIZE_LIMIT:
        raise SegmentError("oversized", f"{file.st_size} bytes")
