"""Which directories hold the segments of this host, and how to open one without trusting it.

A directory named opscope-<uid> must belong to that user, so that nobody can pass segments off as
somebody else's; none may be a symbolic link, or writable by others unless sticky like /dev/shm.
"""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from opscope.agent.segment_file import SegmentError
from opscope.attachment import ledger

_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OF_USER = re.compile(r"opscope-(\d+)")


def exactly(places: Sequence[str]) -> tuple[str, ...]:
    """Glob patterns for just these directories."""
    return tuple(glob.escape(os.path.abspath(place)) for place in places)


def patterns(directory: str) -> tuple[str, ...]:
    """Glob patterns for what an agent with this setting reads: that directory, and for root, where
    it is opscope-0, those of all users beside it."""
    parent, name = os.path.split(directory)
    if os.geteuid() == 0 and name == "opscope-0":
        return (f"{glob.escape(parent)}/opscope-*",)
    return exactly([directory])


def find(wanted: Sequence[str]) -> list[str]:
    """The directories that match the patterns now, each once."""
    return list(dict.fromkeys(path for pattern in wanted for path in sorted(glob.glob(pattern))))


def find_ledgers(wanted: Sequence[str]) -> list[str]:
    """Where reasons (attachment/ledger.py) of those who write into these directories may be: there,
    or in the fallback of this user, for root of all users; each a directory that can be trusted."""
    uid = "[0-9]*" if os.geteuid() == 0 else os.geteuid()
    found = find((*wanted, ledger.FALLBACK.format(uid=uid)))
    return [path for path in found if _is_trusted(path)]


def _is_trusted(path: str) -> bool:
    try:
        with opened(path):
            return True
    except (FileNotFoundError, SegmentError):
        return False


@contextmanager
def opened(path: str) -> Iterator[int]:
    """A descriptor of the directory, closed at the end.

    Raises FileNotFoundError where there is none, SegmentError where it is not to be trusted.
    """
    try:
        fd = os.open(path, _FLAGS)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise SegmentError("unreadable", f"{path}: {os.strerror(error.errno or 0)}") from error
    try:
        _check(path, os.fstat(fd))
        yield fd
    finally:
        os.close(fd)


def _check(path: str, found: os.stat_result) -> None:
    of_user = _OF_USER.fullmatch(os.path.basename(path.rstrip("/")))
    if of_user and found.st_uid != int(of_user[1]):
        raise SegmentError("owner", f"{path} belongs to uid {found.st_uid}")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not found.st_mode & stat.S_ISVTX:
        raise SegmentError("owner", f"{path} can be written by others")
