"""A set of names that stops growing: beyond its limit every new one is `other`.

What observed processes say ends up as values of labels and in the agent's memory; a process that
says something new each time must not fill either.
"""

from __future__ import annotations

from collections.abc import Iterable

OTHER = "other"


class Names:
    """At most `limit` names; one that was taken in stays, as counters must not step back."""

    def __init__(self, limit: int, known: Iterable[str] = ()) -> None:
        self._limit = limit
        self._known = dict.fromkeys(known)

    def __len__(self) -> int:
        return len(self._known)

    def known(self) -> tuple[str, ...]:
        """In the order they came."""
        return tuple(self._known)

    def take(self, names: Iterable[str]) -> None:
        """Takes in names that were known before."""
        self._known.update(dict.fromkeys(names))

    def bounded(self, name: str) -> str:
        """The name itself, or `other`."""
        if name not in self._known:
            if len(self._known) >= self._limit:
                return OTHER
            self._known[name] = None
        return name
