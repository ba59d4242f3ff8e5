"""The agent's HTTP server: `/metrics`, `/healthz`, and `/` with links to them.

Segments are read when somebody asks; scrapers that ask while a pass runs share the next one.
Passes without a scrape, which clear away the dead, are the agent command's.
"""

from __future__ import annotations

import errno
import os
import socket
import socketserver
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opscope.agent.exporter import PageExporter
from opscope.agent.snapshot import Snapshot
from opscope.errors import AgentError

_CLIENT_TIMEOUT_S = 10.0

_INDEX = b"""<!doctype html><html lang="en"><meta charset="utf-8"><title>opscope</title>
<h1>opscope</h1><p><a href="/metrics">metrics</a> <a href="/healthz">health</a>
"""


class Latest:
    """Snapshots made by `collect`, one pass for all who wait for one at the same time."""

    def __init__(self, collect: Callable[[], Snapshot]) -> None:
        self._collect = collect
        self._lock = threading.Lock()
        self._begun = 0
        """Passes begun so far."""
        self._snapshot: Snapshot | None = None

    def snapshot(self) -> Snapshot:
        """From a pass that began after this call: never older than the question."""
        begun = self._begun
        with self._lock:
            if self._snapshot is None or self._begun == begun:
                self._begun += 1
                self._snapshot = self._collect()
            return self._snapshot


class Server:
    """Serves pages from threads of its own, from construction until close().

    Port 0 takes any free one. Raises AgentError where the address cannot be had.
    """

    def __init__(self, host: str, port: int, latest: Latest, exporter: PageExporter) -> None:
        self._http = _listen(host, port, latest, exporter)
        self._thread = threading.Thread(
            target=self._http.serve_forever, name="opscope-http", daemon=True
        )
        self._thread.start()

    @property
    def address(self) -> tuple[str, int]:
        host, port = self._http.server_address[:2]
        return str(host), int(port)

    @property
    def url(self) -> str:
        """Of the server, without a path."""
        host, port = self.address
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def close(self) -> None:
        """Stops listening; requests in flight are finished by their threads."""
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], latest: Latest, exporter: PageExporter) -> None:
        self.latest = latest
        self.exporter = exporter
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, _Request)

    def server_bind(self) -> None:
        # Not HTTPServer's, which asks DNS for the host's name.
        socketserver.TCPServer.server_bind(self)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no news."""


class _Request(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _CLIENT_TIMEOUT_S

    def do_GET(self) -> None:
        assert isinstance(self.server, _Http)
        path = self.path.partition("?")[0]
        if path == "/metrics":
            try:
                accept = self.headers.get("Accept", "")
                page, content_type = self.server.exporter.page(
                    self.server.latest.snapshot(), accept
                )
            except Exception as error:
                self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, f"{error}\n".encode())
                return
            self._answer(HTTPStatus.OK, page, content_type)
        elif path == "/healthz":
            self._answer(HTTPStatus.OK, b"ok\n")
        elif path == "/":
            self._answer(HTTPStatus.OK, _INDEX, "text/html; charset=utf-8")
        else:
            self._answer(HTTPStatus.NOT_FOUND, b"not found; see /\n")

    def do_HEAD(self) -> None:
        self.do_GET()

    def _answer(
        self, status: HTTPStatus, body: bytes, content_type: str = "text/plain; charset=utf-8"
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is logged for a request."""


def _listen(host: str, port: int, latest: Latest, exporter: PageExporter) -> _Http:
    try:
        return _Http((host, port), latest, exporter)
    except OSError as error:
        change = "choose another with --listen HOST:PORT or OPSCOPE_LISTEN"
        if error.errno == errno.EADDRINUSE:
            raise AgentError(f"port {port} on {host} is taken; {change}") from error
        reason = error.strerror or os.strerror(error.errno or 0)
        raise AgentError(f"cannot listen on {host}:{port}: {reason}; {change}") from error
