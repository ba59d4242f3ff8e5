"""Clients that hold on to the server cannot starve others."""

import base64
import hashlib
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from opscope.host.host import Host
from opscope.server import bounded_io, connections
from opscope.server.access import Passwords, password_line
from opscope.server.connections import Connections, share_of
from opscope.server.fair_queue import Busy, FairQueue
from opscope.server.http_server import Answer
from opscope.server.pages import Latest, Server
from tests.server.test_access import TIMEOUT_S, prometheus, status

ENDLESS = b"x" * (1 << 16)


def endless() -> Iterator[bytes]:
    while True:
        yield ENDLESS


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    pages = {"/endless": lambda _: Answer(endless()), "/small": lambda _: Answer(b"small\n")}
    latest = Latest(Host([str(tmp_path)], consume=False).collect)
    server = Server("127.0.0.1", 0, latest, prometheus(), more=pages)
    yield server
    server.close()


def ask(server: Server, path: str) -> socket.socket:
    client = socket.create_connection(server.address, timeout=TIMEOUT_S)
    client.sendall(b"GET %b HTTP/1.1\r\nHost: localhost\r\n\r\n" % path.encode())
    return client


def holding(server: Server, count: int, stack: ExitStack) -> list[socket.socket]:
    """Clients that request an endless page and do not read; PAGES_OF_ADDRESS have one."""
    clients = [stack.enter_context(ask(server, "/endless")) for _ in range(count)]
    for client in clients[: connections.PAGES_OF_ADDRESS]:
        client.recv(1, socket.MSG_PEEK)
    return clients


def test_probes_are_answered_while_clients_that_do_not_read_hold_every_page(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_SLOW_S", TIMEOUT_S)
    with ExitStack() as stack:
        holding(server, 40, stack)
        for _ in range(100):
            assert status(f"{server.url}/healthz") == 200


def test_a_page_whose_client_does_not_read_gives_way_to_one_that_is_wanted(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_io, "BLOCK_S", TIMEOUT_S)
    monkeypatch.setattr(bounded_io, "ANSWER_S", TIMEOUT_S)
    monkeypatch.setattr(connections, "_PAGE_WAIT_S", TIMEOUT_S)
    with ExitStack() as stack:
        holding(server, connections.PAGES_OF_ADDRESS, stack)
        assert status(f"{server.url}/small") == 200


def test_without_a_free_page_slot_the_client_must_try_again(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_SLOW_S", TIMEOUT_S)
    monkeypatch.setattr(connections, "_PAGE_WAIT_S", 0.0)
    with ExitStack() as stack:
        holding(server, connections.PAGES_OF_ADDRESS, stack)
        client = stack.enter_context(ask(server, "/small"))
        answer = client.recv(1 << 16)
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"\r\nRetry-After: 1\r\n" in answer


def test_another_address_has_pages_while_one_holds_all_of_its_share(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_SLOW_S", TIMEOUT_S)
    with ExitStack() as stack:
        holding(server, 40, stack)
        other = stack.enter_context(
            socket.create_connection(
                server.address, timeout=TIMEOUT_S, source_address=("127.0.0.2", 0)
            )
        )
        other.sendall(b"GET /small HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert other.recv(1 << 16).startswith(b"HTTP/1.1 200 ")


def test_the_address_with_most_connections_gives_way_its_oldest_first() -> None:
    held = Connections()
    with ExitStack() as stack:

        def entered(address: str) -> tuple[Any, socket.socket]:
            ours, theirs = (stack.enter_context(one) for one in socket.socketpair())
            theirs.settimeout(TIMEOUT_S)
            return held.enter(ours, address), theirs

        alone, _ = entered("10.0.0.1")
        many = [entered("10.0.0.2") for _ in range(connections.CONNECTION_LIMIT - 1)]
        held.wait(many[0][0])  # has just asked for something

        def leave() -> None:
            many[1][1].recv(1)
            held.leave(many[1][0])

        leaving = threading.Thread(target=leave)
        leaving.start()
        assert entered("10.0.0.3")[0] is not None
        leaving.join(TIMEOUT_S)
        assert alone.connection is not None
        # No connection ends in time, so there is no slot.
        assert entered("10.0.0.4")[0] is None


@pytest.mark.parametrize(
    ("address", "share"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("?", "?"),
    ],
)
def test_shares_are_of_addresses_that_one_client_has(address: str, share: str) -> None:
    assert share_of(address) == share


def test_a_client_that_takes_a_byte_now_and_then_is_cut_off(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_io, "ANSWER_S", 0.5)
    begun = time.monotonic()
    with ask(server, "/endless") as slow:
        try:
            while slow.recv(4096) and time.monotonic() - begun < TIMEOUT_S:
                pass
        except ConnectionError:
            pass
    assert time.monotonic() - begun < TIMEOUT_S


# ---- passwords --------------------------------------------------------------------------------


@pytest.fixture
def users(tmp_path: Path) -> str:
    path = tmp_path / "users"
    path.write_text(f"{password_line('ann', 'a')}\n")
    return str(path)


def basic(password: str) -> str:
    return "Basic " + base64.b64encode(f"ann:{password}".encode()).decode()


def test_a_password_that_was_right_does_not_wait_for_wrong_ones(
    users: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    passwords = Passwords(users)
    assert passwords.allows(basic("a"))
    is_checked, go_on = threading.Event(), threading.Event()

    def slow(*_: object, **__: object) -> bytes:
        is_checked.set()
        assert go_on.wait(TIMEOUT_S)
        return bytes(32)

    monkeypatch.setattr(hashlib, "scrypt", slow)
    wrong = threading.Thread(target=lambda: passwords.allows(basic("wrong")))
    wrong.start()
    assert is_checked.wait(TIMEOUT_S)
    assert passwords.allows(basic("a"))
    go_on.set()
    wrong.join(TIMEOUT_S)


def test_a_frequent_client_delays_only_itself() -> None:
    turns = FairQueue()
    order: list[str] = []

    def wait(share: str) -> threading.Thread:
        def run() -> None:
            with turns.turn(share):
                order.append(share)

        before = len(turns._waiting)
        thread = threading.Thread(target=run)
        thread.start()
        deadline = time.monotonic() + TIMEOUT_S
        while len(turns._waiting) == before and time.monotonic() < deadline:
            time.sleep(0)
        return thread

    with turns.turn("many"):
        threads = [wait(share) for share in ("many", "many", "many", "one")]
    for thread in threads:
        thread.join(TIMEOUT_S)
    assert order == ["one", "many", "many", "many"]


def test_so_many_of_an_address_wait_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opscope.server.fair_queue._WAITING_OF_SHARE", 0)
    turns = FairQueue()
    with pytest.raises(Busy, match="too many"), turns.turn("many"):
        pytest.fail("has a turn")
    monkeypatch.setattr("opscope.server.fair_queue._WAITING_OF_SHARE", 1)
    monkeypatch.setattr("opscope.server.fair_queue._WAIT_S", 0.0)
    with turns.turn("many"), pytest.raises(Busy, match="too long"), turns.turn("many"):
        pytest.fail("has a turn too")
    with turns.turn("many"):
        pass


def test_a_client_that_waits_too_long_for_a_check_must_try_again(
    tmp_path: Path, users: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opscope.server.fair_queue._WAITING_LIMIT", 0)
    latest = Latest(Host([str(tmp_path)], consume=False).collect)
    server = Server("127.0.0.1", 0, latest, prometheus(), passwords=Passwords(users))
    assert status(f"{server.url}/metrics", Authorization=basic("a")) == 503
    monkeypatch.setattr("opscope.server.fair_queue._WAITING_LIMIT", 1)
    request = Request(f"{server.url}/metrics", headers={"Authorization": basic("a")})
    with urlopen(request, timeout=TIMEOUT_S) as answer:
        assert answer.status == 200
    server.close()
