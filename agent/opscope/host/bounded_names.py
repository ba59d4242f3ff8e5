"""A bounded set of names: beyond the limit or a user's share, a new name becomes `other`.

Names from observed processes become label values and take memory in the agent. The bound keeps one
process that sends new names without end from filling both, or from leaving no room for others.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest

from opscope.host.budgets import LimitedPasses, Share

OTHER = "other"
NOBODY = -1


class BoundedNames:
    """At most `limit` names; a name stays once accepted, so that counters do not decrease."""

    def __init__(
        self, limit: int, known: Iterable[str] = (), limited: LimitedPasses | None = None
    ) -> None:
        """`known`: names that do not count towards the limit."""
        self._share = Share(limit, limited or LimitedPasses(), "names")
        self._known = dict.fromkeys(known, NOBODY)
        """Each name, with the user who added it."""

    def __len__(self) -> int:
        return len(self._known)

    def known(self) -> tuple[str, ...]:
        """The names in the order of their arrival."""
        return tuple(self._known)

    def users(self) -> tuple[int, ...]:
        """The user who added each name, in the same order."""
        return tuple(self._known.values())

    def take(self, names: Iterable[str], users: Iterable[int] = ()) -> None:
        """Restores names of an earlier run, with their users as far as known."""
        for name, user in zip_longest(names, users, fillvalue=NOBODY):
            if isinstance(name, str) and name not in self._known:
                self._known[name] = user
                self._share.take(user)

    def bounded(self, name: str, user: int = 0) -> str:
        """The name itself, or `other` if there is no room for it."""
        if name not in self._known:
            if not self._share.asks(user):
                return OTHER
            self._known[name] = user
        return name
