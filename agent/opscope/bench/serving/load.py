"""Clients: h2load, which is of C, for throughput; one that sends at a steady rate, for latencies.

h2load (Debian's package nghttp2-client) speaks HTTP/1.1 and, with gRPC's framing around a message,
gRPC. It costs a few microseconds for each request: a client in Python would take as much of the two
cores as the server, and hide what the server's sides differ in.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from opscope.errors import OpscopeError

_SERVICE = "/inference.GRPCInferenceService/"
_DONE = re.compile(r"finished in [^,]*, ([0-9.]+) req/s")
_SUCCEEDED = re.compile(r"requests: .* (\d+) succeeded")
_STATUS = b"HTTP/1.1 200 "


class Request(NamedTuple):
    """What is sent again and again."""

    url: str
    headers: Mapping[str, str]
    body: bytes = b""
    """Empty over HTTP: it is got."""
    is_grpc: bool = False


def grpc_request(address: str, method: str, message: bytes) -> Request:
    framed = b"\0" + struct.pack(">I", len(message)) + message
    headers = {"content-type": "application/grpc", "te": "trailers"}
    return Request(f"http://{address}{_SERVICE}{method}", headers, framed, True)


def program() -> str:
    """The path of h2load. Raises OpscopeError."""
    found = shutil.which("h2load")
    if found is None:
        raise OpscopeError("this bench needs h2load (apt install nghttp2-client)")
    return found


def throughput(request: Request, count: int, at_once: int, folder: Path) -> float:
    """Requests a second, with so many in flight: over HTTP on a connection each, over gRPC on one.

    Raises RuntimeError unless all are answered with the status 200. A gRPC call that fails has that
    status too: see Program.succeeded.
    """
    data = folder / "request"
    data.write_bytes(request.body)
    shape = ["-c1", f"-m{at_once}"] if request.is_grpc else ["--h1", f"-c{at_once}"]
    command = [program(), f"-n{count}", *shape, *([f"-d{data}"] if request.body else [])]
    for name, value in request.headers.items():
        command.append(f"-H{name}: {value}")
    command.append(request.url)
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rate, succeeded = _DONE.search(text), _SUCCEEDED.search(text)
    if rate is None or succeeded is None or int(succeeded[1]) != count:
        raise RuntimeError(f"h2load: {text}")
    return float(rate[1])


def latencies(request: Request, count: int, rate: float, connections: int) -> list[float]:
    """Seconds from sending each request over HTTP to its answer, at so many a second. One that
    finds no free connection counts from when one should have been free."""
    address, _, path = request.url.removeprefix("http://").partition("/")
    head = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    line = f"POST /{path} HTTP/1.1\r\nhost: {address}\r\ncontent-length: {len(request.body)}\r\n"
    data = f"{line}{head}\r\n".encode() + request.body
    return asyncio.run(_latencies(address, data, count, rate, connections))


async def _latencies(
    address: str, data: bytes, count: int, rate: float, connections: int
) -> list[float]:
    loop = asyncio.get_running_loop()
    host, _, port = address.rpartition(":")
    free: list[_Connection] = []
    found: list[float] = []
    done: asyncio.Future[None] = loop.create_future()

    def answered(connection: _Connection, failure: str | None) -> None:
        found.append(perf_counter() - connection.due)
        free.append(connection)
        if failure is not None and not done.done():
            done.set_exception(RuntimeError(failure))
        elif len(found) == count and not done.done():
            done.set_result(None)

    for _ in range(connections):
        _, one = await loop.create_connection(lambda: _Connection(answered), host, int(port))
        free.append(one)
    started = perf_counter()
    sent = 0
    while sent < count and not done.done():
        # As many as are due: timers are no finer than a millisecond.
        now = perf_counter()
        while sent < min(count, (now - started) * rate) and free:
            free.pop().send(data, perf_counter())
            sent += 1
        await asyncio.sleep(0.0005)
    try:
        await done
    finally:
        for one in free:
            one.is_open = False
            one.transport.close()
    return found


class _Connection(asyncio.Protocol):
    """Sends a request at a time. All answers have the length of the first."""

    def __init__(self, answered: Any) -> None:
        self._answered = answered
        self._got = bytearray()
        self.is_open = True
        self.due = 0.0
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def send(self, data: bytes, due: float) -> None:
        self.due = due
        self._got.clear()
        self.transport.write(data)

    def data_received(self, data: bytes) -> None:
        self._got += data
        head, end, body = self._got.partition(b"\r\n\r\n")
        if not end:
            return
        length = re.search(rb"content-length: (\d+)", head)
        if not head.startswith(_STATUS) or length is None:
            self._answered(self, head.decode("latin-1"))
        elif len(body) == int(length[1]):
            self._answered(self, None)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.is_open:
            self._answered(self, f"the server closed the connection: {exc}")
