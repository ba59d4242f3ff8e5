"""Take a trace of this process into unnamed memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from opscope._native import ffi, lib
from opscope.errors import RecorderError, check
from opscope.timeline.reader import Trace


class Take:
    """A running or finished trace. This object owns its memory."""

    def __init__(self) -> None:
        self._fd = _memory()
        self._pid = os.getpid()

    def __del__(self) -> None:
        os.close(self._fd)

    def start(self, size: int, flags: int = 0) -> None:
        """Begins a trace of at most `size` bytes. RecorderError on failure."""
        options = ffi.new("opscope_trace_options *")
        options.fd, options.bytes, options.flags = self._fd, size, flags
        status = lib.opscope_trace_start(options)
        if status == lib.OPSCOPE_ERR_BUSY:
            raise RecorderError(
                "profile() or `opscope trace` is already recording a trace of this process; only "
                "one can run at a time: try again when it has ended"
            )
        check(status, f"cannot take a trace of {size} bytes", RecorderError)

    def stop(self) -> None:
        """Ends it. Does nothing in a forked child: the trace belongs to the parent."""
        if os.getpid() == self._pid:
            lib.opscope_trace_stop()

    def trace(self) -> Trace:
        """The records so far. Raises TraceError if the trace was never begun."""
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
