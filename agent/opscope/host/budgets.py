"""Divide the agent's resources among users, so that no user starves another.

Each resource (directories, files, memory, names) has one limit for all users; a Share counts how
much each user holds. A user may take one more unit while at least as many units are free as the
user holds: a single user gets at most half, each of two greedy users a third. Users keep their
units, since counters must not decrease, and a late user always finds some free. Turns divides the
time of each pass anew. LimitedPasses counts the passes in which a user got less than it asked for.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

DIRECTORY_LIMIT = 1024
FILE_LIMIT = 65_536
BYTES_LIMIT = 256 << 20
SECONDS = 5.0

RESOURCES = ("directories", "files", "bytes", "time", "series", "names", "ledger", "labels")
_USERS_TOLD = 64
_OTHERS = "other"

Thing = TypeVar("Thing")


class LimitedPasses:
    """The number of passes in which a user got less than it asked for, by user and resource."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self._in_pass: set[tuple[str, str]] = set()
        self._users: set[str] = set()

    def begin_pass(self) -> None:
        self._in_pass.clear()

    def note(self, user: int, resource: str) -> None:
        name = str(user)
        if name not in self._users and len(self._users) >= _USERS_TOLD:
            name = _OTHERS
        else:
            self._users.add(name)
        if (name, resource) not in self._in_pass:
            self._in_pass.add((name, resource))
            self.counts[name, resource] += 1


class Share:
    """The number of units of one resource that each user holds."""

    def __init__(self, limit: int, limited: LimitedPasses, resource: str) -> None:
        self.limit = limit
        self._limited = limited
        self._resource = resource
        self._of_user: Counter[int] = Counter()
        self._sum = 0

    def has_room(self, user: int) -> bool:
        """Whether the user may take one more unit; a refusal is counted."""
        if self._of_user[user] < self.limit - self._sum:
            return True
        self._limited.note(user, self._resource)
        return False

    def take(self, user: int, amount: int = 1) -> None:
        """Adds `amount` units to the user; a negative amount gives them back."""
        self._sum += amount
        self._of_user[user] += amount
        if self._of_user[user] <= 0:
            del self._of_user[user]

    def asks(self, user: int) -> bool:
        """Takes one unit if there is room; whether it did."""
        if not self.has_room(user):
            return False
        self.take(user)
        return True


class Turns:
    """Divides the seconds of a pass among users.

    The user that took the least time in the last pass goes first and leaves its unused time to the
    others; each user gets an equal part of the time that remains when its turn begins.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._took: dict[int, float] = {}

    def of(self, users: Iterable[int]) -> Iterator[tuple[int, float]]:
        """Yields each user with the end of its turn, a time of the clock in seconds."""
        order = sorted(set(users), key=lambda user: self._took.get(user, 0.0))
        end = self._clock() + SECONDS
        took = {}
        for number, user in enumerate(order):
            began = self._clock()
            yield user, began + max(end - began, 0.0) / (len(order) - number)
            took[user] = self._clock() - began
        self._took = took


class Budgets:
    """The shares and turns of one host."""

    def __init__(self, limited: LimitedPasses) -> None:
        self.limited = limited
        self.directories = Share(DIRECTORY_LIMIT, self.limited, "directories")
        self.files = Share(FILE_LIMIT, self.limited, "files")
        self.bytes = Share(BYTES_LIMIT, self.limited, "bytes")
        self.passes, self.sweeps = Turns(), Turns()


def fair(of_users: Mapping[int, Sequence[Thing]], limit: int) -> tuple[list[Thing], list[int]]:
    """Selects at most `limit` things in fair parts: the first ones of each user.

    Also returns the users with more things than their part.
    """
    taken: list[Thing] = []
    cut = []
    order = sorted(of_users.items(), key=lambda one: (len(one[1]), one[0]))
    for number, (user, things) in enumerate(order):
        share = (limit - len(taken)) // (len(order) - number)
        taken += things[:share]
        if len(things) > share:
            cut.append(user)
    return taken, cut
