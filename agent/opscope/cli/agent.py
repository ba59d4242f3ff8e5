"""``opscope agent``: read all segments of this host and serve them to Prometheus."""

from __future__ import annotations

import ctypes
import signal
import threading

import click

from opscope import config
from opscope.agent import directories, exporter
from opscope.agent.host import Host
from opscope.agent.server import Latest, Server
from opscope.errors import AgentError

# <malloc.h>
_M_ARENA_MAX = -8


@click.command("agent")
@click.option("--listen", metavar="HOST:PORT", help="Where to serve; default 127.0.0.1:9464.")
@click.option(
    "--directory", "places", multiple=True, help="Where segments are; may be given repeatedly."
)
@click.option("--max-series", type=click.IntRange(min=1), help="Series before the rest is other.")
def command(listen: str | None, places: tuple[str, ...], max_series: int | None) -> None:
    """Serve the metrics of all observed processes of this host.

    Reads the segments of this user's processes, as root those of all users, and takes in what the
    dead ones left. Metrics are at http://HOST:PORT/metrics.
    """
    _share_one_heap()
    settings = config.load()
    host, port = _address(listen) if listen else (settings.listen_host, settings.listen_port)
    patterns = directories.exactly(places) if places else directories.patterns(settings.directory)
    segments = Host(patterns, consume=True, max_series=max_series or settings.max_series)
    page = exporter.load("prometheus")
    if not isinstance(page, exporter.PageExporter):
        raise AgentError("the installed exporter prometheus has no pages")

    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    latest = Latest(segments.collect)
    server = Server(host, port, latest, page)
    click.echo(f"serving {server.url}/metrics")
    try:
        while not stop.is_set():
            latest.snapshot()
            stop.wait(settings.interval_s)
    finally:
        server.close()
        page.close()


def _share_one_heap() -> None:
    """glibc would give each thread that answers a request a heap that never shrinks."""
    try:
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)
    except (AttributeError, OSError):
        return


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise click.BadParameter(f"{text!r} is not HOST:PORT", param_hint="--listen")
    return host.removeprefix("[").removesuffix("]"), int(port)
