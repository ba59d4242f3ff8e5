"""Set running recorders from outside: write their control blocks and read their answers.

A controller writes the control block (native/SEGMENT.md), a page of the process's segment. The
process polls that page at least once a second and writes its answer into the next block. Write
permission on the file is the right to control the process: only its owner and root have it.

Other modules cover the meaning of settings (record/settings_change.py), processes that start later
(attachment/settings_file.py) and the command's output (cli/set.py).
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from opscope._native import ffi, lib
from opscope.errors import OpscopeError
from opscope.host.budgets import Turns
from opscope.host.pid_namespaces import Pids
from opscope.record.settings_change import BITS, SettingsChange
from opscope.segments import directories, layout, liveness, segment_file
from opscope.segments.segment import Header, read_header, read_notes
from opscope.segments.segment_file import SegmentError

_NAME = re.compile(r"(\d{1,10})-(\d{1,20})-([0-9a-f]{16})\.seg")
_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MASK = (1 << 64) - 1

_WHO = "only its owner and root can change its settings"


class ControlError(OpscopeError):
    """A process cannot be controlled; the text names the process and the reason."""


class BusyError(ControlError):
    """Another controller holds the control block now."""


EXPECTED = (OpscopeError, OSError)
"""Exceptions that a damaged or hostile file can cause."""
UNFORESEEN = "unexpected error, please report it"
"""Prefix of the text for any other exception."""


class FoundProcess(NamedTuple):
    """A live segment."""

    path: str
    header: Header
    notes: Mapping[str, str]
    pid: int
    """The process's pid in this namespace; if that is not visible, in the process's own one."""

    @property
    def process(self) -> tuple[int, int, int]:
        """Identifies the process: equal for all its segments."""
        return self.header.pid_namespace, self.header.pid, self.header.process_start

    @property
    def program(self) -> str:
        return self.notes.get("program", "?")

    @property
    def service(self) -> str:
        return self.notes.get("service.name") or self.notes.get("program") or "unknown"


class Answer(NamedTuple):
    """The process's answer to the last settings written to it, if any."""

    asked_serial: int
    answered_serial: int
    status: int
    refused: int

    @property
    def is_pending(self) -> bool:
        return self.answered_serial != self.asked_serial

    @property
    def is_refused(self) -> bool:
        return not self.is_pending and self.status != 0

    def text(self) -> str:
        if self.is_pending:
            return "pending: applies when the process runs its next operator"
        if not self.is_refused:
            return "in force"
        keys = [key for key, bits in BITS.items() if bits & self.refused and key != "windows"]
        known = self.status < 1 << 15
        reason = ffi.string(lib.opscope_status_text(-self.status)).decode() if known else "unknown"
        return f"refused, nothing changed: {', '.join(keys) or 'settings'}: {reason}"


def find(patterns: Sequence[str], problems: list[str] | None = None) -> list[FoundProcess]:
    """The segments of live processes in the directories that match `patterns`, sorted by pid.

    Skips damaged files. Each user's files get a share of a few seconds; `problems` gets one text
    for each user whose share did not suffice.
    """
    here, pids = liveness.here(), Pids()
    of_users: dict[int, list[str]] = {}
    for directory in directories.find(patterns):
        user = directories.owner(directory)
        if user is not None:
            of_users.setdefault(user, []).append(directory)
    found = []
    for user, deadline in Turns().of(of_users):
        for one in _of_directories(of_users[user], here, pids):
            if one is not None:
                found.append(one)
            if time.monotonic() > deadline:
                if problems is not None:
                    problems.append(f"uid {user} has too many files: some were skipped")
                break
    return sorted(found, key=lambda one: (one.pid, one.path))


def _of_directories(
    wanted: Sequence[str], here: liveness.Here, pids: Pids
) -> Iterator[FoundProcess | None]:
    """The segment of each file, or None."""
    for directory in wanted:
        try:
            with directories.opened(directory) as fd, os.scandir(fd) as entries:
                for entry in entries:
                    yield _read(entry.name, fd, directory, here, pids)
        except (OSError, SegmentError):
            continue


def by_pid(processes: Sequence[FoundProcess], pid: int) -> list[FoundProcess]:
    """The segments of the process with this pid; empty if there is no such process.

    Raises ControlError if several containers have this pid and their pids here are not visible.
    """
    found = [one for one in processes if one.pid == pid]
    if len({one.process for one in found}) > 1:
        services = ", ".join(sorted({one.service for one in found}))
        raise ControlError(
            f"pid {pid}: processes of several pid namespaces have this pid ({services}), and their "
            "pids here are not visible; select them by --service, or run this in their container"
        )
    return found


def _read(
    name: str, directory_fd: int, directory: str, here: liveness.Here, pids: Pids
) -> FoundProcess | None:
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    try:
        with segment_file.opened(name, directory_fd) as file:
            header = read_header(file)
            if not _is_named(match, header) or liveness.is_over(file, header, here):
                return None
            notes = read_notes(file, header)
    except Exception:
        return None  # the agent counts the file, with its reason
    pid = pids.pid_here(header.pid_namespace, header.pid, header.process_start) or header.pid
    return FoundProcess(os.path.join(directory, name), header, notes, pid)


def _is_named(match: re.Match[str], header: Header) -> bool:
    random = int.from_bytes(header.random_id[:8], "little")
    return match.groups() == (str(header.pid), str(header.process_start), f"{random:016x}")


class Segment:
    """A segment's control block, open for reading and writing."""

    def __init__(self, fd: int, found: FoundProcess) -> None:
        self._fd = fd
        self.found = found

    def requested(self) -> SettingsChange:
        """The settings in the block; empty if no controller can have written them."""
        block = self._block()
        keys = bytes(block["label_keys"]).split(b"\0")[0]
        said = SettingsChange(
            given=int(block["given"]),
            enabled=bool(block["enabled"]),
            sampling_prob_ppt=int(block["sampling_prob_ppt"]),
            window_ns=int(block["window_ns"]),
            period_ns=int(block["period_ns"]),
            max_overhead_ppb=int(block["max_overhead_ppb"]),
            label_keys=keys.decode(errors="replace"),
        )
        return said if said.is_possible else SettingsChange()

    def answer(self) -> Answer:
        answer = self._struct(layout.ANSWER, layout.ANSWER_OFFSET)
        return Answer(
            int(self._block()["settings_serial"]),
            int(answer["settings_serial"]),
            int(answer["settings_status"]),
            int(answer["refused"]),
        )

    def trace_answer(self) -> tuple[int, int]:
        """The serial number of the last trace request that the process has read, and its status:
        0 or a negated status of opscope/status.h."""
        answer = self._struct(layout.ANSWER, layout.ANSWER_OFFSET)
        return int(answer["trace_serial"]), int(answer["trace_status"])

    def set(self, wanted: SettingsChange) -> None:
        """Merges `wanted` into the settings in the block; the process picks it up by itself.

        Raises the same errors as `change`.
        """

        def change(block: Any) -> None:
            merged = wanted.over(self.requested())
            for name, value in merged._asdict().items():
                block[name] = value.encode() if isinstance(value, str) else value
            block["settings_serial"] = following(block["settings_serial"])

        self.change(change)

    def change(self, change: Callable[[Any], None]) -> None:
        """Changes fields of the block (a NumPy record of layout.CONTROL) as one transaction.

        Raises BusyError if another controller holds the block.
        """
        with self._locked():
            block = self._block()
            serial = int(block["serial"])
            # Odd during a write; an odd number at rest is from a writer that was killed.
            self._write(np.uint64(serial | 1).tobytes(), 0)
            change(block)
            rest = layout.CONTROL.fields["settings_serial"][1]  # type: ignore[index]
            self._write(block.tobytes()[rest:], rest)
            self._write(np.uint64(((serial | 1) + 1) & _MASK).tobytes(), 0)

    def _block(self) -> Any:
        return self._struct(layout.CONTROL, layout.CONTROL_OFFSET)

    def _struct(self, dtype: np.dtype[Any], offset: int) -> Any:
        raw = os.pread(self._fd, dtype.itemsize, offset)
        if len(raw) < dtype.itemsize:
            raise ControlError(f"pid {self.found.pid}: {self.found.path} is truncated")
        return np.frombuffer(bytearray(raw), dtype, count=1)[0]

    def _write(self, data: bytes, offset: int) -> None:
        os.pwrite(self._fd, data, layout.CONTROL_OFFSET + offset)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Admits one controller at a time. Not by flock, which shows that the process lives."""
        place = (layout.CONTROL.itemsize, layout.CONTROL_OFFSET)
        try:
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB, *place)
        except (BlockingIOError, PermissionError):
            raise BusyError(
                f"pid {self.found.pid}: another opscope holds its control block; try again, or "
                "stop that one"
            ) from None
        try:
            yield
        finally:
            fcntl.lockf(self._fd, fcntl.LOCK_UN, *place)


def following(serial: Any) -> int:
    """The next serial number; never 0, which means "no request"."""
    return (int(serial) + 1) & _MASK or 1


@contextmanager
def opened(found: FoundProcess) -> Iterator[Segment]:
    """Opens the segment's control block. Raises ControlError if it is gone or not writable."""
    with directories.opened(os.path.dirname(found.path)) as directory_fd:
        fd = _open(found, directory_fd)
        try:
            yield Segment(fd, found)
        finally:
            os.close(fd)


def _open(found: FoundProcess, directory_fd: int) -> int:
    """Opens for reading first: opening a wrong file (a device) for writing can have effects."""
    name, where = os.path.basename(found.path), f"pid {found.pid}"
    try:
        looked = os.open(name, os.O_RDONLY | _FLAGS, dir_fd=directory_fd)
    except OSError as error:
        raise ControlError(f"{where}: {_why(found, error)}") from error
    try:
        _check(found, os.fstat(looked), os.fstat(directory_fd))
        header = read_header(segment_file.File(looked))
        if header.random_id != found.header.random_id or header.is_closed:
            raise ControlError(f"{where}: its recorder has stopped")
        # The same file as the one found, even if another file has its name now.
        return os.open(f"/proc/self/fd/{looked}", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    except SegmentError as error:
        raise ControlError(f"{where}: {found.path} is not a segment any more: {error}") from error
    except OSError as error:
        raise ControlError(f"{where}: {_why(found, error)}") from error
    finally:
        os.close(looked)


def _check(found: FoundProcess, file: os.stat_result, directory: os.stat_result) -> None:
    shared = directory.st_uid == 0 and directory.st_mode & stat.S_ISVTX
    wrong = {
        "not a regular file": not stat.S_ISREG(file.st_mode),
        f"owned by uid {file.st_uid}, in a directory of uid {directory.st_uid}": (
            file.st_uid != directory.st_uid and not shared
        ),
        f"owned by uid {file.st_uid}, but names uid {found.header.uid}": file.st_uid
        != found.header.uid,
        f"linked under {file.st_nlink} names": file.st_nlink != 1,
    }
    for what, holds in wrong.items():
        if holds:
            raise ControlError(f"pid {found.pid}: {found.path} is {what}: not touched")


def _why(found: FoundProcess, error: OSError) -> str:
    if error.errno == errno.ENOENT:
        return "it has ended"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"it belongs to uid {found.header.uid}: {_WHO}"
    if error.errno in (errno.ELOOP, errno.ENXIO):
        return f"{found.path} is not a regular file: not touched"
    return f"{found.path}: {os.strerror(error.errno or 0)}"
