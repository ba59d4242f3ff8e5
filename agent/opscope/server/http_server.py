"""The agent's HTTP: connections, their limits, and who may ask; what is answered is in server.py.

Python's own http.server, as the agent answers a scraper a few times a minute and shall not bring a
framework along; what that lacks for a port that others can reach is here. There is a bounded number
of connections, and of bytes and seconds for each request, whoever dribbles them in; the longest
idle one makes room for a new one. TLS handshakes are in the connection's own thread. Where only
this host can reach it, requests must name it so, or a web page that somebody looks at here could
read them by a name that it makes point here.
"""

from __future__ import annotations

import io
import ipaddress
import socket
import socketserver
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from email.message import Message
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from opscope.agent.access import Certificate, Passwords
from opscope.agent.blocks import begun, chunked, packed
from opscope.record.ranges import recording

TEXT = "text/plain; charset=utf-8"

_CONNECTION_LIMIT = 32
_REQUEST_BYTES = 32 << 10
_FIRST_BYTE_S, _IDLE_S = 5.0, 75.0
"""Until a connection's first request begins, and until a later one does."""
_REQUEST_S = 5.0
"""From a request's first byte to its last, and for the handshake."""
_ANSWER_S = 60.0
"""To send all of an answer, and _WRITE_BYTES at a time, as each write may take what is left."""
_WRITE_BYTES = 128 << 10
_POLICY = "default-src 'self'; img-src data:; frame-ancestors 'none'"
"""A page has only what comes from here, and is in no other page."""
# Less than this fits into a packet or two.
_COMPRESSED_FROM_BYTES = 2048


class Answer(NamedTuple):
    body: bytes | Iterable[bytes]
    """Whole, or in pieces that are asked for while they are sent."""
    content_type: str = TEXT
    status: HTTPStatus = HTTPStatus.OK


Route = Callable[[Message], Answer]
"""Gets the request's headers. Called from several threads; what it raises is status 500."""


class Requests:
    """What was answered, for the agent's own metrics."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()
        self._seconds = 0.0

    def count(self, path: str, status: int, seconds: float) -> None:
        with self._lock:
            self._counts[path, str(status)] += 1
            self._seconds += seconds

    def facts(self) -> dict[str, Any]:
        """The fields of OwnCost."""
        with self._lock:
            return {"requests": dict(self._counts), "request_s": self._seconds}


class HttpServer(ThreadingHTTPServer):
    """`routes` by path; those in `open_paths` need no password."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(
        self,
        address: tuple[str, int],
        routes: Mapping[str, Route],
        open_paths: frozenset[str],
        certificate: Certificate | None,
        passwords: Passwords | None,
    ) -> None:
        self.routes = routes
        self.open_paths = open_paths
        self.certificate = certificate
        self.passwords = passwords
        self.requests = Requests()
        self.is_local = _is_loopback(address[0])
        self._slots = threading.BoundedSemaphore(_CONNECTION_LIMIT)
        self._idle: dict[int, socket.socket] = {}
        self._idle_lock = threading.Lock()
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, _Connection)

    def server_bind(self) -> None:
        # Not HTTPServer's, which asks DNS for the host's name.
        socketserver.TCPServer.server_bind(self)

    def process_request(self, request: object, client_address: object) -> None:
        assert isinstance(request, socket.socket)
        if not self._slots.acquire(blocking=False):
            self._make_room()
            if not self._slots.acquire(timeout=0.1):
                self.shutdown_request(request)
                self.requests.count("", HTTPStatus.SERVICE_UNAVAILABLE, 0.0)
                return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread to be had
            self._slots.release()
            self.shutdown_request(request)

    def process_request_thread(self, request: object, client_address: object) -> None:
        try:
            # In a program that serves its own numbers, this work is none of the program's.
            with recording(False):
                super().process_request_thread(request, client_address)  # type: ignore[arg-type]
        finally:
            self._slots.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no news."""

    def note_idle(self, connection: socket.socket, is_idle: bool) -> None:
        with self._idle_lock:
            self._idle.pop(id(connection), None)
            if is_idle:
                self._idle[id(connection)] = connection

    def _make_room(self) -> None:
        with self._idle_lock:
            for number, connection in self._idle.items():
                del self._idle[number]
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
                return


class _Limited(io.RawIOBase):
    """A connection's bytes, as many and for as long as one request may have."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._left = 0
        self._deadline = 0.0
        self._is_begun = False

    def await_request(self, seconds: float) -> None:
        self._left = _REQUEST_BYTES
        self._deadline = time.monotonic() + seconds
        self._is_begun = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        seconds = self._deadline - time.monotonic()
        if seconds <= 0 or self._left <= 0:
            raise TimeoutError
        self._connection.settimeout(seconds)
        view = memoryview(buffer)[: self._left]  # type: ignore[arg-type]
        count = self._connection.recv_into(view)
        self._left -= count
        if not self._is_begun:
            self._is_begun = True
            self._deadline = time.monotonic() + _REQUEST_S
        return count


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "opscope", ""
    wbufsize = -1
    disable_nagle_algorithm = True  # the last chunk is a packet of its own

    @property
    def _http(self) -> HttpServer:
        assert isinstance(self.server, HttpServer)
        return self.server

    def setup(self) -> None:
        connection: socket.socket = self.request
        connection.settimeout(_REQUEST_S)
        if self._http.certificate is not None:
            # The server closes the one it accepted, which from here on is this one's.
            secured = self._http.certificate.wrap(connection)
            try:
                secured.do_handshake()
            except BaseException:
                secured.close()
                raise
            connection = self.request = secured
        self._limited = _Limited(connection)
        self._wait_s = _FIRST_BYTE_S
        super().setup()
        self.rfile = io.BufferedReader(self._limited)

    def finish(self) -> None:
        self._http.note_idle(self.connection, False)
        try:
            super().finish()
        finally:
            if self._http.certificate is not None:
                self.connection.close()

    def handle_one_request(self) -> None:
        self._limited.await_request(self._wait_s)
        self._http.note_idle(self.connection, True)
        try:
            super().handle_one_request()
        except OSError:
            self.close_connection = True
        self._wait_s = _IDLE_S

    def do_GET(self) -> None:
        self._http.note_idle(self.connection, False)
        started = time.monotonic()
        path = self.path.partition("?")[0]
        route = self._http.routes.get(path)
        if self.headers.get("Content-Length") or self.headers.get("Transfer-Encoding"):
            self.close_connection = True  # what follows would be taken for a request
        answer = self._refusal(path)
        if answer is None and route is None:
            answer = Answer(b"not found; see /\n", status=HTTPStatus.NOT_FOUND)
        if answer is None and route is not None:
            try:
                answer = route(self.headers)
                if not isinstance(answer.body, bytes):
                    answer = answer._replace(body=begun(answer.body))
            except Exception as error:
                text = f"{str(error) or type(error).__name__}\n".encode()
                answer = Answer(text, status=HTTPStatus.INTERNAL_SERVER_ERROR)
        assert answer is not None
        status = answer.status
        try:
            self._send(answer)
        except OSError:
            raise
        except Exception:
            # In the middle of a page: without its end, the client knows that it has not all.
            status = HTTPStatus.INTERNAL_SERVER_ERROR
            self.close_connection = True
        finally:
            self._http.requests.count(
                path if route is not None else "", status, time.monotonic() - started
            )

    def do_HEAD(self) -> None:
        self.do_GET()

    def _refusal(self, path: str) -> Answer | None:
        server = self._http
        if path in server.open_paths:
            return None
        if server.passwords is not None:
            if not server.passwords.allows(self.headers.get("Authorization", "")):
                self.close_connection = True
                return Answer(b"name and password, please\n", status=HTTPStatus.UNAUTHORIZED)
        elif server.is_local and not _names_this_host(self.headers.get("Host", "")):
            text = b"this port is for this host alone: ask for localhost or its address\n"
            return Answer(text, status=HTTPStatus.FORBIDDEN)
        return None

    def _send(self, answer: Answer) -> None:
        body = answer.body
        blocks = [body] if isinstance(body, bytes) else body
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Content-Security-Policy", _POLICY)
        self.send_header("Vary", "Accept, Accept-Encoding")
        if answer.status == HTTPStatus.UNAUTHORIZED and self._http.passwords is not None:
            self.send_header("WWW-Authenticate", self._http.passwords.challenge)
        if self.close_connection:
            self.send_header("Connection", "close")
        is_small = isinstance(body, bytes) and len(body) < _COMPRESSED_FROM_BYTES
        if not is_small and _takes_gzip(self.headers):
            self.send_header("Content-Encoding", "gzip")
            blocks = packed(blocks)
        if isinstance(body, bytes) or self.request_version != "HTTP/1.1":
            blocks = [b"".join(blocks)]
            self.send_header("Content-Length", str(len(blocks[0])))
        else:
            self.send_header("Transfer-Encoding", "chunked")
            blocks = chunked(blocks)
        self.end_headers()
        if self.command != "HEAD":
            deadline = time.monotonic() + _ANSWER_S
            for block in blocks:
                self._write(block, deadline)

    def _write(self, block: bytes, deadline: float) -> None:
        for begin in range(0, len(block), _WRITE_BYTES):
            seconds = deadline - time.monotonic()
            if seconds <= 0:
                raise TimeoutError
            self.connection.settimeout(seconds)
            self.wfile.write(memoryview(block)[begin : begin + _WRITE_BYTES])

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is logged for a request."""


def _takes_gzip(headers: Message) -> bool:
    for wish in headers.get("Accept-Encoding", "").split(","):
        coding, _, quality = wish.replace(" ", "").lower().partition(";q=")
        if coding == "gzip":
            return quality.strip("0.") != "" or not quality
    return False


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _names_this_host(header: str) -> bool:
    """Whether a Host header is localhost or an address, which no DNS has a say in; or missing."""
    if not header:
        return True
    host = header.rpartition("]")[0].removeprefix("[") or header.partition(":")[0]
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
