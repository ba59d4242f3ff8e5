"""The segment files of one directory between passes: which are read, and which are over.

One bad file is counted and left out; what it said while it was good stays counted. A directory of
somebody who means ill costs a bounded time and a bounded memory: files beyond either are counted
as too much, and read once there is room. What becomes of a file that is over is in host.py.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from opscope.agent import directories, liveness, segment_file
from opscope.agent.dictionary import Dictionary
from opscope.agent.liveness import Here
from opscope.agent.segment import Header, read_header, read_segment
from opscope.agent.segment_file import SegmentError
from opscope.agent.tables import Tables
from opscope.agent.tracked import Tracked

# A name with a dot is of a file that is being made, or was when its process was killed.
_SEGMENT = re.compile(r"\.?(\d{1,10})-(\d{1,20})-[0-9a-f]{16}\.seg")
# What a process leaves beside its segment.
_BESIDE = re.compile(r"(\.?\d{1,10}-\d{1,20}-[0-9a-f]{16}\.seg)\.[a-z]{1,16}")
# A bad file of a dead process goes once it is this old: it may be one that is being made. What
# stood beside a segment may be being read by somebody.
_REMAINS_AGE_S = 60.0

_FILE_LIMIT = 16_384
_BYTES_LIMIT = 128 << 20
_SECONDS = 5.0
# A sweep is worth while once there are so many files more, or a share of those that are known.
_SWEEP_FILES, _SWEEP_SHARE = 32, 4


@dataclass
class Reading:
    """With what all directories of a host are read."""

    tables: Tables
    bad: Counter[tuple[str]]
    here: Here
    consume: bool
    by_process: bool
    pids: Collection[int] | None
    files_read: int = 0


@dataclass
class Found:
    """What one look at a directory found to be settled."""

    over: list[str]
    """Files whose process is gone and that are wholly read."""
    vanished: list[Tracked]
    """What is known of files that are there no more."""
    remains: list[str]
    """Files with nothing in them to be counted, of no process that lives."""


class Place:
    def __init__(self, path: str, reading: Reading) -> None:
        self.path = path
        self.tracked: dict[str, Tracked] = {}
        self._reading = reading
        self._nbytes = 0
        self._is_bad = False
        self._changed_ns = -1
        self._count = 0
        self._last_read = ""
        self._sweep_goes_on = False

    def read(self, taken: Collection[str], now_ns: int) -> Found:
        """Reads all files but those taken in before. Raises nothing that a file could cause."""
        found = Found([], [], [])
        try:
            with directories.opened(self.path) as fd:
                self._changed_ns = os.fstat(fd).st_mtime_ns
                listed = _listed(fd)
                names = self._wanted(listed)
                if len(listed) == _FILE_LIMIT:
                    self._note_directory("too-much")
                self._read_files(names, fd, taken, now_ns, found)
                self._find_remains(listed, fd, now_ns, found)
                for name in self.tracked.keys() - names.keys():
                    if not (len(listed) == _FILE_LIMIT and _is_there(name, fd)):
                        found.vanished.append(self.tracked.pop(name))
        except FileNotFoundError:
            found.vanished += self.tracked.values()
            self.tracked = {}
        except (SegmentError, OSError) as error:
            self._note_directory(error.reason if isinstance(error, SegmentError) else "unreadable")
        return found

    def sweep(self, taken: Collection[str], now_ns: int) -> Found:
        """Reads files of processes that are gone, where there have come many files, or the last
        sweep ran out of time; else nothing.

        Costs a look at the directory where no file has come or gone.
        """
        found = Found([], [], [])
        try:
            goes_on, self._sweep_goes_on = self._sweep_goes_on, False
            if not goes_on and os.stat(self.path).st_mtime_ns == self._changed_ns:
                return found
            with directories.opened(self.path) as fd:
                names = self._wanted(_listed(fd))
                grown = len(names) - self._count
                if not goes_on and grown < max(_SWEEP_FILES, self._count // _SWEEP_SHARE):
                    return found
                self._changed_ns = os.fstat(fd).st_mtime_ns
                self._read_files(names, fd, taken, now_ns, found, is_sweep=True)
        except (SegmentError, OSError):
            return found  # the next pass says why
        return found

    def forget(self, name: str) -> Tracked | None:
        """What was known of that file, which from now on is not."""
        file = self.tracked.pop(name, None)
        if file is not None:
            self._nbytes -= file.nbytes
        return file

    # ---- files ------------------------------------------------------------------------------

    def _wanted(self, names: Iterable[str]) -> dict[str, tuple[int, int]]:
        """The segments among the names, each with its pid and start time."""
        pids = self._reading.pids
        wanted = {}
        for name in names:
            match = _SEGMENT.fullmatch(name)
            if match and (pids is None or int(match[1]) in pids):
                wanted[name] = int(match[1]), int(match[2])
        return wanted

    def _read_files(
        self,
        names: dict[str, tuple[int, int]],
        fd: int,
        taken: Collection[str],
        now_ns: int,
        found: Found,
        is_sweep: bool = False,
    ) -> None:
        deadline = time.monotonic() + _SECONDS
        self._nbytes = sum(file.nbytes for file in self.tracked.values())
        for name in self._in_turn(names):
            if name in taken:
                continue
            file = self.tracked.get(name)
            if file is None:
                file = self.tracked[name] = Tracked(*names[name])
            if not file.is_over and not file.skips():
                self._read_file(name, fd, file, now_ns, found, is_sweep)
            if file.is_over and self._reading.consume:
                found.over.append(name)
            if time.monotonic() > deadline:
                self._last_read = name
                self._sweep_goes_on = is_sweep
                self._note_directory("too-much")
                break
        self._count = len(names) - len(found.over) - len(found.remains)

    def _in_turn(self, names: Iterable[str]) -> Iterator[str]:
        """All names, from where an earlier look ran out of time."""
        if not self._last_read:
            yield from names
            return
        ordered = sorted(names)
        last, self._last_read = self._last_read, ""
        yield from (name for name in ordered if name > last)
        yield from (name for name in ordered if name <= last)

    def _read_file(
        self, name: str, fd: int, file: Tracked, now_ns: int, found: Found, is_sweep: bool
    ) -> None:
        reading = self._reading
        if name.startswith("."):
            self._note_bad(name, fd, file, "unfinished", now_ns, found)
            return
        try:
            with segment_file.opened(name, fd) as read:
                if is_sweep and file.by_lock and read.is_locked():
                    return
                header = read_header(read)
                _check_identity(name, file, header)
                file.by_lock = header.by_lock
                # Looked up before the rest is read: what a dead process wrote is then all there.
                is_over = liveness.is_over(read, header, reading.here)
                if is_sweep and not is_over:
                    return
                reading.files_read += 1
                if file.dictionary is None:
                    file.dictionary = Dictionary()
                self._nbytes -= file.nbytes
                try:
                    if self._nbytes > _BYTES_LIMIT:
                        raise SegmentError("too-much", f"{self.path} takes too much memory")
                    segment = read_segment(read, header, file.dictionary)
                    file.take(segment, not is_over, reading.tables, reading.by_process)
                finally:
                    self._nbytes += file.nbytes
        except FileNotFoundError:
            return
        except SegmentError as error:
            self._note_bad(name, fd, file, error.reason, now_ns, found)
            return
        file.bad_looks = 0

    # ---- what is not as it should be --------------------------------------------------------

    def _note_bad(
        self, name: str, fd: int, file: Tracked, reason: str, now_ns: int, found: Found
    ) -> None:
        if reason != "unfinished":
            if reason not in file.bad_reasons:
                file.bad_reasons |= {reason}
                self._reading.bad[reason,] += 1
            file.bad_looks = min(file.bad_looks + 1, 16)
        if self._reading.consume and self._is_abandoned(name, fd, file, now_ns):
            (found.remains if file.contribution is None else found.over).append(name)

    def _is_abandoned(self, name: str, fd: int, file: Tracked, now_ns: int) -> bool:
        """Whether a file that cannot be read is old, and of a process that is gone."""
        here = self._reading.here
        if not liveness.is_dead(*here, file.pid, file.process_start, here):
            return False
        if not _is_old(name, fd, now_ns):
            return False
        try:
            with segment_file.opened(name, fd) as read:
                return not read.is_locked()
        except (OSError, SegmentError):
            return True

    def _find_remains(self, names: list[str], fd: int, now_ns: int, found: Found) -> None:
        """Files that stood beside segments that are gone."""
        if not self._reading.consume:
            return
        there = set(names) - set(found.over)
        for name in names:
            match = _BESIDE.fullmatch(name)
            if match and match[1] not in there and _is_old(name, fd, now_ns):
                found.remains.append(name)

    def _note_directory(self, reason: str) -> None:
        if not self._is_bad:
            self._is_bad = True
            self._reading.bad[reason,] += 1


def _listed(fd: int) -> list[str]:
    with os.scandir(fd) as entries:
        return [entry.name for entry in islice(entries, _FILE_LIMIT)]


def _is_there(name: str, fd: int) -> bool:
    try:
        os.stat(name, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _is_old(name: str, fd: int, now_ns: int) -> bool:
    try:
        found = os.stat(name, dir_fd=fd, follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and now_ns / 1e9 - found.st_mtime > _REMAINS_AGE_S


def _check_identity(name: str, file: Tracked, header: Header) -> None:
    random = int.from_bytes(header.random_id[:8], "little")
    is_named = name.endswith(f"-{random:016x}.seg")
    if (header.pid, header.process_start) != (file.pid, file.process_start) or not is_named:
        raise SegmentError("identity", "the header names another process than the file")
