"""The result of `opscope.attach_status()`, which session.py computes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class AttachStatus(NamedTuple):
    """The state of observation of this process."""

    attached: bool
    """Whether this process is being recorded."""
    code: str
    """`attached`, `detached`, `idle` (nothing tried yet), or one of ledger.CODES."""
    text: str
    """The reason in words, or ""."""
    segment: str
    """Path of the segment; "" without one."""
    bridges: Mapping[str, str]
    """For each framework imported so far: `attached`, or the reason why not."""
