"""Take a trace of this process, into memory without a name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from opscope._native import ffi, lib
from opscope.errors import RecorderError, check
from opscope.timeline.reader import Trace


class Take:
    """A trace that is being taken, or was. Its memory is this object's."""

    def __init__(self) -> None:
        self._fd = _memory()
        self._pid = os.getpid()

    def __del__(self) -> None:
        os.close(self._fd)

    def start(self, size: int, flags: int = 0) -> None:
        """Begin: at most so many bytes. RecorderError where it cannot be done."""
        options = ffi.new("opscope_trace_options *")
        options.fd, options.bytes, options.flags = self._fd, size, flags
        status = lib.opscope_trace_start(options)
        if status == lib.OPSCOPE_ERR_BUSY:
            raise RecorderError(
                "a trace of this process is being taken already, by profile() or by "
                "`opscope trace`; there can be one at a time: try again when it has ended"
            )
        check(status, f"cannot take a trace of {size} bytes", RecorderError)

    def stop(self) -> None:
        """End it. Nothing happens in a forked child: the trace is its parent's."""
        if os.getpid() == self._pid:
            lib.opscope_trace_stop()

    def trace(self) -> Trace:
        """What was recorded up to now. Raises TraceError where nothing was begun."""
        return Trace(lambda offset, size: os.pread(self._fd, size, offset))


@contextmanager
def taken(size: int, flags: int = 0) -> Iterator[Take]:
    """A trace of the block."""
    take = Take()
    take.start(size, flags)
    try:
        yield take
    finally:
        take.stop()


def _memory() -> int:
    try:
        return os.memfd_create("opscope-trace", os.MFD_CLOEXEC)
    except (OSError, AttributeError):
        import tempfile

        fd, path = tempfile.mkstemp(prefix="opscope-trace-")
        os.unlink(path)
        return fd
