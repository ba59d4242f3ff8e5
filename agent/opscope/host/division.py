"""Divide the series fairly among users, and each user's among its services: `targets(...)`.

A user or service that waits for places and has less than an equal part gets places, up to that
part. The one with the most places gives them up. If there are several users, a further equal part
stays free for a user that starts later. Nothing moves unless one with less than an equal part waits
and another has more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import NamedTuple, TypeVar

One = TypeVar("One", bound=Hashable)


class Owner(NamedTuple):
    """A service of one user."""

    user: int
    service: str


def targets(
    have: Mapping[Owner, int],
    waiting: Mapping[Owner, int],
    capacity: int,
    alone: int,
    goes_on: bool = False,
) -> dict[Owner, int]:
    """The number of places for each owner; {} if none is to be taken back.

    `capacity`: all places; `alone`: the most that a user may have where no other has any;
    `goes_on`: some were taken back, and those who waited may not have got them yet.
    """
    if not waiting:
        return {}
    owners = {owner: have.get(owner, 0) for owner in (*have, *waiting)}
    users: Counter[int] = Counter()
    users_wait: Counter[int] = Counter()
    services: dict[int, dict[str, int]] = {}
    for owner, count in owners.items():
        users[owner.user] += count
        users_wait[owner.user] += waiting.get(owner, 0)
        services.setdefault(owner.user, {})[owner.service] = count
    of_users = _levels(users, users_wait, capacity if len(users) > 1 else alone, len(users) > 1)
    found: dict[Owner, int] = {}
    for user, of_services in services.items():
        wait = {service: waiting.get(Owner(user, service), 0) for service in of_services}
        for service, count in _levels(of_services, wait, of_users[user], False).items():
            found[Owner(user, service)] = count
    gains = any(waiting.get(owner, 0) and found[owner] > owners[owner] for owner in owners)
    return found if gains and (goes_on or any(found[one] < owners[one] for one in owners)) else {}


def _levels(
    have: Mapping[One, int], waiting: Mapping[One, int], capacity: int, spare: bool
) -> dict[One, int]:
    """`spare`: one part more stays free, as large as the largest of those that get more."""
    part = capacity // (len(have) + spare)
    gaining = [one for one in have if waiting[one] and have[one] < part]
    wants: dict[One | None, int] = dict(have.items())
    for one in gaining:
        wants[one] += waiting[one]
    if spare and gaining:
        wants[None] = max(wants[one] for one in gaining)
    return {one: count for one, count in filled(wants, capacity).items() if one is not None}


def filled(wants: Mapping[One, int], capacity: int) -> dict[One, int]:
    """At most `capacity` in all: all of what is wanted up to one level, and no more than it."""
    found: dict[One, int] = {}
    for number, (one, want) in enumerate(sorted(wants.items(), key=lambda item: item[1])):
        found[one] = min(want, max(capacity, 0) // (len(wants) - number))
        capacity -= found[one]
    return found
