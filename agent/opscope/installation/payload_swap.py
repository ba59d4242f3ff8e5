"""Replace the parts of a payload in its directory: all or none.

The new parts are made in UNFINISHED/new, within the payload's directory. Then the earlier parts
move to UNFINISHED/out, which becomes UNFINISHED/old once it is complete; the new ones move to their
places; and UNFINISHED/old becomes UNFINISHED/trash, which completes the swap. `undo()` rolls back
from any point before that, for this process or for one that was killed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from opscope.errors import OpscopeError

UNFINISHED = ".opscope-unfinished"


@contextmanager
def claimed(target: Path) -> Iterator[None]:
    """Locks this directory. Raises OpscopeError if another opscope is changing it."""
    fd = os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise OpscopeError(
            f"another opscope is changing {target}; try again when it has finished"
        ) from error
    finally:
        os.close(fd)


def begin(target: Path) -> Path:
    """Returns an empty directory for the new parts."""
    new = target / UNFINISHED / "new"
    new.mkdir(parents=True)
    return new


def swap(target: Path, order: Sequence[str]) -> None:
    """Replaces the parts, in this order; removes earlier parts that have no new version."""
    work = target / UNFINISHED
    (work / "out").mkdir()
    for name in reversed(order):
        if os.path.lexists(target / name):
            os.rename(target / name, work / "out" / name)
    os.rename(work / "out", work / "old")
    for name in order:
        if os.path.lexists(work / "new" / name):
            os.rename(work / "new" / name, target / name)
    os.rename(work / "old", work / "trash")
    shutil.rmtree(work, ignore_errors=True)


def undo(target: Path, order: Sequence[str]) -> None:
    """Undoes begin() and swap(), of this process or an earlier one."""
    work = target / UNFINISHED
    if not work.is_dir():
        return
    if (work / "old").is_dir():
        for name in reversed(order):
            _remove(target / name)
        os.rename(work / "old", work / "out")
    for name in order:
        if os.path.lexists(work / "out" / name):
            os.rename(work / "out" / name, target / name)
    shutil.rmtree(work)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
