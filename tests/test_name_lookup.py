"""A lookup of a name ends in time, and one that hangs keeps one thread, whatever is asked."""

import socket
import threading
from collections.abc import Iterator

import pytest

from opscope.name_lookup import NameLookup
from opscope.total_deadline import TotalDeadline

TIMEOUT_S = 60.0


class Resolver:
    """In place of the system's: it answers `hangs` only once it may."""

    def __init__(self) -> None:
        self.may_answer = threading.Event()
        self.asked: list[str] = []

    def __call__(self, host: str, port: int, *, flags: int = 0, **_: object) -> list[object]:
        if flags & socket.AI_NUMERICHOST and not host.replace(".", "").isdigit():
            raise socket.gaierror(socket.EAI_NONAME, "not a number")
        if not flags:
            self.asked.append(host)
        if host == "hangs":
            self.may_answer.wait()
        if host == "unknown":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        address = host if host.replace(".", "").isdigit() else "192.0.2.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))] * 2


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Resolver]:
    made = Resolver()
    monkeypatch.setattr(socket, "getaddrinfo", made)
    yield made
    made.may_answer.set()


def lookups() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name.startswith("lookup of")]


def test_a_name_has_each_of_its_addresses_once(resolver: Resolver) -> None:
    assert NameLookup().addresses("name", 80, TIMEOUT_S) == ["192.0.2.1"]


def test_an_address_needs_no_lookup(resolver: Resolver) -> None:
    assert NameLookup().addresses("198.51.100.7", 80, 0.0) == ["198.51.100.7"]
    assert resolver.asked == []


def test_an_unknown_name_is_the_resolvers_error(resolver: Resolver) -> None:
    with pytest.raises(socket.gaierror, match="not known"):
        NameLookup().addresses("unknown", 80, TIMEOUT_S)


def test_one_that_hangs_keeps_one_thread_and_its_answer_serves_who_asks_then(
    resolver: Resolver,
) -> None:
    lookup = NameLookup()
    for name in ("hangs", "name", "hangs"):
        with pytest.raises(TimeoutError, match="the lookup of hangs has not ended"):
            lookup.addresses(name, 80, 0.01)
        assert len(lookups()) == 1
    assert resolver.asked == ["hangs"]
    found: list[list[str]] = []
    waiting = threading.Thread(
        target=lambda: found.append(lookup.addresses("hangs", 80, TIMEOUT_S))
    )
    waiting.start()
    resolver.may_answer.set()
    waiting.join()
    assert found == [["192.0.2.1"]]
    assert lookup.addresses("name", 80, TIMEOUT_S) == ["192.0.2.1"]


def test_the_next_address_is_tried_and_the_last_error_is_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    deadline, lookup, tried = TotalDeadline(NameLookup()), ["a", "b", "c"], []
    monkeypatch.setattr(NameLookup, "addresses", lambda *_: lookup)

    def connect(address: str, seconds: float) -> str:
        tried.append(address)
        assert 0 < seconds <= TIMEOUT_S / 3
        if address == good:
            return address
        raise ConnectionRefusedError(address)

    with deadline.within(TIMEOUT_S):
        good = "b"
        assert deadline.connected("name", 80, connect) == "b"
        good = ""
        with pytest.raises(ConnectionRefusedError, match="c"):
            deadline.connected("name", 80, connect)
    assert tried == ["a", "b", "a", "b", "c"]
