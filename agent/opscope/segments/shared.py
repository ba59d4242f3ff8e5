"""One copy of a name or number for all segments that have it, freed with the last of them.

sys.intern does not suit: from Python 3.12 on, it keeps texts until the process ends.
"""

from __future__ import annotations

from typing import Any, TypeVar

_LIMIT = 8192
Value = TypeVar("Value", str, int)
_copies: dict[Any, Any] = {}


def shared(value: Value) -> Value:
    """An equal text or number, usually the same object for equal arguments. The table of copies is
    bounded; at the limit it starts empty again, so that unused ones are freed."""
    if len(_copies) >= _LIMIT and value not in _copies:
        _copies.clear()
    copy: Value = _copies.setdefault(value, value)
    return copy
