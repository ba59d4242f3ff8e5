"""Convert ticks to wall-clock time, so that the timelines of several processes align.

Processes of one boot that read the same counter share one conversion: each process alone knows the
counter's rate only to 0.01 %, which is half a millisecond after five seconds. The conversion is
that of the longest trace, whose clock was read at both ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from opscope._native import lib
from opscope.timeline.reader import Header

_SECOND_NS = 10**9
# Above the error of a rate measured in half a millisecond: the wall clock was set in between.
_RATE_TOLERANCE = 1e-3
# In shorter traces, a rate from two readings with errors of 100 ns is no better than the header's.
_LEAST_SPAN_NS = 10**7


class Clock(NamedTuple):
    """`unix_ns(ticks) = anchor_unix_ns + (ticks - anchor_ticks) * ns / ticks`, in integers."""

    anchor_ticks: int
    anchor_unix_ns: int
    ns: int
    ticks: int

    def unix_ns(self, ticks: int) -> int:
        return self.anchor_unix_ns + (ticks - self.anchor_ticks) * self.ns // self.ticks

    def duration_ns(self, ticks: int) -> int:
        return ticks * self.ns // self.ticks


def _rate(header: Header) -> tuple[int, int]:
    """Nanoseconds, and the ticks that take them."""
    ns = header.end_anchor_unix_ns - header.anchor_unix_ns
    ticks = header.end_anchor_ticks - header.anchor_ticks
    if ns >= _LEAST_SPAN_NS and ticks > 0:
        by_header = ticks * _SECOND_NS / header.ticks_per_second
        if abs(ns / by_header - 1) < _RATE_TOLERANCE:
            return ns, ticks
    return _SECOND_NS, header.ticks_per_second


def clock_of(header: Header) -> Clock:
    """The clock of a single trace."""
    return Clock(header.anchor_ticks, header.anchor_unix_ns, *_rate(header))


def clocks_of(headers: Iterable[Header]) -> list[Clock]:
    """A clock for each trace; the same one for those that read the same counter."""
    headers = list(headers)
    longest: dict[tuple[bytes, int, int], Header] = {}
    for header in headers:
        key = _shared_by(header)
        known = longest.get(key)
        if known is None or _length(header) > _length(known):
            longest[key] = header
    return [
        clock_of(longest[_shared_by(header)])
        if header.clock_source in _SHARED
        else clock_of(header)
        for header in headers
    ]


# Each of these is one counter for the whole machine, across clock namespaces; except that
# CLOCK_MONOTONIC may have an offset of its own in a container.
_SHARED = (lib.OPSCOPE_CLOCK_TSC, lib.OPSCOPE_CLOCK_CNTVCT)


def _shared_by(header: Header) -> tuple[bytes, int, int]:
    """A key of the traces with one clock. Users share none: one could shift another's times."""
    return header.boot_id, header.clock_source, header.uid


def _length(header: Header) -> int:
    return max(header.end_anchor_ticks - header.anchor_ticks, 0)
