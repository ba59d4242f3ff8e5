"""Limit the server's connections and pages: slots, divided fairly among addresses.

A connection that waits (for a handshake, a request, or its turn to check a password) holds one of
many slots. If all are taken, a new connection replaces the longest-waiting one of the address with
the most. A page takes one of fewer slots, of which no address gets all; a page whose client does
not read gives way to a new one. So there are always more connections than pages, and a probe, which
takes no page slot, always gets an answer.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from collections import Counter

CONNECTION_LIMIT = 64
PAGE_LIMIT, PAGES_OF_ADDRESS = 16, 12
_ROOM_S = 0.1
"""Seconds that a new connection waits for the end of the one that it replaces."""
_PAGE_WAIT_S = 2.5
"""Seconds that a request waits for a page slot."""
_SLOW_S = 1.0
"""Seconds for one block of a page, after which a slow client may be replaced."""


class Slot:
    """One connection's."""

    def __init__(self, connection: socket.socket, address: str) -> None:
        self.connection: socket.socket | None = connection
        """None once its thread is about to close it."""
        self.share = share_of(address)
        self.waits_since = time.monotonic()
        self.has_page = False
        self.block_since: float | None = None
        """When sending the current block of the page began; None between blocks."""

    def end(self) -> None:
        """Wakes the thread that reads or writes; it then gives up."""
        if self.connection is not None:
            try:
                # Not SSLSocket's own shutdown, after which writes would be unencrypted.
                socket.socket.shutdown(self.connection, socket.SHUT_RDWR)
            except OSError:
                pass


class Connections:
    """All connections of a server. Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._slots: set[Slot] = set()
        self._given_up: set[Slot] = set()
        """The members of `_slots` that were asked to end."""

    def enter(self, connection: socket.socket, address: str) -> Slot | None:
        """Returns a slot for a new connection, or None if all are taken."""
        slot = Slot(connection, address)
        with self._changed:
            if len(self._slots) >= CONNECTION_LIMIT:
                self._end_one_that_waits()
                if not self._changed.wait_for(lambda: len(self._slots) < CONNECTION_LIMIT, _ROOM_S):
                    return None
            self._slots.add(slot)
        return slot

    def leave(self, slot: Slot) -> None:
        with self._changed:
            self._slots.discard(slot)
            self._given_up.discard(slot)
            self._changed.notify_all()

    def take(self, slot: Slot, connection: socket.socket | None) -> None:
        """Sets the slot's connection; None while it is being closed."""
        with self._changed:
            slot.connection = connection
            if slot in self._given_up:
                slot.end()

    def wait(self, slot: Slot) -> None:
        """Marks the slot as waiting for a request from now on."""
        with self._changed:
            slot.waits_since = time.monotonic()

    def begin_page(self, slot: Slot) -> bool:
        """Takes a page slot if one is free or becomes free soon; end_page() returns it."""
        deadline = time.monotonic() + _PAGE_WAIT_S
        with self._changed:
            while not self._has_room_for_page(slot):
                self._end_slow_pages()
                left = deadline - time.monotonic()
                if left <= 0 or slot in self._given_up:
                    return False
                self._changed.wait(min(left, _SLOW_S / 4))
            slot.has_page = True
            return True

    def end_page(self, slot: Slot) -> None:
        with self._changed:
            slot.has_page, slot.block_since = False, None
            slot.waits_since = time.monotonic()
            self._changed.notify_all()

    def _has_room_for_page(self, slot: Slot) -> bool:
        pages = [one for one in self._slots if one.has_page]
        of_address = sum(one.share == slot.share for one in pages)
        return len(pages) < PAGE_LIMIT and of_address < PAGES_OF_ADDRESS

    def _end_slow_pages(self) -> None:
        now = time.monotonic()
        for one in self._slots:
            since = one.block_since
            if one.has_page and since is not None and now - since > _SLOW_S:
                self._give_up(one)

    def _end_one_that_waits(self) -> None:
        counts = Counter(one.share for one in self._slots)
        waiting = [one for one in self._slots if not one.has_page and one not in self._given_up]
        if waiting:
            self._give_up(min(waiting, key=lambda one: (-counts[one.share], one.waits_since)))

    def _give_up(self, slot: Slot) -> None:
        if slot not in self._given_up:
            self._given_up.add(slot)
            slot.end()
            self._changed.notify_all()


def share_of(address: str) -> str:
    """The share that an address counts towards: itself, or in IPv6 its 64-bit network, since one
    client has all of its addresses."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped:
        return str(found.ipv4_mapped)
    return str(ipaddress.IPv6Network((found, 64), strict=False))
