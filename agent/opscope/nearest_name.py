"""The known name that a mistyped one probably means.

Observed processes import it only for an error.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection

_LEAST = 3
"""Letters of a name that the other one continues: `directory` for `dir`."""


def nearest(name: str, known: Collection[str], least_alike: float = 0.6) -> str:
    """ "" if none is near; `least_alike` is a ratio of difflib's."""
    if near := difflib.get_close_matches(name, known, n=1, cutoff=least_alike):
        return near[0]
    for one in known:
        if min(len(one), len(name)) >= _LEAST and (name.startswith(one) or one.startswith(name)):
            return one
    return ""


def did_you_mean(name: str, known: Collection[str]) -> str:
    """The end of an error's text; "" if no name is near."""
    near = nearest(name, known)
    return f"; did you mean {near}?" if near else ""
