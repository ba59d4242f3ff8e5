"""One connection of HTTP/1.1: bodies straight from the socket into their place.

Why not a web framework: each hands bodies on as pieces of bytes, which it has copied once or twice.
Here the loop receives a body into one block of memory, in which the first tensor begins at a
multiple of 64 bytes, so that it is a model's input as it lies there. http_head.py reads heads, and
chunked bodies.

Each phase has a limit of time and size; a client that breaks one gets an answer and is cut off.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.client import responses
from typing import Any

from opscope.serving.faults import Reason, RequestError
from opscope.serving.http_head import Head, HeadParser
from opscope.serving.limits import Admission
from opscope.serving.wire import Buffer

HEADER_LENGTH = "inference-header-content-length"
_ALIGNMENT = 64
READ_BYTES = 64 << 10
"""Of a server's buffer for reading."""
_LENGTH_DIGITS = 18
_SMALL_BYTES = 16 << 10
"""Up to here one more system call costs more than a copy."""


@dataclass(slots=True)
class HttpRequest:
    """A complete request. `body` is writable memory of its own."""

    method: str
    path: str
    headers: dict[str, str]
    body: memoryview


@dataclass(slots=True)
class HttpReply:
    status: int
    body: Sequence[Buffer] = ()
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()


Cancel = Callable[[], object]
Answer = Callable[[HttpRequest, Callable[[HttpReply], None]], Cancel | None]
"""Gives a request's answer to the function, at once or later, unless it is cancelled. Returns what
cancels it, or None if the answer has been given."""


def refusal(reason: Reason, text: str) -> HttpReply:
    """The protocol's object of an error."""
    return HttpReply(reason.http_status, (json.dumps({"error": text}).encode(),))


class HttpConnection(asyncio.BufferedProtocol):
    """Answers the requests of one connection, one after another."""

    def __init__(
        self,
        answer: Answer,
        admission: Admission,
        connections: set[HttpConnection],
        read: bytearray,
    ) -> None:
        """`read`: of READ_BYTES, what is received into; all connections of a loop share it."""
        self._answer = answer
        self._admission = admission
        self._limits = admission.limits
        self._all = connections
        self._read = read
        self._pending = bytearray()
        """Received, and not yet a part of a request."""
        self._has_begun = False
        """Whether a part of the next head is there."""
        self._head: Head | None = None
        self._parser: HeadParser | None = None
        """While it decodes the chunks of a body."""
        self._body: memoryview | None = None
        self._filled = 0
        self._admitted = -1
        """The bytes that were admitted; -1: none."""
        self._is_answering = False
        self._cancel: Cancel | None = None
        self._is_last = False
        """Whether the connection ends with this request."""
        self._loop = asyncio.get_running_loop()
        self._deadline: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_closing = False
        self._transport: Any = None
        self._is_clogged = False
        """Whether the client does not take its answers."""

    # ---- asyncio's side ------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        if len(self._all) >= self._limits.connections:
            self._refuse(Reason.OVERLOAD, "the server has as many connections as it takes")
            return
        self._all.add(self)
        self._expect(self._limits.idle_s)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._all.discard(self)
        self._is_closing = True
        self._deadline = None
        if self._timer is not None:
            self._timer.cancel()
        if self._cancel is not None:
            self._cancel()  # the client has gone: its request leaves the queue
            self._cancel = None
        self._drop_body()

    def get_buffer(self, sizehint: int) -> memoryview | bytearray:
        if self._body is not None and self._filled < len(self._body):
            return self._body[self._filled :]
        return self._read

    def buffer_updated(self, nbytes: int) -> None:
        if self._body is not None and self._filled < len(self._body):
            self._filled += nbytes
            if self._filled == len(self._body):
                self._complete(self._body)
        elif not self._is_closing:
            self._pending += memoryview(self._read)[:nbytes]
            if self._is_answering:
                if len(self._pending) > self._limits.head_bytes:
                    self._transport.pause_reading()  # pipelined requests wait
                return
            self._parse()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._is_clogged = True

    def resume_writing(self) -> None:
        self._is_clogged = False
        if self._is_answering and self._cancel is None:
            self._next()

    def finish(self) -> None:
        """Closes the connection after the request that it has, if it has one."""
        self._is_closing = True
        if not self._is_answering and self._head is None:
            self._transport.close()

    def abort(self) -> None:
        """Closes the connection at once."""
        self._transport.abort()

    # ---- a request -----------------------------------------------------------------------------

    def _parse(self) -> None:
        if self._is_closing or self._is_answering or not self._pending:
            return
        try:
            if self._head is None:
                self._parse_head()
            elif self._parser is not None:
                self._parse_chunks(self._parser)
        except RequestError as fault:
            self._refuse(fault.reason, str(fault))

    def _parse_head(self) -> None:
        end = self._pending.find(b"\r\n\r\n") + 4
        if end < 4 or end > self._limits.head_bytes:
            if len(self._pending) > self._limits.head_bytes:
                raise RequestError(Reason.HEAD_TOO_LARGE, "the head of the request is too large")
            if not self._has_begun:
                self._has_begun = True
                self._expect(self._limits.receive_s)
            return
        parser = HeadParser()
        head = parser.parse(bytes(self._pending[:end]))
        del self._pending[:end]
        self._head = head
        self._is_last = not head.keep_alive
        headers = head.headers
        if headers.get("expect", "").lower() == "100-continue":
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        size = head.length
        if size > self._limits.message_bytes:
            raise self._too_large()
        if not self._admission.enter(size):
            raise RequestError(Reason.OVERLOAD, "the server has as many requests as it takes")
        self._admitted = size
        if head.is_chunked:
            self._expect(self._limits.receive_s)
            self._parser = parser
            self._parse_chunks(parser)
            return
        self._body = body = _block(size, _json_bytes(headers.get(HEADER_LENGTH), size))
        given = min(size, len(self._pending))
        if given:
            body[:given] = self._pending[:given]
            del self._pending[:given]
        self._filled = given
        if given == size:
            self._complete(body)
        else:
            self._expect(self._limits.receive_s)

    def _parse_chunks(self, parser: HeadParser) -> None:
        before = len(parser.body)
        is_complete = parser.feed(bytes(self._pending))
        self._pending.clear()
        more = len(parser.body) - before
        if len(parser.body) > self._limits.message_bytes:
            raise self._too_large()
        if not self._admission.grow(more):
            raise RequestError(Reason.OVERLOAD, "the server has as many requests as it takes")
        self._admitted += more
        if is_complete:
            self._is_last |= parser.has_more
            self._complete(memoryview(parser.body))

    def _too_large(self) -> RequestError:
        return RequestError(
            Reason.TOO_LARGE, f"a request has at most {self._limits.message_bytes} bytes"
        )

    def _complete(self, body: memoryview) -> None:
        head = self._head
        assert head is not None
        self._deadline = None
        self._is_answering = True
        request = HttpRequest(head.method, head.target, head.headers, body)
        cancel = self._answer(request, self._reply)
        if cancel is not None:
            self._cancel = cancel

    def _reply(self, reply: HttpReply) -> None:
        self._cancel = None
        if self._transport.is_closing():
            self._drop_body()
            return
        assert self._head is not None
        self._is_last |= self._is_closing
        self._write(reply, with_body=self._head.method != "HEAD")
        if self._is_clogged:
            self._expect(self._limits.receive_s)  # `resume_writing` goes on
        else:
            self._next()

    def _next(self) -> None:
        """Takes the next request, now that the answer to the last one is sent."""
        self._drop_body()
        self._is_answering = False
        if self._is_last or self._is_closing:
            self._deadline = None
            self._is_closing = True
            self._transport.close()
            return
        self._head = None
        self._parser = None
        self._has_begun = False
        self._expect(self._limits.idle_s)
        if self._pending:
            self._transport.resume_reading()
            self._loop.call_soon(self._parse)

    def _drop_body(self) -> None:
        self._body = None
        self._filled = 0
        if self._admitted >= 0:
            self._admission.leave(self._admitted)
            self._admitted = -1

    # ---- answers -------------------------------------------------------------------------------

    def _refuse(self, reason: Reason, text: str) -> None:
        """Answers a request that is not complete, and closes: its rest would be read as another."""
        self._is_closing = True
        self._deadline = None
        if self._transport.is_closing():
            return
        self._is_last = True
        self._write(refusal(reason, text), with_body=True)
        self._drop_body()
        self._transport.close()

    def _write(self, reply: HttpReply, *, with_body: bool) -> None:
        size = sum([memoryview(part).nbytes for part in reply.body])
        status = reply.status
        text = (
            f"HTTP/1.1 {status} {responses.get(status, '')}\r\n"
            f"content-type: {reply.content_type}\r\ncontent-length: {size}\r\n"
        )
        for name, value in reply.headers:
            text += f"{name}: {value}\r\n"
        if self._is_last:
            text += "connection: close\r\n"
        parts = [f"{text}\r\n".encode("latin-1"), *(reply.body if with_body else ())]
        if size <= _SMALL_BYTES:
            self._transport.write(b"".join(parts))
        else:
            # Each goes from where it lies to the socket; only what does not fit is kept.
            for part in parts:
                self._transport.write(part)

    # ---- time ----------------------------------------------------------------------------------

    def _expect(self, within_s: float) -> None:
        """The connection is closed if it does not get on within this time."""
        self._deadline = self._loop.time() + within_s

    def _watch(self) -> None:
        """Looks again before any deadline that may be set until then: one timer now and then is
        cheaper than one for each phase of each request."""
        now = self._loop.time()
        longest_s = min(self._limits.idle_s, self._limits.receive_s)
        due = now + longest_s
        if self._deadline is not None:
            if self._deadline <= now:
                self._is_closing = True
                self._transport.abort()
                return
            due = min(due, self._deadline)
        self._timer = self._loop.call_at(due, self._watch)


def _json_bytes(header: str | None, size: int) -> int:
    """Where the first tensor begins in the body."""
    if (
        header is None
        or not (header.isascii() and header.isdigit())
        or len(header) > _LENGTH_DIGITS
    ):
        return 0
    return min(int(header), size)


def _block(size: int, aligned_at: int) -> memoryview:
    """Memory for a body whose byte `aligned_at` is at a multiple of 64."""
    block = bytearray(size + _ALIGNMENT)
    address = ctypes.addressof(ctypes.c_char.from_buffer(block))
    start = -(address + aligned_at) % _ALIGNMENT
    return memoryview(block)[start : start + size]
