"""Replace a file atomically: a reader finds the old content or the new one, never a mixture.

`replace_file()` creates a new file beside the old one, exclusively and without following links,
writes it, and renames it over the old one. On any error the old file is unchanged and the new one
is removed. A process that is killed in between leaves the new file; `remove_remains()` removes it.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Some network and FUSE file systems cannot sync a directory.
_CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP)


def replace_file(
    path: str,
    content: bytes | memoryview,
    *,
    directory_fd: int | None = None,
    mode: int | None = None,
    durable: bool = False,
) -> None:
    """Replaces the file at `path`, or creates it. Raises OSError; the old file is then unchanged,
    unless only the sync of its directory has failed.

    `path`: a name within `directory_fd` if that is given. `mode`: mode of the new file, independent
    of the umask. None keeps mode and owner of the old file; without a regular old file, the umask
    applies. A symbolic link at `path` is replaced, not followed. `durable`: content and name are on
    the disk when this returns.
    """
    with _directory(path, directory_fd) as (name, fd):
        new = f"{name}.{os.urandom(8).hex()}.new"
        try:
            file = os.open(new, _WRITE, 0o666 if mode is None else mode & 0o600, dir_fd=fd)
            try:
                _set_mode(file, mode, name, fd)
                left = memoryview(content)
                while left:
                    left = left[os.write(file, left) :]
                if durable:
                    os.fsync(file)
            finally:
                os.close(file)
            os.rename(new, name, src_dir_fd=fd, dst_dir_fd=fd)
        except BaseException:
            with suppress(OSError):
                os.unlink(new, dir_fd=fd)
            raise
        if durable:
            sync_directory(fd)


def remove_remains(path: str, *, directory_fd: int | None = None, age_s: float = 0.0) -> None:
    """Removes temporary files of this file's killed writers that are at least `age_s` seconds old.

    The caller must know that no process has been writing the file for that time.
    """
    remains = re.compile(re.escape(os.path.basename(path)) + r"\.[0-9a-f]{16}\.new")
    with suppress(OSError), _directory(path, directory_fd) as (_, fd):
        for name in filter(remains.fullmatch, os.listdir(fd)):
            with suppress(OSError):
                found = os.stat(name, dir_fd=fd, follow_symlinks=False)
                if time.time() - found.st_mtime >= age_s:
                    os.unlink(name, dir_fd=fd)


def sync_directory(fd: int) -> None:
    """Writes the names in this directory to the disk, if the file system supports it."""
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise


@contextmanager
def _directory(path: str, directory_fd: int | None) -> Iterator[tuple[str, int]]:
    """The file's name, and a descriptor of its directory."""
    if directory_fd is not None:
        yield path, directory_fd
        return
    directory, name = os.path.split(path)
    fd = os.open(directory or ".", _DIRECTORY)
    try:
        yield name, fd
    finally:
        os.close(fd)


def _set_mode(file: int, mode: int | None, name: str, directory_fd: int) -> None:
    if mode is not None:
        os.fchmod(file, mode)
        return
    try:
        old = os.stat(name, dir_fd=directory_fd, follow_symlinks=False)
    except FileNotFoundError:
        return
    if not stat.S_ISREG(old.st_mode):
        return
    now = os.fstat(file)
    if (old.st_uid, old.st_gid) != (now.st_uid, now.st_gid):
        # A user who may not change a file's owner becomes its owner, as with any editor.
        with suppress(PermissionError):
            os.fchown(file, old.st_uid, old.st_gid)
    os.fchmod(file, old.st_mode & 0o777)
