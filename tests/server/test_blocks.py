"""A page in pieces: the same bytes for every way of sending, with a recognizable end."""

import gzip
import http.client
import socket
import tracemalloc
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.bench.scrape import snapshot_of
from opscope.host.snapshot import Snapshot
from opscope.server import bounded_io
from opscope.server.blocks import begun, chunked, in_blocks, packed
from opscope.server.pages import Latest, Server

TIMEOUT_S = 60
KIND = "text/plain"
PIECE = b"0123456789abcdef" * 256
PIECES = 1000

_SIZES = st.lists(st.integers(0, 100_000), max_size=12)


class Page:
    """A page of pieces; after `fails_after` of them an error."""

    def __init__(self, pieces: int = PIECES, fails_after: int | None = None) -> None:
        self.made = 0
        self._pieces = pieces
        self._fails_after = fails_after

    def page(self, snapshot: Snapshot, accept: str) -> tuple[Iterable[bytes], str]:
        return self._made(), KIND

    def _made(self) -> Iterator[bytes]:
        for number in range(self._pieces):
            if number == self._fails_after:
                raise ValueError("no luck")
            self.made += 1
            yield PIECE

    def close(self) -> None:
        pass


@pytest.fixture
def page() -> Page:
    return Page()


@pytest.fixture
def server(page: Page) -> Iterator[Server]:
    server = Server("127.0.0.1", 0, Latest(lambda: snapshot_of(1, 0)), page)
    yield server
    server.close()


def ask(server: Server, method: str = "GET", **headers: str) -> tuple[bytes, dict[str, str]]:
    connection = http.client.HTTPConnection(*server.address, timeout=TIMEOUT_S)
    try:
        connection.request(method, "/metrics", headers=headers)
        answer = connection.getresponse()
        return answer.read(), dict(answer.getheaders())
    finally:
        connection.close()


@given(_SIZES)
def test_blocks_are_the_pieces_and_none_is_empty(sizes: list[int]) -> None:
    pieces = [bytes([number]) * size for number, size in enumerate(sizes)]
    blocks = list(in_blocks(iter(pieces)))
    assert b"".join(blocks) == b"".join(pieces)
    assert all(blocks)
    assert all(len(block) >= 64 << 10 for block in blocks[:-1])
    first = begun(iter(pieces))
    assert isinstance(first, bytes) == (len(blocks) < 2)
    whole = first if isinstance(first, bytes) else b"".join(first)
    assert whole == b"".join(pieces)
    assert gzip.decompress(b"".join(packed(iter(pieces)))) == whole
    assert b"".join(packed(iter(pieces))) == b"".join(packed(iter(pieces)))
    assert _unchunked(b"".join(chunked(blocks))) == whole


def _unchunked(raw: bytes) -> bytes:
    found = b""
    while raw:
        size, _, raw = raw.partition(b"\r\n")
        count = int(size, 16)
        found += raw[:count]
        assert raw[count : count + 2] == b"\r\n"
        raw = raw[count + 2 :]
    return found


def test_a_large_page_is_sent_while_it_is_generated(server: Server) -> None:
    plain, headers = ask(server)
    assert plain == PIECE * PIECES
    assert headers["Transfer-Encoding"] == "chunked"
    assert "Content-Length" not in headers
    small, headers = ask(server, **{"Accept-Encoding": "gzip"})
    assert gzip.decompress(small) == plain
    assert headers["Content-Encoding"] == "gzip"


def test_one_connection_takes_one_page_after_another(server: Server) -> None:
    connection = http.client.HTTPConnection(*server.address, timeout=TIMEOUT_S)
    for _ in range(3):
        connection.request("GET", "/metrics")
        assert len(connection.getresponse().read()) == len(PIECE) * PIECES
    connection.close()


def test_a_page_of_one_block_says_its_length(page: Page, server: Server) -> None:
    page._pieces = 3
    plain, headers = ask(server)
    assert (plain, headers["Content-Length"]) == (PIECE * 3, str(len(PIECE) * 3))


def test_a_head_request_generates_no_page(page: Page, server: Server) -> None:
    assert ask(server, "HEAD")[0] == b""
    assert page.made < PIECES / 10


def test_a_client_of_http_1_0_gets_it_whole(server: Server) -> None:
    with socket.create_connection(server.address, timeout=TIMEOUT_S) as client:
        client.sendall(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")
        with client.makefile("rb") as file:
            head, _, body = file.read().partition(b"\r\n\r\n")
    assert b"Content-Length: %d" % (len(PIECE) * PIECES) in head
    assert b"chunked" not in head
    assert body == PIECE * PIECES


def test_an_error_at_the_beginning_is_said(page: Page, server: Server) -> None:
    page._fails_after = 0
    assert ask(server)[0] == b"no luck\n"
    assert server.requests.facts()["requests"]["/metrics", "500"] == 1


@pytest.mark.parametrize("coding", ["identity", "gzip"])
def test_a_page_that_breaks_off_is_not_taken_for_a_whole_one(
    page: Page, server: Server, coding: str
) -> None:
    page._fails_after = PIECES - 1
    with pytest.raises(http.client.IncompleteRead):
        ask(server, **{"Accept-Encoding": coding})
    assert server.requests.facts()["requests"] == {("/metrics", "500"): 1}


def test_a_page_is_never_there_whole() -> None:
    tracemalloc.start()
    try:
        size = sum(map(len, packed(in_blocks(Page()._made()))))
        assert size
        assert tracemalloc.get_traced_memory()[1] < len(PIECE) * PIECES / 8
    finally:
        tracemalloc.stop()


def test_a_client_that_takes_its_time_is_cut_off(
    server: Server, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_io, "ANSWER_S", 0.2)
    page._pieces = 10**9
    with socket.create_connection(server.address, timeout=TIMEOUT_S) as client:
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        # It ends, however much the client reads.
        while client.recv(1 << 20):
            pass
