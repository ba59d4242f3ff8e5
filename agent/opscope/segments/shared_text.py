"""One copy of a name for all segments that have it, freed with the last of them.

sys.intern does not suit: from Python 3.12 on, it keeps texts until the process ends.
"""

from __future__ import annotations

_LIMIT = 4096
_copies: dict[str, str] = {}


def shared(text: str) -> str:
    """An equal text, usually the same object for equal arguments. The table of copies is bounded;
    at the limit it starts empty again, so that unused names are freed."""
    if len(_copies) >= _LIMIT and text not in _copies:
        _copies.clear()
    return _copies.setdefault(text, text)
