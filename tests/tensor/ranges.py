"""Record this thread's ranges during a block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import opscope


@contextmanager
def ranges() -> Iterator[list[tuple[str, opscope.RecordScope]]]:
    """Yields a list to which each range that opens adds its name and scope."""
    seen: list[tuple[str, opscope.RecordScope]] = []
    handle = opscope.add_thread_local_callback(lambda fn: seen.append((fn.name, fn.scope)))
    try:
        yield seen
    finally:
        opscope.remove_callback(handle)
