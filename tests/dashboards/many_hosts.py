"""The agents of a fleet of thousands, as one server that a Prometheus scrapes a thousand times.

It serves pages of the agent's own exporter. Each service has its own hosts and operators; one host
in a hundred of a service is slow, and at least one.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import get_context
from multiprocessing.connection import Connection

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from opscope.host.health import Health
from opscope.host.snapshot import Snapshot
from opscope.server.exporter import PageExporter, load
from tests.dashboards.fleet import Fleet

HOST_SERIES = 34
"""Series of a host besides its operators, and those that Prometheus adds for each scrape."""
_QUARTER_S = 900.0
# Steps of growth: a fraction with few digits, like numbers estimated from samples.
_STEPS = 256


def series_of_an_operator(*, native: bool) -> float:
    """The number of series in Prometheus for one of the agent's in such a fleet, on average."""
    fleet = Fleet(0, hosts=1, operators=20, stragglers=0)
    exporter = load("prometheus", {}, {})
    assert isinstance(exporter, PageExporter)
    pieces, _ = exporter.page(fleet.snapshot(0, 1), "text/plain")
    lines = [line for line in b"".join(pieces).splitlines() if line.startswith(b"opscope_op_")]
    of_histograms = sum(line.startswith(b"opscope_op_duration_seconds_") for line in lines)
    if native:
        # A histogram is one series, and the calls are another.
        return (len(lines) - of_histograms) / fleet.operators + 2
    return len(lines) / fleet.operators


def fleets(hosts: int, series: int, services: int, *, native: bool) -> list[Fleet]:
    """One fleet per service; `series`: the approximate number of series of each host in
    Prometheus."""
    each = hosts // services
    operators = max(int((series - HOST_SERIES) / series_of_an_operator(native=native)), 1)
    return [
        Fleet(
            number,
            hosts=each,
            operators=operators,
            stragglers=-(-each // 100),
            service=f"service{number:02}",
            models=("small", "large"),
            versions=("1.0",),
        )
        for number in range(services)
    ]


def doubled(snapshot: Snapshot) -> Snapshot:
    return replace(
        snapshot,
        counters=snapshot.counters * np.uint64(2),
        buckets=snapshot.buckets * np.uint64(2),
        health=Health(*(2 * value for value in snapshot.health)),
    )


class Growing:
    """A page in protobuf whose counters and buckets grow with time, all by the same factor.

    To write it by the exporter takes a processor 6 ms, and a thousand hosts would have the machine
    to themselves. So it is written twice, the second time with everything doubled: a number that
    doubles has its exponent one up, which shows in the second highest of its eight bytes and
    nowhere below. The page of any other time is the first with these numbers multiplied.
    """

    def __init__(self, once: bytes, twice: bytes) -> None:
        self._page = np.frombuffer(once, np.uint8)
        changed = np.flatnonzero(self._page != np.frombuffer(twice, np.uint8))
        # The exponent's lowest bit always turns, and a carry is in the byte above.
        first = np.diff(changed, prepend=-2) > 1
        self._at = changed[first].astype(np.int32) - 6
        self._numbers = _numbers(self._page)[self._at]

    def at(self, times: float) -> bytes:
        page = self._page.copy()
        _numbers(page)[self._at] = self._numbers * times
        return page.tobytes()


def _numbers(page: NDArray[np.uint8]) -> NDArray[np.float64]:
    """The eight bytes that begin at each position, as a number."""
    view = page[:8].view("<f8")
    return as_strided(view, (len(page) - 7,), (1,), writeable=page.flags.writeable)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024
    """More than are scraped at a time: a connection that is turned away is tried again late."""


def serve(known: list[Fleet], pace: float, port: Connection) -> None:
    """Serves `/<service>/<host>/metrics` for ever. Prints its port once all pages are ready."""
    exporters = [load("prometheus", {}, {}) for _ in known]
    for fleet in known:
        fleet.snapshot(0, 1)
    began = time.monotonic()

    def written(service: int, snapshot: Snapshot, accept: str) -> tuple[bytes, str]:
        exporter = exporters[service]
        assert isinstance(exporter, PageExporter)
        pieces, kind = exporter.page(snapshot, accept)
        return b"".join(pieces), kind

    @cache
    def growing(service: int, host: int, accept: str) -> tuple[Growing, str]:
        once = known[service].snapshot(host, 1)
        page, kind = written(service, once, accept)
        return Growing(page, written(service, doubled(once), accept)[0]), kind

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _, service, host, _ = self.path.split("/")
            accept = self.headers["Accept"]
            times = 1 + (time.monotonic() - began) / pace / _QUARTER_S
            if "protobuf" in accept:
                template, kind = growing(int(service), int(host), accept)
                page = template.at(np.floor(times * _STEPS) / _STEPS)
            else:
                snapshot = known[int(service)].snapshot(int(host), times)
                page, kind = written(int(service), snapshot, accept)
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, format: str, *args: object) -> None:
            """Logs nothing."""

    with _Server(("127.0.0.1", 0), Page) as server:
        port.send(server.server_port)
        server.serve_forever()


@contextmanager
def served(known: list[Fleet], pace: float = 1.0) -> Iterator[list[dict[str, object]]]:
    """What a Prometheus is to scrape, served by a process of its own meanwhile.

    `pace`: how long a second of the fleet lasts.
    """
    context = get_context("spawn")
    mine, its = context.Pipe()
    process = context.Process(target=serve, args=(known, pace, its), daemon=True)
    process.start()
    try:
        port = mine.recv()
        yield [
            {
                "targets": [f"127.0.0.1:{port}"],
                "labels": {
                    "__metrics_path__": f"/{service}/{host}/metrics",
                    "instance": f"{fleet.service}-host{host:04}",
                },
            }
            for service, fleet in enumerate(known)
            for host in range(fleet.hosts)
        ]
    finally:
        process.terminate()
        process.join()
