"""Read the ledgers (attachment/ledger.py) of all users of a host, each up to its share."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from opscope.attachment import ledger
from opscope.attachment.ledger import LedgerEntry
from opscope.host.budgets import fair
from opscope.segments import directories

LIMIT = 4096
"""Entries of all users together, and the most that are examined of one user."""


def read(places: Iterable[str], known: Collection[str] = ()) -> tuple[list[LedgerEntry], list[int]]:
    """The entries in these directories, and the users with more entries than their share.

    `known`: paths of entries that were read before; they keep their share while they exist.
    """
    of_users: dict[int, list[str]] = {}
    for place in places:
        user = directories.owner(place)
        if user is not None:
            of_users.setdefault(user, []).append(place)
    entries: dict[int, list[LedgerEntry]] = {}
    for user, own in of_users.items():
        found = ledger.read_all(own, LIMIT)
        entries[user] = sorted(found, key=lambda entry: entry.path not in known)
    taken, cut = fair(entries, LIMIT)
    return taken, cut
