"""The agent's HTTP server: one thread per connection, and access rules; pages.py has the answers.

It uses Python's http.server: the agent answers a few scrapes a minute and needs no framework. For a
port that other hosts can reach, connections.py limits the number of connections, and bounded_io.py
the bytes and seconds of each. TLS handshakes run in the connection's own thread. If only this host
can reach the port, requests must address it by localhost or an IP address; otherwise a web page in
a local browser could read the answers through a DNS name that it points here.
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
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from opscope.record.ranges import recording
from opscope.server import bounded_io
from opscope.server.access import Certificate, Passwords
from opscope.server.blocks import begun, chunked, packed
from opscope.server.connections import Connections, Slot
from opscope.server.fair_queue import Busy

TEXT = "text/plain; charset=utf-8"

_HANDSHAKE = b"\x16"
_POLICY = "default-src 'self'; img-src data:; frame-ancestors 'none'"
"""A page loads only resources of this server, and no other page may embed it."""
# Smaller answers fit into a packet or two.
_COMPRESSED_FROM_BYTES = 2048
_COMPRESSED = "application/gzip"
# Largest body of a request.
_BODY_BYTES = 1024


class Answer(NamedTuple):
    body: bytes | Iterable[bytes]
    """The whole body, or pieces that are generated while they are sent."""
    content_type: str = TEXT
    status: HTTPStatus = HTTPStatus.OK


Route = Callable[[Message], Answer]
"""Gets the request's headers. Called from several threads; an exception becomes status 500."""


class Call(NamedTuple):
    """A POST: what an action gets."""

    headers: Message
    body: bytes
    ours: Any
    """Our end of the connection, as `getsockname()` returns it."""
    peer: Any
    """The client's, as `getpeername()` returns it."""


Action = Callable[[Call], Answer]
"""Answers a POST, as a Route answers a GET."""


class Requests:
    """Counts of answers, for the agent's own metrics."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()
        self._seconds = 0.0

    def count(self, path: str, status: int, seconds: float) -> None:
        with self._lock:
            self._counts[path, str(status)] += 1
            self._seconds += seconds

    def facts(self) -> dict[str, Any]:
        """The fields of SelfMetrics."""
        with self._lock:
            return {"requests": dict(self._counts), "request_s": self._seconds}


class HttpServer(ThreadingHTTPServer):
    """`routes` and `actions` by path; those in `open_paths` need no password."""

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
        actions: Mapping[str, Action],
    ) -> None:
        self.routes = routes
        self.actions = actions
        self.open_paths = open_paths
        self.certificate = certificate
        self.passwords = passwords
        self.requests = Requests()
        self.is_local = _is_loopback(address[0])
        self.connections = Connections()
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, _Connection)

    def server_bind(self) -> None:
        # HTTPServer's own method would ask DNS for the host's name.
        socketserver.TCPServer.server_bind(self)

    def process_request(self, request: object, client_address: object) -> None:
        assert isinstance(request, socket.socket) and isinstance(client_address, tuple)
        slot = self.connections.enter(request, str(client_address[0]))
        if slot is None:
            self.shutdown_request(request)
            self.requests.count("", HTTPStatus.SERVICE_UNAVAILABLE, 0.0)
            return
        try:
            super().process_request(request, slot)
        except RuntimeError:  # no thread available
            self.connections.leave(slot)
            self.shutdown_request(request)

    def process_request_thread(self, request: object, client_address: object) -> None:
        assert isinstance(client_address, Slot)
        try:
            # In a program that serves its own metrics, this work does not count as the program's.
            with recording(False):
                super().process_request_thread(request, client_address)  # type: ignore[arg-type]
        finally:
            self.connections.leave(client_address)

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignores clients that disconnect."""


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "opscope", ""
    disable_nagle_algorithm = True  # the last chunk is a packet of its own

    @property
    def _http(self) -> HttpServer:
        assert isinstance(self.server, HttpServer)
        return self.server

    @property
    def _slot(self) -> Slot:
        slot: object = self.client_address
        assert isinstance(slot, Slot)
        return slot

    def setup(self) -> None:
        connection = self._accepted = self.request
        connection.settimeout(bounded_io.FIRST_BYTE_S)
        self._is_plain = self._http.certificate is not None and _begins_plain(connection)
        if self._http.certificate is not None and not self._is_plain:
            # The server closes the socket that it accepted; from here on, this wraps it.
            secured = self._http.certificate.wrap(connection)
            self._http.connections.take(self._slot, secured)
            try:
                secured.do_handshake()
            except BaseException:
                self._http.connections.take(self._slot, None)
                secured.close()
                raise
            connection = self.request = secured
        self._incoming = bounded_io.Incoming(connection)
        self._outgoing = bounded_io.Outgoing(connection, self._note_block)
        self._wait_s = bounded_io.FIRST_BYTE_S
        super().setup()
        self.rfile = io.BufferedReader(self._incoming)
        self.wfile = io.BufferedWriter(self._outgoing)

    def finish(self) -> None:
        self._http.connections.take(self._slot, None)
        try:
            super().finish()
        finally:
            if self.connection is not self._accepted:
                self.connection.close()

    def handle_one_request(self) -> None:
        self._incoming.await_request(self._wait_s)
        self._outgoing.begin()
        self._http.connections.wait(self._slot)
        try:
            super().handle_one_request()
        except OSError:
            self.close_connection = True
        self._wait_s = bounded_io.IDLE_S

    def _note_block(self, since: float | None) -> None:
        self._slot.block_since = since

    def do_GET(self) -> None:
        started = time.monotonic()
        path = self.path.partition("?")[0]
        route = self._http.routes.get(path)
        if self.headers.get("Content-Length") or self.headers.get("Transfer-Encoding"):
            self.close_connection = True  # a request body would be taken for a request
        status = self._answer(path, route)
        self._http.requests.count(
            path if route is not None else "", status, time.monotonic() - started
        )

    def do_POST(self) -> None:
        started = time.monotonic()
        path = self.path.partition("?")[0]
        action, size = self._http.actions.get(path), self.headers.get("Content-Length", "")
        route: Route | None = None
        is_sized = size.isascii() and size.isdecimal() and int(size[:9]) <= _BODY_BYTES
        if "Transfer-Encoding" in self.headers or not is_sized:
            self.close_connection = True  # what follows is not a request
            text = b"a body needs a Content-Length, of at most 1024 bytes\n"
            status = self._sent(Answer(text, status=HTTPStatus.BAD_REQUEST))
        elif action is None and path in self._http.routes:
            self.close_connection = True
            text = b"only GET and HEAD\n"
            status = self._sent(Answer(text, status=HTTPStatus.METHOD_NOT_ALLOWED))
        else:
            if action is not None:
                ends = self._accepted.getsockname(), self._accepted.getpeername()
                call = Call(self.headers, self.rfile.read(int(size)), *ends)
                route = partial(_called, action, call)
            status = self._answer(path, route)
            self.close_connection |= action is None
        self._http.requests.count(
            path if route is not None else "", status, time.monotonic() - started
        )

    def _answer(self, path: str, route: Route | None) -> HTTPStatus:
        """The status sent, or the status of a page that broke off."""
        refusal = self._refusal(path)
        if refusal is None and route is None:
            refusal = Answer(b"not found; see /\n", status=HTTPStatus.NOT_FOUND)
        if refusal is not None or route is None:
            return self._sent(refusal or Answer(b""))
        if path in self._http.open_paths:
            return self._sent(self._made(route))
        if not self._http.connections.begin_page(self._slot):
            text = b"too many pages at a time; try again\n"
            return self._sent(Answer(text, status=HTTPStatus.SERVICE_UNAVAILABLE))
        try:
            return self._sent(self._made(route))
        finally:
            self._http.connections.end_page(self._slot)

    def _made(self, route: Route) -> Answer:
        try:
            answer = route(self.headers)
            if not isinstance(answer.body, bytes):
                answer = answer._replace(body=begun(answer.body))
        except Exception as error:
            text = f"{str(error) or type(error).__name__}\n".encode()
            return Answer(text, status=HTTPStatus.INTERNAL_SERVER_ERROR)
        return answer

    def _sent(self, answer: Answer) -> HTTPStatus:
        try:
            self._send(answer)
        except OSError:
            self.close_connection = True  # the client disconnected, or was too slow
        except Exception:
            # In the middle of a page: without the last chunk, the client knows it is incomplete.
            self.close_connection = True
            return HTTPStatus.INTERNAL_SERVER_ERROR
        return answer.status

    def do_HEAD(self) -> None:
        self.do_GET()

    def _refusal(self, path: str) -> Answer | None:
        server = self._http
        if path in server.open_paths:
            return None
        if self._is_plain:
            self.close_connection = True
            return Answer(b"this port speaks TLS\n", status=HTTPStatus.UPGRADE_REQUIRED)
        if server.passwords is not None:
            try:
                given = self.headers.get("Authorization", "")
                is_allowed = server.passwords.allows(given, self._slot.share)
            except Busy:
                text = b"too many passwords are being checked; try again\n"
                return Answer(text, status=HTTPStatus.SERVICE_UNAVAILABLE)
            if not is_allowed:
                self.close_connection = True
                return Answer(b"name and password required\n", status=HTTPStatus.UNAUTHORIZED)
        elif server.is_local and not names_this_host(self.headers.get("Host", "")):
            text = b"this port serves only this host: use localhost or its IP address\n"
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
        if answer.status == HTTPStatus.SERVICE_UNAVAILABLE:
            self.send_header("Retry-After", "1")
        if self.close_connection:
            self.send_header("Connection", "close")
        is_small = isinstance(body, bytes) and len(body) < _COMPRESSED_FROM_BYTES
        is_packed = is_small or answer.content_type == _COMPRESSED
        if not is_packed and _takes_gzip(self.headers):
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
            for block in blocks:
                self.wfile.write(block)

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing for a request."""


def _called(action: Action, call: Call, _: Message) -> Answer:
    return action(call)


def _begins_plain(connection: socket.socket) -> bool:
    """Whether the client begins with a plain request instead of a TLS handshake (RFC 8446, 5.1).
    A probe without TLS gets its answer, which contains no data of processes."""
    return connection.recv(1, socket.MSG_PEEK) not in (b"", _HANDSHAKE)


def _takes_gzip(headers: Message) -> bool:
    for offered in headers.get("Accept-Encoding", "").split(","):
        coding, _, quality = offered.replace(" ", "").lower().partition(";q=")
        if coding == "gzip":
            return quality.strip("0.") != "" or not quality
    return False


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def names_this_host(header: str) -> bool:
    """Whether a Host header is missing, localhost, or an IP address, which DNS cannot redirect."""
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
