"""What `opscope.attach_status()` answers with. Not here: how it comes about (session.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class AttachStatus(NamedTuple):
    """How this process stands with being observed."""

    attached: bool
    """Whether this process is being recorded."""
    code: str
    """`attached`, `detached`, `idle` (nothing tried yet), or why not: one of ledger.CODES."""
    text: str
    """The reason in words; "" where there is none to give."""
    segment: str
    """Path of the segment; "" where there is none."""
    bridges: Mapping[str, str]
    """For each framework imported so far: `attached`, or why not."""
