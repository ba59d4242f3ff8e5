"""W3C trace context: the trace that a request belongs to.

Facts: https://www.w3.org/TR/trace-context/#traceparent-header
"""

from __future__ import annotations

import re
from typing import NamedTuple

HEADER = "traceparent"
_VALUE = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SAMPLED = 1
_INVALID_VERSION = "ff"


class TraceContext(NamedTuple):
    """Hexadecimal ids, as the labels `trace_id` and `span_id` have them."""

    trace_id: str
    span_id: str


def parse(header: str | None) -> TraceContext | None:
    """The caller's trace and span; None for a damaged header, and for a trace that is not sampled:
    no backend has those."""
    found = _VALUE.fullmatch(header.strip()) if header else None
    if found is None:
        return None
    version, trace_id, span_id, flags, rest = found.groups()
    if version == _INVALID_VERSION or (version == "00" and rest is not None):
        return None
    if int(trace_id, 16) == 0 or int(span_id, 16) == 0 or not int(flags, 16) & _SAMPLED:
        return None
    return TraceContext(trace_id, span_id)
