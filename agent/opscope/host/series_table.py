"""The host's numbered series: bounded, divided fairly, with places that can be freed.

A new key gets a place of its own while there is room and its service and user stay within their
shares. Otherwise it counts under its service's `other`; if that has no place either, under the
host's single `other`. A process keeps the number that it got, since a counter that moved would
decrease; take_back.py moves rows without that. retirement.py decides which series free their
places, and when.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from opscope.host.budgets import LimitedPasses, Share
from opscope.host.division import Owner
from opscope.host.identity import group_of
from opscope.host.snapshot import OTHER, SeriesKey
from opscope.segments.dictionary import Labels
from opscope.segments.layout import OTHER_OP

# Dynamic thresholds, as in shared switch buffers: the owner of n places may take one more while
# more than n / factor places are free. So one service gets at most 4/5 of the places and one user
# 8/9, and a late one still finds some. If several users have series, no user gets more than half.
_SERVICE_FACTOR, _USER_FACTOR, _ONE_OF_USERS_FACTOR = 4, 8, 1
# One place in so many is reserved for `other` of services, alive or retired.
_RESERVED_SHARE = 8
_GROUPS_LIMIT = 512
_NOBODY = -1


class SeriesTable:
    """At most `limit` series, and one more that counts all others."""

    def __init__(self, limit: int, limited: LimitedPasses | None = None) -> None:
        self.limit = limit
        self._limited = limited or LimitedPasses()
        self.keys: list[SeriesKey | None] = []
        """The keys by number; None marks a free place."""
        self.created_unix_ns: list[int] = []
        self.users: list[int] = []
        """The user who took each place."""
        self.ended_unix_ns: list[int] = []
        """When the last process that counted under the series ended, in Unix ns; 0: unknown."""
        self.earliest_unix_ns = 0
        """Series added from now on begin no earlier than this, in Unix ns."""
        self.groups: dict[str, Labels] = {}
        """The attributes of each group of processes that has series or is about to get some."""
        self._by_group: Counter[str] = Counter()
        self._group_users: dict[str, int] = {}
        """The user who added each group; bounded like the groups."""
        self._numbers: dict[SeriesKey, int] = {}
        self._free: list[int] = []
        self._own = 0
        self._by_service: Counter[str] = Counter()
        self._by_user: Counter[int] = Counter()
        self._by_owner: Counter[Owner] = Counter()
        self.leaving: set[int] = set()
        """Series that no process counts under any more, and that free their places soon."""
        self.targets: dict[Owner, int] = {}
        """The number of places of each owner while some are taken back (take_back.py)."""
        self.changes = 0
        """Times that a place may have become free for somebody who waits."""

    @property
    def own_limit(self) -> int:
        """The largest number of series of single operators."""
        return self.limit - self.limit // _RESERVED_SHARE

    def __len__(self) -> int:
        """The number of series."""
        return len(self._numbers)

    def number(self, key: SeriesKey, created_unix_ns: int, user: int = 0) -> int:
        """The number of the series that counts this key; adds the series if there is room."""
        own = self.own_number(key, created_unix_ns, user)
        return self.other_number(key, created_unix_ns, user) if own is None else own

    def own_number(self, key: SeriesKey, created_unix_ns: int, user: int) -> int | None:
        """As `number`; None if there is no room."""
        found = self._numbers.get(key)
        if found is not None:
            return None if found in self.leaving else found
        return self.add(key, created_unix_ns, user) if self._has_place(key, user) else None

    def other_number(self, key: SeriesKey, created_unix_ns: int, user: int = 0) -> int:
        """The number of the series for this key's service without a place of its own."""
        other = other_of(key)
        found = self._numbers.get(other)
        if found is None and len(self) >= self.limit:
            other = OTHER
            found = self._numbers.get(other)
        return self.add(other, created_unix_ns, user) if found is None else found

    def _has_place(self, key: SeriesKey, user: int) -> bool:
        free = min(self.own_limit - self._own, self.limit - len(self))
        owner = Owner(user, key.service)
        if owner in self.targets:
            has_place = free > 0 and self._by_owner.get(owner, 0) < self.targets[owner]
        else:
            has_place = free > 0 and self._is_within_shares(key, user, free)
        if not has_place and key.op != OTHER_OP:
            self._limited.note(user, "series")
        return has_place

    def _is_within_shares(self, key: SeriesKey, user: int, free: int) -> bool:
        has_others = len(self._by_user) > (user in self._by_user)
        factor = _ONE_OF_USERS_FACTOR if has_others else _USER_FACTOR
        return (
            self._by_service.get(key.service, 0) < _SERVICE_FACTOR * free
            and self._by_user.get(user, 0) < factor * free
        )

    def owned(self) -> dict[Owner, list[int]]:
        """The series of single operators that stay, by owner."""
        found: dict[Owner, list[int]] = {}
        for number, key in enumerate(self.keys):
            if key is not None and key.op != OTHER_OP and number not in self.leaving:
                found.setdefault(Owner(self.users[number], key.service), []).append(number)
        return found

    def leave(self, numbers: Sequence[int], now_ns: int) -> None:
        """No process counts under these series any more: they free their places soon."""
        self.leaving.update(numbers)
        for number in numbers:
            self.ended_unix_ns[number] = now_ns

    def give(self, number: int, user: int) -> None:
        """The series counts as this user's from now on."""
        key = self.keys[number]
        assert key is not None
        self._count(key, self.users[number], -1)
        self.users[number] = user
        self._count(key, user, 1)

    @property
    def alone_limit(self) -> int:
        """The largest number of series of single operators if all are of one user."""
        return self.own_limit * _USER_FACTOR // (_USER_FACTOR + 1)

    def add(self, key: SeriesKey, created_unix_ns: int, user: int = 0) -> int:
        """Adds a new series, even beyond the limit; returns its number."""
        created_unix_ns = max(created_unix_ns, self.earliest_unix_ns)
        if self._free:
            number = self._free.pop()
            self.keys[number], self.users[number] = key, user
            self.created_unix_ns[number], self.ended_unix_ns[number] = created_unix_ns, 0
        else:
            number = len(self.keys)
            self.keys.append(key)
            self.users.append(user)
            self.created_unix_ns.append(created_unix_ns)
            self.ended_unix_ns.append(0)
        self._numbers[key] = number
        self._count(key, user, 1)
        return number

    def group(self, attributes: Labels, user: int = 0) -> str:
        """The group of a process with these attributes; "" beyond the limit of groups."""
        name = group_of(attributes)
        if name and name not in self.groups:
            room = Share(_GROUPS_LIMIT, self._limited, "names")
            if 2 * len(self.groups) >= _GROUPS_LIMIT:
                self.groups = {one: self.groups[one] for one in self.groups if self._by_group[one]}
                kept = self._group_users.items()
                self._group_users = {one: by for one, by in kept if one in self.groups}
            for one in self.groups:
                room.take(self._group_users.get(one, _NOBODY))
            if not room.asks(user):
                return ""
            self.groups[name] = attributes
            self._group_users[name] = user
        return name

    def remove(self, number: int) -> None:
        """Frees the place of a series; no process may count under its number any more."""
        key = self.keys[number]
        if key is not None:
            del self._numbers[key]
            self._count(key, self.users[number], -1)
            self.keys[number] = None
            self._free.append(number)
            self.leaving.discard(number)
            self.changes += 1

    def _count(self, key: SeriesKey, user: int, change: int) -> None:
        if key.group:
            self._by_group[key.group] += change
            self._group_users.setdefault(key.group, user)
        if key.op == OTHER_OP:
            return
        self._own += change
        self._by_service[key.service] += change
        self._by_user[user] += change
        owner = Owner(user, key.service)
        self._by_owner[owner] += change
        # Services come and go; entries at 0 are removed to free memory.
        if not self._by_service[key.service]:
            del self._by_service[key.service]
        if not self._by_user[user]:
            del self._by_user[user]
        if not self._by_owner[owner]:
            del self._by_owner[owner]

    @property
    def is_short(self) -> bool:
        """Whether more than three quarters of the places are taken."""
        return 4 * max(self._own + self.limit - self.own_limit, len(self)) > 3 * self.limit

    @property
    def rows(self) -> NDArray[np.intp]:
        """The numbers of all series, ascending."""
        if not self._free:
            return np.arange(len(self.keys))
        return np.array([n for n, key in enumerate(self.keys) if key is not None], np.intp)

    def services(self) -> NDArray[np.intp]:
        """(n,) by number of a series, a number for its service."""
        numbers: dict[str, int] = {}
        names = ("" if key is None else key.service for key in self.keys)
        return np.array([numbers.setdefault(name, len(numbers)) for name in names], np.intp)

    def others(self, service: str, process: int | None) -> list[int]:
        """The numbers of this service's series for keys without a place of their own."""
        keys = (other_of(SeriesKey(service, "", "", (), process)), OTHER)
        return [self._numbers[key] for key in keys if key in self._numbers]


def other_of(key: SeriesKey) -> SeriesKey:
    """The key that counts keys of the same service without a place of their own."""
    return OTHER._replace(service=key.service, process=key.process)
