"""One connection of HTTP/1.1: heads by h11, bodies straight from the socket into their place.

Why not a web framework: each hands bodies on as pieces of bytes, which it has copied once or twice.
Here the loop receives a body into one block of memory, in which the first tensor begins at a
multiple of 64 bytes, so that it is a model's input as it lies there. h11 reads and writes the
heads, and decodes chunked bodies.

Each phase has a limit of time and size; a client that breaks one gets an answer and is cut off.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import h11

from opscope.serving.faults import Reason
from opscope.serving.limits import Admission
from opscope.serving.wire import Buffer

HEADER_LENGTH = "inference-header-content-length"
_ALIGNMENT = 64
_READ_BYTES = 64 << 10
_LENGTH_DIGITS = 18
_SMALL_BYTES = 16 << 10
"""Up to here one more system call costs more than a copy."""


@dataclass(frozen=True)
class HttpRequest:
    """A complete request. `body` is writable memory of its own."""

    method: str
    path: str
    headers: dict[str, str]
    body: memoryview


@dataclass(frozen=True)
class HttpReply:
    status: int
    body: Sequence[Buffer] = ()
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def size(self) -> int:
        return sum(memoryview(part).nbytes for part in self.body)


Answer = Callable[[HttpRequest], Awaitable[HttpReply]]


def refusal(reason: Reason, text: str) -> HttpReply:
    """The protocol's object of an error."""
    return HttpReply(reason.http_status, (json.dumps({"error": text}).encode(),))


class HttpConnection(asyncio.BufferedProtocol):
    """Answers the requests of one connection, one after another."""

    def __init__(
        self, answer: Answer, admission: Admission, connections: set[HttpConnection]
    ) -> None:
        self._answer = answer
        self._admission = admission
        self._limits = admission.limits
        self._all = connections
        self._read = bytearray(_READ_BYTES)
        self._pending = bytearray()
        """Received, and not yet a part of a request."""
        self._parser = h11.Connection(h11.SERVER, max_incomplete_event_size=self._limits.head_bytes)
        self._has_begun = False
        """Whether a part of the next head is there."""
        self._head: h11.Request | None = None
        self._body: memoryview | None = None
        self._filled = 0
        self._chunks: bytearray | None = None
        self._admitted = 0
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_closing = False
        self._transport: Any = None
        self._can_write = asyncio.Event()
        self._can_write.set()

    # ---- asyncio's side ------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        if len(self._all) >= self._limits.connections:
            self._refuse(Reason.OVERLOAD, "the server has as many connections as it takes")
            return
        self._all.add(self)
        self._expect(self._limits.idle_s)

    def connection_lost(self, exc: Exception | None) -> None:
        self._all.discard(self)
        self._expect(None)
        self._is_closing = True
        self._can_write.set()
        if self._task is not None:
            self._task.cancel()  # the client has gone: its request leaves the queue
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
            if self._task is not None:
                if len(self._pending) > self._limits.head_bytes:
                    self._transport.pause_reading()  # pipelined requests wait
                return
            self._parse()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._can_write.clear()

    def resume_writing(self) -> None:
        self._can_write.set()

    def finish(self) -> None:
        """Closes the connection after the request that it has, if it has one."""
        self._is_closing = True
        if self._task is None and self._head is None:
            self._transport.close()

    def abort(self) -> None:
        """Closes the connection at once."""
        self._transport.abort()

    # ---- a request -----------------------------------------------------------------------------

    def _parse(self) -> None:
        try:
            if self._head is None:
                self._parse_head()
            elif self._chunks is not None:
                self._parse_chunks()
        except h11.RemoteProtocolError as error:
            status = error.error_status_hint
            reason = Reason.TOO_LARGE if status == 431 else Reason.BAD_REQUEST
            self._refuse(reason, str(error))

    def _parse_head(self) -> None:
        end = self._pending.find(b"\r\n\r\n")
        if end < 0 and len(self._pending) <= self._limits.head_bytes:
            if not self._has_begun:
                self._has_begun = True
                self._expect(self._limits.receive_s)
            return
        size = end + 4 if end >= 0 else len(self._pending)
        self._parser.receive_data(bytes(self._pending[:size]))
        event = self._parser.next_event()
        if not isinstance(event, h11.Request):
            self._refuse(Reason.BAD_REQUEST, "this is no request of HTTP")
            return
        del self._pending[:size]
        self._head = event
        self._expect(self._limits.receive_s)
        headers = {name.decode("latin-1"): value for name, value in event.headers}
        if headers.get("expect", b"").lower() == b"100-continue":
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if b"chunked" in headers.get("transfer-encoding", b"").lower():
            self._chunks = bytearray()
            self._parse_chunks()
            return
        length = headers.get("content-length", b"0")
        size = int(length) if len(length) <= _LENGTH_DIGITS else self._limits.message_bytes + 1
        if size > self._limits.message_bytes:
            self._refuse(
                Reason.TOO_LARGE, f"a request has at most {self._limits.message_bytes} bytes"
            )
            return
        if not self._admit(size):
            return
        self._body = _block(size, _json_bytes(headers.get(HEADER_LENGTH), size))
        given = min(size, len(self._pending))
        self._body[:given] = self._pending[:given]
        del self._pending[:given]
        self._filled = given
        if given == size:
            self._complete(self._body)

    def _parse_chunks(self) -> None:
        assert self._chunks is not None
        if self._pending:
            self._parser.receive_data(bytes(self._pending))
            self._pending.clear()
        while True:
            event = self._parser.next_event()
            if isinstance(event, h11.Data):
                self._chunks += event.data
                if len(self._chunks) > self._limits.message_bytes:
                    self._refuse(
                        Reason.TOO_LARGE,
                        f"a request has at most {self._limits.message_bytes} bytes",
                    )
                    return
            elif isinstance(event, h11.EndOfMessage):
                rest, _ = self._parser.trailing_data
                self._pending += rest
                if self._admit(len(self._chunks)):
                    self._complete(memoryview(self._chunks))
                return
            elif event is h11.NEED_DATA:
                return
            else:
                self._refuse(Reason.BAD_REQUEST, "the body ends too early")
                return

    def _admit(self, size: int) -> bool:
        if not self._admission.enter(size):
            self._refuse(Reason.OVERLOAD, "the server has as many requests as it takes")
            return False
        self._admitted = size + 1
        return True

    def _complete(self, body: memoryview) -> None:
        assert self._head is not None
        self._expect(None)
        head = self._head
        headers: dict[str, str] = {}
        for name, value in head.headers:
            headers[name.decode("latin-1")] = value.decode("latin-1")
        request = HttpRequest(
            head.method.decode("latin-1"), head.target.decode("latin-1"), headers, body
        )
        keep = head.http_version >= b"1.1" and headers.get("connection", "").lower() != "close"
        self._task = asyncio.ensure_future(self._serve(request, keep))

    async def _serve(self, request: HttpRequest, keep: bool) -> None:
        reply = await self._answer(request)
        keep = keep and not self._is_closing
        self._write(reply, keep=keep, with_body=request.method != "HEAD")
        self._expect(self._limits.receive_s)
        del request, reply
        await self._can_write.wait()
        self._expect(None)
        self._drop_body()
        self._task = None
        if not keep or self._is_closing:
            self._transport.close()
            return
        self._head = None
        self._has_begun = False
        self._chunks = None
        self._parser = h11.Connection(h11.SERVER, max_incomplete_event_size=self._limits.head_bytes)
        self._transport.resume_reading()
        self._expect(self._limits.idle_s)
        if self._pending:
            self._parse()

    def _drop_body(self) -> None:
        self._body = None
        self._filled = 0
        if self._admitted:
            self._admission.leave(self._admitted - 1)
            self._admitted = 0

    # ---- answers -------------------------------------------------------------------------------

    def _refuse(self, reason: Reason, text: str) -> None:
        """Answers a request that is not complete, and closes: its rest would be read as another."""
        self._is_closing = True
        self._expect(None)
        if self._transport.is_closing():
            return
        self._write(refusal(reason, text), keep=False, with_body=True)
        self._drop_body()
        self._transport.close()

    def _write(self, reply: HttpReply, *, keep: bool, with_body: bool) -> None:
        headers = [
            ("content-type", reply.content_type),
            ("content-length", str(reply.size)),
            *reply.headers,
        ]
        if not keep:
            headers.append(("connection", "close"))
        writer = h11.Connection(h11.SERVER)
        head = writer.send(h11.Response(status_code=reply.status, headers=headers, reason=b""))
        parts = [head or b"", *(reply.body if with_body else ())]
        if reply.size <= _SMALL_BYTES:
            self._transport.write(b"".join(parts))
        else:
            # Each goes from where it lies to the socket; only what does not fit is kept.
            for part in parts:
                self._transport.write(part)

    # ---- time ----------------------------------------------------------------------------------

    def _expect(self, within_s: float | None) -> None:
        """The connection is closed if it does not get on within this time; None: no limit."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if within_s is not None:
            self._timer = asyncio.get_running_loop().call_later(within_s, self._late)

    def _late(self) -> None:
        self._is_closing = True
        self._transport.abort()


def _json_bytes(header: bytes | None, size: int) -> int:
    """Where the first tensor begins in the body."""
    if header is None or not header.isdigit() or len(header) > _LENGTH_DIGITS:
        return 0
    return min(int(header), size)


def _block(size: int, aligned_at: int) -> memoryview:
    """Memory for a body whose byte `aligned_at` is at a multiple of 64."""
    block = bytearray(size + _ALIGNMENT)
    address = ctypes.addressof(ctypes.c_char.from_buffer(block))
    start = -(address + aligned_at) % _ALIGNMENT
    return memoryview(block)[start : start + size]
