"""Take traces of running processes: request them, wait, and read the files.

A request goes through the control block of a process's segment. The process answers there, writes
`<segment>.trace` beside the segment for the requested time, and stops by itself. This module opens
each file when the answer arrives, reads it at the end and removes it. timeline/reader.py validates
the contents; timeline/chrome.py writes the timeline.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from opscope._native import ffi, lib
from opscope.control import control_block, control_many
from opscope.control.control_block import FoundProcess, Segment, following
from opscope.errors import AgentError, OpscopeError
from opscope.segments import directories, segment_file
from opscope.segments.segment_file import SegmentError
from opscope.timeline import layout
from opscope.timeline.reader import Trace, read_header

_SUFFIX = ".trace"
_STEP_S = 0.02
# Time for a process to notice a request or its end: it polls two to ten times a second.
_GRACE_S = 2.0
# Largest difference between a trace's clock and ours; both read the clock of this host.
_CLOCK_NS = 3600 * 10**9
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

_SILENT = (
    "it did not answer: it is stopped, or has run no operator since; try again while it runs "
    "operators"
)
_REFUSED = {
    -lib.OPSCOPE_ERR_BUSY: "another `opscope trace`, or opscope.profile() in it, is already "
    "recording a trace of it; try again when that has ended",
    -lib.OPSCOPE_ERR_NO_SPACE: "the file system of its segment has no space for a trace: free some "
    "there, trace fewer processes at a time, or use a smaller --buffer",
    -lib.OPSCOPE_ERR_PERMISSION: "it installed a filter of system calls (seccomp) after its start, "
    "which could kill it for the calls that a trace needs",
    -lib.OPSCOPE_ERR_NO_MEMORY: "its control group has no memory for a trace; use a smaller "
    "--buffer, or give the group more memory",
}


class Taken(NamedTuple):
    """The result of the request in one process: a trace, or the reason for its absence."""

    found: FoundProcess
    trace: Trace | None
    text: str


class _Process:
    """One process, from the request to the end of its trace."""

    def __init__(self, found: FoundProcess, size: int) -> None:
        self.found = found
        self.size = size
        """Largest size of its trace, in bytes."""
        self.serial = 0
        self.fd: int | None = None
        self.failure = ""
        self.is_done = False

    def fail(self, text: str) -> None:
        self.failure, self.is_done = text, True

    def fail_by(self, error: Exception) -> None:
        self.fail(control_many.said(self.found, error))


def take(
    processes: Sequence[FoundProcess],
    seconds: float,
    size: int,
    flags: int = 0,
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> list[Taken]:
    """Traces all the processes at once, for `seconds` and with at most `size` bytes each.

    Returns early if all traces end early; on KeyboardInterrupt, returns what was recorded so far.
    """
    taking = [_Process(found, size) for found in processes]
    try:
        return _taken(taking, seconds, flags, sleep)
    finally:
        for process in taking:
            _leave(process)


def _taken(
    taking: Sequence[_Process],
    seconds: float,
    flags: int,
    sleep: Callable[[float], None],
) -> list[Taken]:
    _request(taking, round(seconds * 1e9), flags)
    deadline = time.monotonic() + seconds + _GRACE_S
    try:
        while not all(process.is_done for process in taking) and time.monotonic() < deadline:
            for process in taking:
                _poll(process)
            sleep(_STEP_S)
    except KeyboardInterrupt:
        _end(taking)
    silent = []
    for process in taking:
        if process.fd is None and not process.failure:
            process.fail(_SILENT)
            silent.append(process)
    _request(silent, 0)  # withdraws the requests that were not answered
    return [_read(process) for process in taking]


def _request(taking: Sequence[_Process], duration_ns: int, flags: int = 0) -> None:
    """Requests a trace of this duration; 0 requests its end."""

    def request(index: int, segment: Segment) -> None:
        def change(block: Any) -> None:
            serial = following(block["trace_serial"])
            block["trace_serial"] = serial
            block["trace_duration_ns"] = duration_ns
            block["trace_bytes"] = taking[index].size if duration_ns else 0
            block["trace_flags"] = flags
            taking[index].serial = serial

        segment.change(change)

    failures = control_many.change_all([process.found for process in taking], request)
    for process, why in zip(taking, failures, strict=True):
        if why and not process.is_done:
            process.fail(why)


def _poll(process: _Process) -> None:
    if process.is_done:
        return
    try:
        if process.fd is None:
            _poll_answer(process)
        elif _has_ended(process.fd):
            process.is_done = True
    except Exception as error:
        process.fail_by(error)


def _poll_answer(process: _Process) -> None:
    try:
        with control_block.opened(process.found) as segment:
            serial, status = segment.trace_answer()
    except (OpscopeError, OSError) as error:
        # It has ended, perhaps after it began the trace.
        _begin(process, error)
        return
    if serial != process.serial:
        return
    if status == 0:
        _begin(process)
    else:
        text = ffi.string(lib.opscope_status_text(-status)).decode() if status < 1 << 15 else "?"
        process.fail(_REFUSED.get(status, f"it refused: {text}"))


def _begin(process: _Process, otherwise: Exception | None = None) -> None:
    """Opens the process's trace; if that fails, reports `otherwise`, or else the open's error."""
    try:
        process.fd = _open(process)
    except (OpscopeError, OSError) as error:
        process.fail_by(otherwise or error)


def _open(process: _Process) -> int:
    """Opens the trace's file; checks its owner and that it answers this request."""
    path = process.found.path + _SUFFIX
    with directories.opened(os.path.dirname(path)) as directory_fd:
        fd = os.open(os.path.basename(path), _FLAGS, dir_fd=directory_fd)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != process.found.header.uid:
            raise AgentError(f"{path} is not a regular file of uid {process.found.header.uid}")
        if found.st_size > layout.HEADER_BYTES + 2 * process.size:
            raise AgentError(f"{path} is too large for a trace: {found.st_size} bytes")
        header = read_header(segment_file.File(fd))
        named = process.found.header.pid, process.found.header.uid, process.serial
        if (header.pid, header.uid, header.serial) != named:
            raise AgentError(f"{path} belongs to another trace")
        # All timelines begin at the earliest start; one in 1970 would cost the others precision.
        if abs(header.anchor_unix_ns - time.time_ns()) > _CLOCK_NS:
            raise AgentError(f"{path} has an implausible start time")
    except BaseException:
        os.close(fd)
        raise
    return fd


def _has_ended(fd: int) -> bool:
    """Whether the trace is complete: closed, or no process, live or dead, maps it.

    Raises OpscopeError if the file is no trace any more, for example truncated.
    """
    file = segment_file.File(fd)
    return read_header(file).state == layout.CLOSED or file.is_locked() is False


def _end(taking: Sequence[_Process]) -> None:
    """Requests the end of all traces and waits for it, up to a limit."""
    _request([process for process in taking if not process.is_done], 0)
    deadline = time.monotonic() + _GRACE_S
    while time.monotonic() < deadline and any(
        process.fd is not None and not process.is_done for process in taking
    ):
        for process in taking:
            if process.fd is not None:
                _poll(process)
        time.sleep(_STEP_S)


def _read(process: _Process) -> Taken:
    found = process.found
    if process.fd is None:
        return Taken(found, None, process.failure)
    _remove(process)
    file = _File(process.fd)
    process.fd = None
    if process.failure:
        return Taken(found, None, process.failure)
    try:
        trace = Trace(file)
        for thread in trace.threads:
            for _ in trace.records(thread):
                pass  # validates the whole trace before any of it is written out
    except Exception as error:
        return Taken(found, None, f"its trace cannot be read: {control_many.said(found, error)}")
    return Taken(found, trace, "")


def _leave(process: _Process) -> None:
    """Removes and closes a trace that was begun and not read, after an error elsewhere."""
    if process.fd is not None:
        _remove(process)
        os.close(process.fd)
        process.fd = None


class _File(segment_file.File):
    """Closes itself when its last reader is gone."""

    __slots__ = ()

    def __del__(self) -> None:
        os.close(self._fd)


def _remove(process: _Process) -> None:
    """Removes the file, unless its name now belongs to another file."""
    assert process.fd is not None
    path = process.found.path + _SUFFIX
    with suppress(OSError, SegmentError), directories.opened(os.path.dirname(path)) as fd:
        name = os.path.basename(path)
        if os.path.samestat(os.stat(name, dir_fd=fd, follow_symlinks=False), os.fstat(process.fd)):
            os.unlink(name, dir_fd=fd)
