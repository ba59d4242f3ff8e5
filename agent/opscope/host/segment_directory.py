"""The segment files of one directory between passes: which to read, and which have ended.

A damaged file is counted and skipped; its earlier contents stay counted. The directory of a hostile
user costs no more than the user's budget of time and memory (budgets.py): files beyond the budget
are counted as "too-much", and read once there is room. host.py handles the files that have ended.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice

from opscope.host.budgets import Budgets
from opscope.host.key_tables import KeyTables
from opscope.host.moved_rows import MovedRows
from opscope.host.processor_time import KnownTimes
from opscope.host.tracked_segment import TrackedSegment
from opscope.segments import directories, liveness, segment_file
from opscope.segments.dictionary import Dictionary
from opscope.segments.liveness import Here
from opscope.segments.segment import Header, read_changed, read_header, read_segment, used
from opscope.segments.segment_file import Reader, SegmentError

# A name that begins with a dot belongs to a file that is incomplete, perhaps for ever.
_SEGMENT = re.compile(r"\.?(\d{1,10})-(\d{1,20})-[0-9a-f]{16}\.seg")
# Files that a process leaves beside its segment.
_BESIDE = re.compile(r"(\.?\d{1,10}-\d{1,20}-[0-9a-f]{16}\.seg)\.[a-z]{1,16}")
# Minimum age before a damaged file of an ended process is removed, since it may be incomplete; and
# before a file beside a removed segment is, since a reader may have it open.
_REMAINS_AGE_S = 60.0
# Segments of ended processes in another version's format are kept for its agent, up to a limit.
_PARKED_FILES, _PARKED_BYTES = 64, 8 << 20

_FILE_LIMIT = 16_384
# A sweep pays off after this many new files, or after this share of the known ones.
_SWEEP_FILES, _SWEEP_SHARE = 32, 4


@dataclass
class Reading:
    """State that all directories of a host share while they are read."""

    tables: KeyTables
    bad: Counter[tuple[str]]
    here: Here
    consume: bool
    by_process: bool
    pids: Collection[int] | None
    budgets: Budgets
    resumed: dict[str, dict[str, MovedRows]]
    """By directory and name, what an earlier agent knew of files not yet read."""
    processor_times: KnownTimes = field(default_factory=KnownTimes)
    files_read: int = 0
    files_discarded: int = 0
    """Segments of another version that were removed unread, beyond the limit."""


@dataclass
class PassResult:
    """What one read of a directory settled."""

    over: list[str]
    """Names of files whose process has ended and which were read completely."""
    vanished: list[TrackedSegment]
    """Contents of files that have disappeared."""
    remains: list[str]
    """Names of files that belong to no live process and contain nothing to count."""


class SegmentDirectory:
    def __init__(self, path: str, reading: Reading, user: int) -> None:
        """`user`: the owner of the directory."""
        self.path = path
        self.user = self.admitted_user = user
        self.is_behind = False
        """Its user's turn ended before all files were read."""
        self.last_turn = 0
        self.tracked: dict[str, TrackedSegment] = {}
        self._reading = reading
        self._is_bad = False
        self._changed_ns = -1
        self._count = 0
        self._last_read = ""
        self._sweep_goes_on = False
        self.parked: dict[str, tuple[int, int]] = {}
        """Segments of ended processes in another version's format: by name, the time of the last
        change in ns, and the size in bytes."""

    def read(self, taken: Collection[str], now_ns: int, deadline: float) -> PassResult:
        """Reads all files except `taken`, until `deadline` (monotonic clock, seconds), but at least
        one. No contents of a file can make it raise."""
        found = PassResult([], [], [])
        try:
            with directories.opened(self.path) as fd:
                self._changed_ns = os.fstat(fd).st_mtime_ns
                listed = _listed(fd)
                names = self._wanted(listed)
                if len(listed) == _FILE_LIMIT:
                    self._note_directory("too-much")
                self._read_files(names, fd, taken, now_ns, found, deadline)
                self._find_remains(listed, fd, now_ns, found)
                self._discard_parked(names, found)
                self._forget_resumed(names)
                for name in self.tracked.keys() - names.keys():
                    if not (len(listed) == _FILE_LIMIT and _is_there(name, fd)):
                        found.vanished += self._forgotten(name)
        except FileNotFoundError:
            for name in [*self.tracked]:
                found.vanished += self._forgotten(name)
        except (SegmentError, OSError) as error:
            self._note_directory(error.reason if isinstance(error, SegmentError) else "unreadable")
        return found

    def sweep(self, taken: Collection[str], now_ns: int, deadline: float) -> PassResult:
        """Reads files of ended processes if many files have appeared, or if the last sweep ran out
        of time; otherwise nothing.

        Costs one `stat` if the directory has not changed.
        """
        found = PassResult([], [], [])
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
                self._read_files(names, fd, taken, now_ns, found, deadline, is_sweep=True)
        except (SegmentError, OSError):
            return found  # the next pass reports the reason
        return found

    def forget(self, name: str) -> TrackedSegment | None:
        """Stops tracking the file; returns its last contents."""
        return next(iter(self._forgotten(name)), None)

    def _forget_resumed(self, names: Collection[str]) -> None:
        resumed = self._reading.resumed.get(self.path)
        if resumed is not None:
            for name in resumed.keys() - {*names}:
                del resumed[name]
            if not resumed:
                del self._reading.resumed[self.path]

    def _forgotten(self, name: str) -> list[TrackedSegment]:
        file = self.tracked.pop(name, None)
        if file is None:
            return []
        self._reading.budgets.files.take(file.user, -1)
        self._reading.budgets.bytes.take(file.user, -file.budgeted_bytes)
        return [file]

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
        found: PassResult,
        deadline: float,
        is_sweep: bool = False,
    ) -> None:
        directory = os.fstat(fd)
        self.user = directory.st_uid
        is_shared = directories.is_shared(directory)
        for name in self._in_turn(names):
            if name in taken:
                continue
            file = self.tracked.get(name)
            if file is None:
                user = _user_of(name, fd) if is_shared else self.user
                if not self._reading.budgets.files.asks(user):
                    continue
                file = self.tracked[name] = TrackedSegment(*names[name], user)
                file.moved = self._reading.resumed.get(self.path, {}).pop(name, file.moved)
            if not file.is_over and not file.skips():
                self._read_file(name, fd, file, now_ns, found, is_sweep)
            if file.is_over and self._reading.consume:
                found.over.append(name)
            if time.monotonic() > deadline:
                self._last_read = name
                self._sweep_goes_on = is_sweep
                self._note_directory("too-much")
                self.is_behind = True
                break
        self._count = len(names) - len(found.over) - len(found.remains)

    def _in_turn(self, names: Iterable[str]) -> Iterator[str]:
        """All names, starting after the last one that an earlier read reached in time."""
        if not self._last_read:
            yield from names
            return
        ordered = sorted(names)
        last, self._last_read = self._last_read, ""
        yield from (name for name in ordered if name > last)
        yield from (name for name in ordered if name <= last)

    def _read_file(
        self,
        name: str,
        fd: int,
        file: TrackedSegment,
        now_ns: int,
        found: PassResult,
        is_sweep: bool,
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
                # Checked before the read: all that an ended process wrote is then in the file.
                is_over = liveness.is_over(read, header, reading.here)
                if is_sweep and not is_over:
                    return
                reading.files_read += 1
                room = reading.budgets.bytes
                try:
                    if not room.has_room(file.user) and used(read, header) > file.used:
                        raise SegmentError("too-much", f"{self.path}: no memory for more")
                    self._take(read, header, file, is_over, now_ns)
                finally:
                    before, file.budgeted_bytes = file.budgeted_bytes, file.nbytes
                    room.take(file.user, file.budgeted_bytes - before)
        except FileNotFoundError:
            return
        except SegmentError as error:
            self._note_bad(name, fd, file, error.reason, now_ns, found)
            return
        except Exception:
            # An error in one file does not stop the reading of others.
            self._note_bad(name, fd, file, "failed", now_ns, found)
            return
        file.bad_reads = 0

    def _take(
        self, read: Reader, header: Header, file: TrackedSegment, is_over: bool, now_ns: int
    ) -> None:
        reading = self._reading
        if file.dictionary is None:
            file.dictionary = Dictionary()
        segment = read_changed(read, header, file.dictionary, None if is_over else file.mark)
        if not is_over:
            file.processor.read(header, reading.tables.containers.pids, reading.processor_times)
        if segment is None:
            if file.stays(header, now_ns, reading.tables):
                return
            segment = read_segment(read, header, file.dictionary)
        file.mark = None  # until all of it is taken
        file.take(segment, not is_over, now_ns, reading.tables, reading.by_process)

    # ---- damaged and foreign files ----------------------------------------------------------

    def _note_bad(
        self, name: str, fd: int, file: TrackedSegment, reason: str, now_ns: int, found: PassResult
    ) -> None:
        if reason != "unfinished":
            if reason not in file.bad_reasons:
                file.bad_reasons |= {reason}
                self._reading.bad[reason,] += 1
            file.bad_reads = min(file.bad_reads + 1, 16)
        if self._reading.consume and self._is_abandoned(name, fd, file, now_ns):
            if file.contribution is not None:
                found.over.append(name)
            elif reason == "version":
                self._park(name, fd)
            else:
                found.remains.append(name)

    def _park(self, name: str, fd: int) -> None:
        with suppress(OSError):
            there = os.stat(name, dir_fd=fd, follow_symlinks=False)
            self.parked[name] = there.st_mtime_ns, 512 * there.st_blocks

    def _discard_parked(self, names: Collection[str], found: PassResult) -> None:
        """Marks the oldest parked files beyond the limit for removal."""
        self.parked = {name: one for name, one in self.parked.items() if name in names}
        nbytes = sum(size for _, size in self.parked.values())
        for name in sorted(self.parked, key=self.parked.__getitem__):
            if len(self.parked) <= _PARKED_FILES and nbytes <= _PARKED_BYTES:
                break
            nbytes -= self.parked.pop(name)[1]
            found.remains.append(name)
            self._reading.files_discarded += 1

    def _is_abandoned(self, name: str, fd: int, file: TrackedSegment, now_ns: int) -> bool:
        """Whether an unreadable file is old and its process has ended."""
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

    def _find_remains(self, names: list[str], fd: int, now_ns: int, found: PassResult) -> None:
        """Finds files beside segments that have been removed."""
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


def _user_of(name: str, fd: int) -> int:
    try:
        return os.stat(name, dir_fd=fd, follow_symlinks=False).st_uid
    except OSError:
        return 0


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


def _check_identity(name: str, file: TrackedSegment, header: Header) -> None:
    random = int.from_bytes(header.random_id[:8], "little")
    is_named = name.endswith(f"-{random:016x}.seg")
    if (header.pid, header.process_start) != (file.pid, file.process_start) or not is_named:
        raise SegmentError("identity", "the header names another process than the file")
