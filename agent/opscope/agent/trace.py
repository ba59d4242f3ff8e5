"""Take traces of running processes: wish for them, wait, and read what they wrote.

A wish goes through the control block of a process's segment; the process answers there, writes into
`<segment>.trace` beside it for as long as it was told, and ends by itself. Each file is opened when
the answer comes, read at the end and removed. What a file says is timeline/reader.py's to check,
how it is drawn timeline/chrome.py's.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from opscope._native import ffi, lib
from opscope.agent import control, directories, segment_file
from opscope.agent.control import ControlError, Found
from opscope.agent.segment_file import SegmentError
from opscope.errors import AgentError
from opscope.timeline import layout
from opscope.timeline.reader import Trace, TraceError, read_header

_SUFFIX = ".trace"
_STEP_S = 0.02
# What a process may need to hear of a wish, and of its end: it looks twice to ten times a second.
_GRACE_S = 2.0
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

_SILENT = (
    "it did not answer: it is stopped, or has run no operator since; a trace needs operators, try "
    "again while it works"
)
_REFUSED = {
    -lib.OPSCOPE_ERR_BUSY: "a trace of it is being taken already, by another `opscope trace` or by "
    "opscope.profile() in it; try again when that has ended",
    -lib.OPSCOPE_ERR_NO_SPACE: "there is no room for a trace where its segment is: make some in "
    "that file system, or ask for a smaller --buffer",
    -lib.OPSCOPE_ERR_NO_MEMORY: "there is no memory for a trace in its control group; ask for a "
    "smaller --buffer, or give the group more",
}


class Taken(NamedTuple):
    """What became of the wish in one process: a trace, or the reason why there is none."""

    found: Found
    trace: Trace | None
    text: str


class _Process:
    """One process between the wish and the end of its trace."""

    def __init__(self, found: Found) -> None:
        self.found = found
        self.serial = 0
        self.fd: int | None = None
        self.failure = ""
        self.is_done = False

    def fail(self, text: str) -> None:
        self.failure, self.is_done = text.removeprefix(f"pid {self.found.pid}: "), True


def take(
    processes: Sequence[Found],
    seconds: float,
    size: int,
    flags: int = 0,
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> list[Taken]:
    """A trace of each process, `seconds` long and of at most `size` bytes; all at the same time.

    Ends early when all have, or at a KeyboardInterrupt: then with what there is by then.
    """
    taking = [_Process(found) for found in processes]
    for process in taking:
        _wish(process, round(seconds * 1e9), size, flags)
    deadline = time.monotonic() + seconds + _GRACE_S
    try:
        while not all(process.is_done for process in taking) and time.monotonic() < deadline:
            for process in taking:
                _look(process)
            sleep(_STEP_S)
    except KeyboardInterrupt:
        _end(taking)
    for process in taking:
        if process.fd is None and not process.failure:
            process.fail(_SILENT)
            _wish(process, 0, 0, 0)  # not when nobody waits for it any more
    return [_read(process) for process in taking]


def _wish(process: _Process, duration_ns: int, size: int, flags: int) -> None:
    def change(block: Any) -> None:
        block["trace_serial"] += 1
        block["trace_duration_ns"] = duration_ns
        block["trace_bytes"] = size
        block["trace_flags"] = flags
        process.serial = int(block["trace_serial"])

    try:
        with control.opened(process.found) as segment:
            segment.change(change)
    except (ControlError, SegmentError, OSError) as error:
        if not process.is_done:
            process.fail(str(error))


def _look(process: _Process) -> None:
    if process.is_done:
        return
    if process.fd is None:
        _look_for_answer(process)
    elif _has_ended(process.fd):
        process.is_done = True


def _look_for_answer(process: _Process) -> None:
    try:
        with control.opened(process.found) as segment:
            serial, status = segment.trace_answer()
    except (ControlError, SegmentError, OSError) as error:
        # It has ended; it may have begun the trace before.
        _begin(process, str(error))
        return
    if serial != process.serial:
        return
    if status == 0:
        _begin(process, "")
    else:
        text = ffi.string(lib.opscope_status_text(-status)).decode() if status < 1 << 15 else "?"
        process.fail(_REFUSED.get(status, f"it refused: {text}"))


def _begin(process: _Process, otherwise: str) -> None:
    """Opens its trace; where that cannot be, the reason is `otherwise`, if there is one."""
    try:
        process.fd = _open(process)
    except (AgentError, SegmentError, TraceError, OSError) as error:
        process.fail(otherwise or str(error))


def _open(process: _Process) -> int:
    """The trace's file, which is the process's and answers this wish."""
    path = process.found.path + _SUFFIX
    with directories.opened(os.path.dirname(path)) as directory_fd:
        fd = os.open(os.path.basename(path), _FLAGS, dir_fd=directory_fd)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != process.found.header.uid:
            raise AgentError(f"{path} is not a regular file of uid {process.found.header.uid}")
        if found.st_size > layout.MOST_BYTES:
            raise AgentError(f"{path} is too large for a trace: {found.st_size} bytes")
        header = read_header(segment_file.File(fd))
        if (header.pid, header.serial) != (process.found.header.pid, process.serial):
            raise AgentError(f"{path} is of another trace than the one asked for")
    except BaseException:
        os.close(fd)
        raise
    return fd


def _has_ended(fd: int) -> bool:
    """Whether nothing is added any more: it is closed, or nobody has it mapped, dead or alive."""
    file = segment_file.File(fd)
    return read_header(file).state == layout.CLOSED or file.is_locked() is False


def _end(taking: Sequence[_Process]) -> None:
    """Has all traces end now, and waits until they have, for a while."""
    for process in taking:
        if not process.is_done:
            _wish(process, 0, 0, 0)
    deadline = time.monotonic() + _GRACE_S
    while time.monotonic() < deadline and any(
        process.fd is not None and not _has_ended(process.fd) for process in taking
    ):
        time.sleep(_STEP_S)


def _read(process: _Process) -> Taken:
    found = process.found
    if process.fd is None:
        return Taken(found, None, process.failure)
    _remove(process)
    file = _File(process.fd)
    process.fd = None
    try:
        trace = Trace(file)
        for thread in trace.threads:
            for _ in trace.records(thread):
                pass  # whole, before anything of it is written out
    except (TraceError, SegmentError) as error:
        return Taken(found, None, f"its trace cannot be read: {error}")
    return Taken(found, trace, "")


class _File(segment_file.File):
    """Closed when nobody reads from it any more."""

    __slots__ = ()

    def __del__(self) -> None:
        os.close(self._fd)


def _remove(process: _Process) -> None:
    """The file is ours to take away, unless another one has its name by now."""
    assert process.fd is not None
    path = process.found.path + _SUFFIX
    with suppress(OSError, SegmentError), directories.opened(os.path.dirname(path)) as fd:
        name = os.path.basename(path)
        if os.path.samestat(os.stat(name, dir_fd=fd, follow_symlinks=False), os.fstat(process.fd)):
            os.unlink(name, dir_fd=fd)
