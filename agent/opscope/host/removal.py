"""Remove the files that are in the sums, once the sums are saved: `remove(taken)`."""

from __future__ import annotations

import errno
import os

from opscope.segments import directories
from opscope.segments.segment_file import SegmentError


def remove(taken: dict[str, set[str]]) -> int:
    """Removes these files, by directory, and their names here; failed ones stay for the next time.

    Returns the number of removed files.
    """
    removed = 0
    for path, names in [*taken.items()]:
        try:
            with directories.opened(path) as fd:
                for name in [*names]:
                    removed += _remove_file(name, fd, names)
        except FileNotFoundError:
            names.clear()
        except (OSError, SegmentError):
            continue
        if not names:
            del taken[path]
    return removed


def _remove_file(name: str, fd: int, names: set[str]) -> bool:
    try:
        os.unlink(name, dir_fd=fd)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.EISDIR):
            names.discard(name)
        return False
    names.discard(name)
    return True
