"""Set running recorders from outside: write their control blocks, and read what they answer.

A process hears through the page of its segment that native/SEGMENT.md calls the control block; it
looks there within a second, and says in the block after it what became of it. Whoever may write the
file may control the process: its owner, and root. Not here: what a setting means (record/wish.py),
processes that are yet to start (attachment/settings_file.py), or what is printed (cli/set.py).
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
from opscope.agent import directories, layout, liveness, segment_file
from opscope.agent.dictionary import Dictionary
from opscope.agent.pid_namespaces import Pids
from opscope.agent.segment import Header, read_header, read_segment
from opscope.agent.segment_file import SegmentError
from opscope.errors import OpscopeError
from opscope.record.wish import BITS, Wish

_NAME = re.compile(r"(\d{1,10})-(\d{1,20})-([0-9a-f]{16})\.seg")
_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LOCK_WAIT_S = 1.0
_STEP_S = 0.01

_WHO = "only its owner and root may set it"


class ControlError(OpscopeError):
    """A process that cannot be controlled; the text says which and why."""


class Found(NamedTuple):
    """A live segment."""

    path: str
    header: Header
    notes: Mapping[str, str]
    pid: int
    """Of its process, as it is here; where that cannot be seen, in the process's own namespace."""

    @property
    def process(self) -> tuple[int, int, int]:
        """The same for all segments of a process."""
        return self.header.pid_namespace, self.header.pid, self.header.process_start

    @property
    def program(self) -> str:
        return self.notes.get("program", "?")

    @property
    def service(self) -> str:
        return self.notes.get("service.name") or self.notes.get("program") or "unknown"


class Answer(NamedTuple):
    """What became of the last settings that were written, if any were."""

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
            return "not yet: no operator has run since; it hears at its next"
        if not self.is_refused:
            return "in force"
        keys = [key for key, bits in BITS.items() if bits & self.refused and key != "windows"]
        known = self.status < 1 << 15
        reason = ffi.string(lib.opscope_status_text(-self.status)).decode() if known else "unknown"
        return f"refused, nothing changed: {', '.join(keys) or 'settings'}: {reason}"


def find(patterns: Sequence[str]) -> list[Found]:
    """The segments of live processes in those directories, by pid. Bad files are left out."""
    here, pids = liveness.here(), Pids()
    found = []
    for directory in directories.find(patterns):
        try:
            with directories.opened(directory) as fd:
                for name in os.listdir(fd):
                    one = _read(name, fd, directory, here, pids)
                    if one is not None:
                        found.append(one)
        except (FileNotFoundError, SegmentError, OSError):
            continue
    return sorted(found, key=lambda one: (one.pid, one.path))


def by_pid(processes: Sequence[Found], pid: int) -> list[Found]:
    """Those of the process with this pid; none where there is none of them.

    ControlError where it may be any of several: containers whose pids here cannot be seen.
    """
    found = [one for one in processes if one.pid == pid]
    if len({one.process for one in found}) > 1:
        services = ", ".join(sorted({one.service for one in found}))
        raise ControlError(
            f"pid {pid}: processes of several pid namespaces have it ({services}), and which pids "
            "they have here cannot be seen; name them by --service, or ask in their container"
        )
    return found


def _read(
    name: str, directory_fd: int, directory: str, here: liveness.Here, pids: Pids
) -> Found | None:
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    try:
        with segment_file.opened(name, directory_fd) as file:
            header = read_header(file)
            if not _is_named(match, header) or liveness.is_over(file, header, here):
                return None
            notes = read_segment(file, header, Dictionary()).dictionary.notes
    except (FileNotFoundError, SegmentError):
        return None
    pid = pids.pid_here(header.pid_namespace, header.pid, header.process_start) or header.pid
    return Found(os.path.join(directory, name), header, notes, pid)


def _is_named(match: re.Match[str], header: Header) -> bool:
    random = int.from_bytes(header.random_id[:8], "little")
    return match.groups() == (str(header.pid), str(header.process_start), f"{random:016x}")


class Segment:
    """A segment's control block, open to be written and to be read."""

    def __init__(self, fd: int, found: Found) -> None:
        self._fd = fd
        self.found = found

    def wish(self) -> Wish:
        """What the block says now."""
        block = self._block()
        keys = bytes(block["label_keys"]).split(b"\0")[0]
        return Wish(
            given=int(block["given"]),
            enabled=bool(block["enabled"]),
            sampling_prob_ppt=int(block["sampling_prob_ppt"]),
            window_ns=int(block["window_ns"]),
            period_ns=int(block["period_ns"]),
            max_overhead_ppb=int(block["max_overhead_ppb"]),
            label_keys=keys.decode(errors="replace"),
        )

    def answer(self) -> Answer:
        answer = self._struct(layout.ANSWER, layout.ANSWER_OFFSET)
        return Answer(
            int(self._block()["settings_serial"]),
            int(answer["settings_serial"]),
            int(answer["settings_status"]),
            int(answer["refused"]),
        )

    def trace_answer(self) -> tuple[int, int]:
        """The wish for a trace that the process has looked at last, and its status: 0, or minus a
        status of opscope/status.h."""
        answer = self._struct(layout.ANSWER, layout.ANSWER_OFFSET)
        return int(answer["trace_serial"]), int(answer["trace_status"])

    def set(self, wish: Wish) -> None:
        """Writes it over what the block says; the process hears of it by itself."""

        def change(block: Any) -> None:
            merged = wish.over(self.wish())
            for name, value in merged._asdict().items():
                block[name] = value.encode() if isinstance(value, str) else value
            block["settings_serial"] += 1

        self.change(change)

    def change(self, change: Callable[[Any], None]) -> None:
        """Changes fields of the block, numpy's record of layout.CONTROL, as one."""
        with self._locked():
            block = self._block()
            serial = int(block["serial"])
            # Odd while it is written; one that was left odd is of a writer that was killed.
            self._write(np.uint64(serial | 1).tobytes(), 0)
            change(block)
            rest = layout.CONTROL.fields["settings_serial"][1]  # type: ignore[index]
            self._write(block.tobytes()[rest:], rest)
            self._write(np.uint64((serial | 1) + 1).tobytes(), 0)

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
        """One controller at a time. Not by flock, which tells whether the process lives."""
        place = (layout.CONTROL.itemsize, layout.CONTROL_OFFSET)
        deadline = time.monotonic() + _LOCK_WAIT_S
        while True:
            try:
                fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB, *place)
                break
            except (BlockingIOError, PermissionError):
                if time.monotonic() > deadline:
                    raise ControlError(
                        f"pid {self.found.pid}: another opscope has held its control block for "
                        f"{_LOCK_WAIT_S:g} s; try again, or end that one"
                    ) from None
                time.sleep(_STEP_S)
        try:
            yield
        finally:
            fcntl.lockf(self._fd, fcntl.LOCK_UN, *place)


@contextmanager
def opened(found: Found) -> Iterator[Segment]:
    """The control block of that segment. ControlError where it is not ours to write, or is gone."""
    with directories.opened(os.path.dirname(found.path)) as directory_fd:
        fd = _open(found, directory_fd)
        try:
            yield Segment(fd, found)
        finally:
            os.close(fd)


def _open(found: Found, directory_fd: int) -> int:
    """Opened for reading first: opening the wrong thing for writing may do something by itself."""
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
        # The very file that was looked at, whatever has its name by now.
        return os.open(f"/proc/self/fd/{looked}", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    except SegmentError as error:
        raise ControlError(f"{where}: {found.path} is no segment any more: {error}") from error
    except OSError as error:
        raise ControlError(f"{where}: {_why(found, error)}") from error
    finally:
        os.close(looked)


def _check(found: Found, file: os.stat_result, directory: os.stat_result) -> None:
    shared = directory.st_uid == 0 and directory.st_mode & stat.S_ISVTX
    wrong = {
        "not a regular file": not stat.S_ISREG(file.st_mode),
        f"of uid {file.st_uid}, in a directory of uid {directory.st_uid}": (
            file.st_uid != directory.st_uid and not shared
        ),
        f"of uid {file.st_uid}, and says uid {found.header.uid}": file.st_uid != found.header.uid,
        f"there under {file.st_nlink} names": file.st_nlink != 1,
    }
    for what, holds in wrong.items():
        if holds:
            raise ControlError(f"pid {found.pid}: {found.path} is {what}: left alone")


def _why(found: Found, error: OSError) -> str:
    if error.errno == errno.ENOENT:
        return "it has ended"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"it belongs to uid {found.header.uid}: {_WHO}"
    if error.errno in (errno.ELOOP, errno.ENXIO):
        return f"{found.path} is not a regular file: left alone"
    return f"{found.path}: {os.strerror(error.errno or 0)}"


class Outcome(NamedTuple):
    """What became of a wish in one process."""

    found: Found
    done: bool
    text: str


def set_all(processes: Sequence[Found], wish: Wish, wait_s: float) -> list[Outcome]:
    """Sets them all, and waits up to `wait_s` seconds for all their answers."""
    outcomes: dict[str, Outcome] = {}
    for found in processes:
        try:
            with opened(found) as segment:
                segment.set(wish)
        except (ControlError, SegmentError, OSError) as error:
            outcomes[found.path] = Outcome(found, False, _said(found, error))
    deadline = time.monotonic() + wait_s
    while True:
        for found in processes:
            if found.path not in outcomes:
                outcome = _ask(found)
                if outcome is not None:
                    outcomes[found.path] = outcome
        if len(outcomes) == len(processes) or time.monotonic() > deadline:
            break
        time.sleep(_STEP_S)
    pending = Answer(1, 0, 0, 0).text()
    return [outcomes.get(found.path, Outcome(found, False, pending)) for found in processes]


def _ask(found: Found) -> Outcome | None:
    """The answer of one; None: there is none yet."""
    try:
        with opened(found) as segment:
            answer = segment.answer()
    except (ControlError, SegmentError, OSError) as error:
        return Outcome(found, False, _said(found, error))
    return None if answer.is_pending else Outcome(found, not answer.is_refused, answer.text())


def _said(found: Found, error: Exception) -> str:
    return str(error).removeprefix(f"pid {found.pid}: ")
