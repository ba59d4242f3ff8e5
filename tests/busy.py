"""Other work on a processor."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_BUSY = "while True: pass"


@contextmanager
def busy_beside(cpu: int) -> Iterator[int]:
    """A process that wants all of one processor; yields its pid."""
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", _BUSY], preexec_fn=lambda: os.sched_setaffinity(0, {cpu})
    )
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()
