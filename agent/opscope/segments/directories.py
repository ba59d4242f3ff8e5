"""Find the directories with this host's segments, and open them safely.

A directory named opscope-<uid> must belong to that user, so that no user can forge another one's
segments. No directory may be a symbolic link, or writable by others unless sticky like /dev/shm.
"""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from opscope import config
from opscope.attachment import ledger
from opscope.segments.segment_file import SegmentError

_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OF_USER = re.compile(r"opscope-(0|[1-9][0-9]{0,9})")


def exactly(places: Sequence[str]) -> tuple[str, ...]:
    """Glob patterns that match these directories only."""
    return tuple(glob.escape(os.path.abspath(place)) for place in places)


def patterns(directory: str) -> tuple[str, ...]:
    """Glob patterns of the directories that an agent with this setting reads: the directory itself;
    for root, if it is opscope-0, also those of all users beside it. If it is a default directory,
    all default directories: processes may have started before root prepared the better one."""
    known = config.default_directories()
    wanted = known if directory in known else (directory,)
    if os.geteuid() == 0 and os.path.basename(directory) == "opscope-0":
        return tuple(f"{glob.escape(os.path.dirname(path))}/opscope-*" for path in wanted)
    return exactly(wanted)


def free_names(parent: str) -> int:
    """Renames entries of `parent` that have the name of a user's directory but another owner;
    returns how many. Root has prepared `parent` for users' directories only."""
    if os.geteuid() != 0 or not config.is_runtime_directory(parent):
        return 0
    count = 0
    for path in find((f"{glob.escape(parent)}/opscope-*",)):
        user = user_of(path)
        try:
            found = os.lstat(path)
            if user is not None and not (stat.S_ISDIR(found.st_mode) and found.st_uid == user):
                os.rename(path, os.path.join(parent, f"taken-{os.urandom(8).hex()}"))
                count += 1
        except OSError:
            continue
    return count


def find(wanted: Sequence[str]) -> list[str]:
    """The directories that match the patterns now, each once.

    Without those whose name a terminal must not show: Opscope makes none, other users might.
    """
    found = (path for pattern in wanted for path in sorted(glob.glob(pattern)))
    return [path for path in dict.fromkeys(found) if os.path.basename(path).isprintable()]


def find_ledgers(known: Iterable[str]) -> list[str]:
    """Trusted directories that may hold ledgers (attachment/ledger.py) of the users who write into
    the known directories: these, and the fallback directory of this user, for root of all users."""
    uid = "[0-9]*" if os.geteuid() == 0 else os.geteuid()
    # One for each user, since only the user's own directory may have this name.
    fallback = filter(is_of_user, find((ledger.FALLBACK.format(uid=uid),)))
    return [path for path in dict.fromkeys((*known, *fallback)) if _is_trusted(path)]


def _is_trusted(path: str) -> bool:
    try:
        with opened(path):
            return True
    except (FileNotFoundError, SegmentError):
        return False


@contextmanager
def opened(path: str) -> Iterator[int]:
    """A descriptor of the directory, closed at the end.

    Raises FileNotFoundError if it does not exist, SegmentError if it cannot be trusted.
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


def is_of_user(path: str) -> bool:
    """Whether the path has the name of a user's directory."""
    return user_of(path) is not None


def user_of(path: str) -> int | None:
    """The user of the directory according to its name."""
    of_user = _OF_USER.fullmatch(os.path.basename(path.rstrip("/")))
    return None if of_user is None else int(of_user[1])


def is_shared(found: os.stat_result) -> bool:
    """Whether every user may create files in it and remove only their own, as in /dev/shm."""
    return found.st_uid == 0 and bool(found.st_mode & stat.S_ISVTX)


def owner(path: str) -> int | None:
    """The owner of the directory; None if it has disappeared."""
    try:
        return os.lstat(path).st_uid
    except OSError:
        return None


def _check(path: str, found: os.stat_result) -> None:
    if user_of(path) not in (None, found.st_uid):
        raise SegmentError("owner", f"{path} belongs to uid {found.st_uid}")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not found.st_mode & stat.S_ISVTX:
        raise SegmentError("owner", f"other users can write to {path}")
