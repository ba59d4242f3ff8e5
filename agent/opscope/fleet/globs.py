"""Globs of services as regular expressions of PromQL, which are RE2's.

A glob means the same as for `opscope set --service` (attachment/settings_file.py), which is what
Python's fnmatch says: `*` is any text, `?` one character, `[...]` one of these characters and
ranges, `[!...]` one of the others.
"""

from __future__ import annotations

import re

_NEVER = r"\b\B"
_ANY = "(?s:.)"
# A class has members, of which the first may be "]"; without its end, "[" is a character.
_PIECE = re.compile(r"\*|\?|\[(?:(!)|(?!!))(\][^\]]*|[^\]]+)\]|.", re.DOTALL)


def regex(glob: str) -> str:
    """The expression, which PromQL anchors at both ends."""
    return "".join(map(_translated, _PIECE.finditer(glob)))


def is_name(glob: str) -> bool:
    """Whether it only matches the service of this name."""
    return not any(found[0] in "*?" or found[2] is not None for found in _PIECE.finditer(glob))


def _translated(piece: re.Match[str]) -> str:
    negation, members = piece.groups()
    if members is not None:
        return _one_of(members, bool(negation))
    return {"*": "(?s:.*)", "?": _ANY}.get(piece[0]) or re.escape(piece[0])


def _one_of(members: str, is_negated: bool) -> str:
    found = []
    at = 0
    while at < len(members):
        first, last = members[at], members[at]
        if members[at + 1 : at + 2] == "-" and at + 2 < len(members):
            last = members[at + 2]
            at += 2
        at += 1
        if first <= last:  # others have no members
            found.append(f"{re.escape(first)}-{re.escape(last)}")
    if not found:
        return _ANY if is_negated else _NEVER
    return f"[{'^' if is_negated else ''}{''.join(found)}]"
