"""The agent's pages: `/metrics`, `/healthz`, `/readyz`, and additional ones (live.py).

A request makes a pass over the segments; requests during a pass share the next one. The agent
command (loop.py) makes passes without a request, and sweeps. http_server.py handles connections;
access.py handles access.
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from email.message import Message
from http import HTTPStatus

from opscope.errors import AgentError
from opscope.host.snapshot import Snapshot
from opscope.server.access import Certificate, Passwords
from opscope.server.exporter import PageExporter
from opscope.server.http_server import Action, Answer, HttpServer, Requests, Route

# Paths for probes, which have no password: their answers contain no data of processes.
OPEN_PATHS = frozenset({"/healthz", "/readyz"})


class Latest:
    """Snapshots from `collect`; concurrent callers share one pass."""

    def __init__(self, collect: Callable[[], Snapshot]) -> None:
        self._collect = collect
        self._lock = threading.Lock()
        self._begun = 0
        """Passes begun so far."""
        self._snapshot: Snapshot | None = None
        self._ended: float | None = None

    def snapshot(self) -> Snapshot:
        """A snapshot from a pass that began after this call, so never older than the request."""
        begun = self._begun
        with self._lock:
            if self._snapshot is None or self._begun == begun:
                self._begun += 1
                self._snapshot = self._collect()
                self._ended = time.monotonic()
            return self._snapshot

    @property
    def age_s(self) -> float | None:
        """Seconds since the last successful pass; None before the first."""
        return None if self._ended is None else time.monotonic() - self._ended

    def between(self, work: Callable[[], object]) -> None:
        """Calls `work` while no pass runs."""
        with self._lock:
            work()


class Server:
    """Serves pages from threads of its own, from construction until close().

    `more`: additional pages, by path; `actions`: what a POST does, by path. `fresh_s`: /readyz
    reports "not ready" once the last pass is older. `warnings`: lines for /healthz after its first,
    for `opscope doctor`. Port 0 takes any free port. Raises AgentError if it cannot listen on the
    address.
    """

    def __init__(
        self,
        host: str,
        port: int,
        latest: Latest,
        exporter: PageExporter,
        *,
        more: Mapping[str, Route] | None = None,
        actions: Mapping[str, Action] | None = None,
        certificate: Certificate | None = None,
        passwords: Passwords | None = None,
        fresh_s: float = 120.0,
        warnings: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        self._latest = latest
        self._exporter = exporter
        self._fresh_s = fresh_s
        routes = {
            "/metrics": self._metrics,
            "/healthz": lambda _: Answer("".join(f"{s}\n" for s in ("ok", *warnings())).encode()),
            "/readyz": self._ready,
            **(more or {}),
        }
        self._http = _listen(host, port, routes, certificate, passwords, actions or {})
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
        """The server's URL without a path."""
        host, port = self.address
        scheme = "http" if self._http.certificate is None else "https"
        return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"

    @property
    def requests(self) -> Requests:
        return self._http.requests

    @property
    def exposure(self) -> str:
        """A warning about clients on other hosts; "" if only this host can reach the port."""
        if self._http.is_local:
            return ""
        host, port = self.address
        reach = f"port {port} of {host} is reachable from other hosts"
        if self._http.passwords is None:
            return f"{reach}, without a password; see basic_auth_file, tls_cert"
        if self._http.certificate is None:
            return f"{reach}, and passwords travel unencrypted; see tls_cert, tls_key"
        return reach

    def close(self) -> None:
        """Stops listening; threads finish the running requests."""
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def _metrics(self, headers: Message) -> Answer:
        page = self._exporter.page(self._latest.snapshot(), headers.get("Accept", ""))
        return Answer(*page)

    def _ready(self, _: Message) -> Answer:
        age_s = self._latest.age_s
        if age_s is None:
            return Answer(b"no pass yet\n", status=HTTPStatus.SERVICE_UNAVAILABLE)
        if age_s > self._fresh_s:
            text = f"the last pass was {age_s:.0f} s ago\n".encode()
            return Answer(text, status=HTTPStatus.SERVICE_UNAVAILABLE)
        return Answer(b"ok\n")


def _listen(
    host: str,
    port: int,
    routes: Mapping[str, Route],
    certificate: Certificate | None,
    passwords: Passwords | None,
    actions: Mapping[str, Action],
) -> HttpServer:
    try:
        return HttpServer((host, port), routes, OPEN_PATHS, certificate, passwords, actions)
    except OSError as error:
        change = "choose another with --listen HOST:PORT or OPSCOPE_LISTEN"
        if error.errno == errno.EADDRINUSE:
            raise AgentError(f"port {port} on {host} is taken; {change}") from error
        reason = error.strerror or os.strerror(error.errno or 0)
        raise AgentError(f"cannot listen on {host}:{port}: {reason}; {change}") from error
