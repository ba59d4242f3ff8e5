"""`opscope.serve()`: this process's own numbers on a page, from within it.

For one machine or a quick look; the host agent is the way for more. Reads the process's segment as
the agent would, in a thread that starts with the first call here and nowhere else.
"""

from __future__ import annotations

import os

from opscope import config
from opscope.agent import directories, exporter, live
from opscope.agent.host import Host
from opscope.agent.server import Latest, Server
from opscope.errors import AgentError
from opscope.record import recorder
from opscope.record.ranges import recording


class Page:
    """A page being served; a context manager that closes it at the end."""

    def __init__(self, server: Server) -> None:
        self._server = server

    @property
    def url(self) -> str:
        """Where the metrics are."""
        return f"{self._server.url}/metrics"

    def close(self) -> None:
        self._server.close()

    def __enter__(self) -> Page:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def serve(host: str = "127.0.0.1", port: int = 9464) -> Page:
    """Serves this process's metrics for Prometheus at http://host:port/metrics (port 0: any).

    What is recorded meanwhile is up to attach() or `opscope run`; its own work is not. Raises
    AgentError where the address cannot be had, ConfigError for a setting that cannot be used.
    """
    with recording(False):
        page = exporter.load("prometheus")
    if not isinstance(page, exporter.PageExporter):
        raise AgentError("the installed exporter prometheus has no pages")
    latest = own_snapshots()
    # Of other processes it is not this one's to tell.
    pages = live.routes(latest.snapshot, lambda _: ())
    return Page(Server(host, port, latest, page, more=pages))


def own_snapshots() -> Latest:
    """Snapshots of this process alone, for whoever exports from within it."""
    settings = config.load()
    own = os.path.dirname(recorder.status().path) or settings.directory
    with recording(False):
        segments = Host(
            directories.exactly([own]),
            consume=False,
            pids={os.getpid()},
            max_series=settings.max_series,
        )
    return Latest(segments.collect)
