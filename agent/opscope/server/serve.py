"""`opscope.serve()`: a program serves its own metrics page.

It is for one machine or a quick test; use the host agent for more. It reads the process's segment
as the agent would, in a thread that starts with the first call here and nowhere else.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from opscope import config
from opscope.errors import AgentError
from opscope.host.host import Host
from opscope.host.snapshot import Snapshot
from opscope.record import recorder
from opscope.record.ranges import recording
from opscope.segments import directories
from opscope.server import exporter, live
from opscope.server.history import History
from opscope.server.pages import Latest, Server
from opscope.server.series_filter import FilteredPage, SeriesFilter


class Page:
    """A served page; a context manager that closes it at the end."""

    def __init__(self, server: Server) -> None:
        self._server = server

    @property
    def url(self) -> str:
        """The URL of the metrics."""
        return f"{self._server.url}/metrics"

    def close(self) -> None:
        self._server.close()

    def __enter__(self) -> Page:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def serve(host: str = "127.0.0.1", port: int = 9464) -> Page:
    """Serves this process's metrics for Prometheus at http://host:port/metrics (port 0: any).

    `attach()` or `opscope run` enables recording; the page's own work is not recorded. Raises
    AgentError if it cannot listen on the address, ConfigError for an invalid setting.
    """
    with recording(False):
        page = exporter.load("prometheus")
    if not isinstance(page, exporter.PageExporter):
        raise AgentError("the installed exporter prometheus has no pages")
    history = History()
    latest = own_snapshots(history.note)
    # Metrics of other processes belong to the host agent.
    pages = live.routes(latest.snapshot, lambda _: (), history=history)
    filtered = FilteredPage(page, SeriesFilter.of(config.load()))
    return Page(Server(host, port, latest, filtered, more=pages))


def own_snapshots(note: Callable[[Snapshot], None] = lambda _: None) -> Latest:
    """Snapshots of this process alone, for exporters that run inside it; `note` gets each."""
    settings = config.load()
    own = os.path.dirname(recorder.status().path) or settings.directory
    with recording(False):
        segments = Host(
            directories.exactly([own]),
            consume=False,
            pids={os.getpid()},
            max_series=settings.max_series,
        )

    def collect() -> Snapshot:
        snapshot = segments.collect()
        note(snapshot)
        return snapshot

    return Latest(collect)
