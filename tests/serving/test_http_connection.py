"""One connection without a socket: however its bytes are cut, the answers are the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from opscope.serving.http_connection import (
    READ_BYTES,
    Cancel,
    HttpConnection,
    HttpReply,
    HttpRequest,
)
from opscope.serving.limits import Admission, Limits
from tests.examples import examples

LIMITS = Limits(message_bytes=4096, head_bytes=256, idle_s=1000, receive_s=1000)
REQUESTS = (
    (b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n", b"/a "),
    (b"POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nh\r\n\r\n", b"/b h\r\n\r\n"),
    (
        b"POST /c HTTP/1.1\r\nHost: h\r\nInference-Header-Content-Length: 3\r\n"
        b"Content-Length: 300\r\n\r\n" + bytes(300),
        b"/c " + bytes(300),
    ),
)
CHUNKED = (
    b"POST /d HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3;x=y\r\n1\n0\r\n2\r\n\r\n\r\n0\r\nHost: other\r\n\r\n",
    b"/d 1\n0\r\n",
)


class Transport:
    def __init__(self) -> None:
        self.written = b""
        self.is_closed = False

    def write(self, data: bytes) -> None:
        self.written += data

    def close(self) -> None:
        self.is_closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.is_closed

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


def talk(pieces: list[bytes], *, later: bool = False) -> tuple[bytes, bool, Admission]:
    """What a connection writes that echoes targets and bodies, whether it closes, and what it has
    admitted; with `later`, each answer comes after a turn of the loop."""

    def answer(request: HttpRequest, done: Callable[[HttpReply], None]) -> Cancel | None:
        reply = HttpReply(200, (request.path.encode() + b" ", bytes(request.body)))
        if not later:
            done(reply)
            return None
        return asyncio.get_running_loop().call_soon(done, reply).cancel

    async def main() -> tuple[bytes, bool, Admission]:
        admission, transport = Admission(LIMITS), Transport()
        read = bytearray(READ_BYTES)
        connection = HttpConnection(answer, admission, set(), read)
        connection.connection_made(transport)  # type: ignore[arg-type]
        for piece in pieces:
            left = piece
            while left and not transport.is_closed:
                into: Any = connection.get_buffer(-1)
                size = min(len(left), len(into))
                into[:size] = left[:size]
                left = left[size:]
                connection.buffer_updated(size)
            await asyncio.sleep(0)
        for _ in range(20):
            await asyncio.sleep(0)
        is_closed = transport.is_closed
        connection.connection_lost(None)
        return transport.written, is_closed, admission

    return asyncio.run(main())


def bodies(written: bytes) -> list[bytes]:
    found = []
    while written:
        head, _, rest = written.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\n"), head
        size = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        found.append(rest[:size])
        written = rest[size:]
    return found


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(place % len(data) for place in places)})
    return [data[start:end] for start, end in pairwise(edges)]


@examples(15)
@given(
    st.lists(st.sampled_from(REQUESTS), min_size=1, max_size=6),
    st.booleans(),
    st.lists(st.integers(0, 5000), max_size=12),
    st.booleans(),
)
def test_answers_do_not_depend_on_how_the_bytes_arrive(
    requests: list[tuple[bytes, bytes]], ends_in_chunks: bool, places: list[int], later: bool
) -> None:
    if ends_in_chunks:
        requests = [*requests, CHUNKED]
    pieces = cut(b"".join(sent for sent, _ in requests), places)
    written, is_closed, admission = talk(pieces, later=later)
    assert bodies(written) == [right for _, right in requests]
    assert not is_closed
    assert (admission.requests, admission.bytes) == (0, 0)


@examples(20)
@given(st.binary(max_size=600), st.sampled_from([*REQUESTS, CHUNKED]), st.integers(0, 400))
def test_any_bytes_are_answered_or_refused_and_nothing_stays_admitted(
    noise: bytes, request: tuple[bytes, bytes], place: int
) -> None:
    for data in (noise, request[0][:place] + noise + request[0][place:]):
        written, _, admission = talk([data])
        assert not written or written.startswith(b"HTTP/1.1 ")
        assert (admission.requests, admission.bytes) == (0, 0)


def test_chunks_with_more_around_them_than_in_them_are_refused() -> None:
    head = CHUNKED[0].partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
    for endless in (b"1;" + b"x" * 300_000, b"0\r\nName: " + b"x" * 300_000):
        written, is_closed, admission = talk([head, endless])
        assert written.startswith(b"HTTP/1.1 413 ")
        assert is_closed
        assert admission.bytes == 0
