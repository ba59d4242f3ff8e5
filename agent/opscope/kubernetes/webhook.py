"""The HTTPS server of the webhook: POST /inject, GET /healthz.

It presents the certificate that is in the files now: each connection checks whether they have
changed, so a renewed one needs no restart. A certificate that cannot be loaded leaves the previous
one in use, and /healthz says so.
"""

from __future__ import annotations

import json
import os
import ssl
import sys
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import socket
from typing import Any

from opscope.errors import OpscopeError
from opscope.kubernetes.admission import NoReviewError, answered
from opscope.kubernetes.injection import Images

_BODY_BYTES = 8 << 20
"""An AdmissionReview has the pod twice at most, and the API server limits a pod to 1.5 MiB."""
_CONNECTION_S = 10.0
_CONNECTIONS = 128


class Certificate:
    """The server's certificate and key, loaded anew whenever their files change."""

    def __init__(self, certificate: str, key: str) -> None:
        """Raises OpscopeError if they cannot be loaded."""
        self._paths = certificate, key
        self._lock = threading.Lock()
        self._seen = self._state()
        self.failure = ""
        """Why the files of now cannot be loaded; empty if they are in use."""
        try:
            self._context = self._loaded()
        except (OSError, ValueError) as error:
            raise OpscopeError(f"{certificate}, {key}: {error}") from error

    def context(self) -> ssl.SSLContext:
        with self._lock:
            state = self._state()
            if state != self._seen:
                self._seen = state
                try:
                    self._context, self.failure = self._loaded(), ""
                except (OSError, ValueError) as error:
                    self.failure = str(error)
            return self._context

    def _state(self) -> list[tuple[int, int, int] | None]:
        return [_state(path) for path in self._paths]

    def _loaded(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(*self._paths)
        return context


def _state(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


class Webhook(ThreadingHTTPServer):
    """Call serve_forever(). Threads end with the program."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self,
        address: tuple[str, int],
        certificate: Certificate,
        images: Images,
        annotations_of: Callable[[str], Mapping[str, Any]],
    ) -> None:
        """Raises OpscopeError if the address cannot be used."""
        self.certificate = certificate
        self.images = images
        self.annotations_of = annotations_of
        self._free = threading.BoundedSemaphore(_CONNECTIONS)
        try:
            super().__init__(address, _Page)
        except OSError as error:
            raise OpscopeError(f"{address[0]}:{address[1]}: {error.strerror}") from error

    def process_request(self, request: Any, client_address: Any) -> None:
        # Beyond the limit the API server gets no answer, and admits the pod.
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def finish_request(self, request: Any, client_address: Any) -> None:
        plain: socket = request
        plain.settimeout(_CONNECTION_S)
        # Here, in the connection's own thread: a slow handshake delays no other.
        with self.certificate.context().wrap_socket(plain, server_side=True) as secure:
            super().finish_request(secure, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):  # a client that left, or speaks no TLS
            print(f"opscope webhook: {type(error).__name__}: {error}", file=sys.stderr)


class _Page(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _CONNECTION_S

    @property
    def _webhook(self) -> Webhook:
        assert isinstance(self.server, Webhook)
        return self.server

    def do_GET(self) -> None:
        if self.path != "/healthz":
            self._send(404, "text/plain", b"not found\n")
        elif failure := self._webhook.certificate.failure:
            self._send(500, "text/plain", f"certificate: {failure}\n".encode())
        else:
            self._send(200, "text/plain", b"ok\n")

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()) or int(length) > _BODY_BYTES:
            self.close_connection = True
            self._send(413, "text/plain", b"the body has no length, or too many bytes\n")
            return
        body = self.rfile.read(int(length))
        if self.path.partition("?")[0] != "/inject":
            self._send(404, "text/plain", b"not found\n")
            return
        try:
            answer = answered(body, self._webhook.images, self._webhook.annotations_of)
        except NoReviewError as error:
            self._send(400, "text/plain", f"{error}\n".encode())
            return
        self._send(200, "application/json", json.dumps(answer).encode())

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing: the API server has the admissions."""
