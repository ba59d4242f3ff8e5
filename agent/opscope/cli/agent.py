"""`opscope agent`: read all segments of this host and pass them to its exporters.

Options of the installed exporters are flags of the command.
"""

from __future__ import annotations

import functools
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from opscope import config
from opscope.cli._shared_options import DIRECTORY
from opscope.errors import AgentError
from opscope.segments import directories
from opscope.server import exporter

if TYPE_CHECKING:
    from opscope.host.snapshot import Snapshot
    from opscope.host.state_file import StateFile

# <malloc.h>
_M_ARENA_MAX = -8
# Created by systemd (RuntimeDirectory= in agent/deploy/agent.service), or else by the agent.
_ROOTS_OWN = "/run/opscope"


class _Command(click.Command):
    """Adds the options of the installed exporters as flags, which are looked up when needed."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return super().get_params(ctx) + [flag for _, _, flag in _exporter_flags()]


@functools.cache
def _exporter_flags() -> list[tuple[str, str, click.Option]]:
    """(exporter, option, flag); an exporter that fails to import is reported when it is chosen."""
    flags = []
    for name in exporter.installed():
        with suppress(AgentError):
            for option in exporter.module(name).OPTIONS:
                flag = f"--{name}-{option.name}".replace("_", "-")
                default = "" if option.default == "" else f"; default {option.default}"
                text = f"{option.help[:1].upper()}{option.help[1:]}{default}."
                # Plain text: exporter.Option validates the values, not click.
                flags.append((name, option.name, click.Option([flag], metavar="VALUE", help=text)))
    return flags


@click.command("agent", cls=_Command)
@click.option("--listen", metavar="HOST:PORT", help="Address to serve on; default 127.0.0.1:9464.")
@DIRECTORY
@click.option(
    "--max-series",
    type=click.IntRange(1, config.MOST_COUNT),
    help="Maximum number of series; further ones are merged into 'other'.",
)
@click.option("--ranks", is_flag=True, help="Give each rank of a distributed job its own series.")
@click.option("--containers", is_flag=True, help="Give each container its own series.")
@click.option(
    "--drop-op",
    "drop_ops",
    metavar="GLOB",
    multiple=True,
    help="Do not export operators whose names match; repeatable.",
)
@click.option(
    "--drop-service",
    "drop_services",
    metavar="GLOB",
    multiple=True,
    help="Do not export operators of services whose names match; repeatable.",
)
@click.option(
    "--top-ops",
    type=click.IntRange(0, config.MOST_COUNT),
    help="Operators to export per service; the others are summed as 'other'; default 0: all.",
)
@click.option(
    "--exporter",
    "names",
    metavar="NAME",
    multiple=True,
    help="Exporter to run; default prometheus; repeatable.",
)
@click.option(
    "--make-password",
    metavar="NAME",
    is_eager=True,
    expose_value=False,
    callback=lambda ctx, _, name: _make_password(ctx, name),
    help="Ask for a password, print its line for basic_auth_file, and exit.",
)
def command(
    listen: str | None,
    places: tuple[str, ...],
    max_series: int | None,
    drop_ops: tuple[str, ...],
    drop_services: tuple[str, ...],
    top_ops: int | None,
    ranks: bool,
    containers: bool,
    names: tuple[str, ...],
    **flags: str | None,
) -> None:
    """Serve the metrics of all observed processes of this host.

    Reads the segments of this user's processes; as root, those of all users. Keeps the counts of
    processes that have ended. Serves metrics at http://HOST:PORT/metrics, or pushes them, as the
    exporters do, and serves a live page at http://HOST:PORT/.
    """
    from opscope.host.host import Host
    from opscope.processes.inventory import unobserved
    from opscope.server import live, privileges
    from opscope.server.export_progress import ExportProgress
    from opscope.server.history import History
    from opscope.server.loop import Stop, run
    from opscope.server.page_trace import PageTrace
    from opscope.server.pages import Latest, Server
    from opscope.server.push import Push
    from opscope.server.series_filter import FilteredPage, SeriesFilter

    _share_one_heap()
    settings = config.load()
    host, port = _address(listen) if listen else (settings.listen_host, settings.listen_port)
    patterns = directories.exactly(places) if places else directories.patterns(settings.directory)
    exporter.check_tables()
    privileges.drop(keep_low_ports=port < 1024)
    exported = ExportProgress(
        {
            name: exporter.load(name, _given(name, flags))
            for name in dict.fromkeys(names or settings.exporters)
        }
    )
    exporters = exported.exporters
    segments = Host(
        patterns,
        consume=True,
        max_series=max_series or settings.max_series,
        state=_state(settings, places),
        series_idle_s=settings.series_idle_s,
        ranks=ranks or settings.ranks,
        containers=containers or settings.containers,
        exported=exported,
    )
    series = SeriesFilter(
        drop_ops or settings.drop_ops,
        drop_services or settings.drop_services,
        settings.top_ops if top_ops is None else top_ops,
        from_now=segments.goes_on,
    )
    page = _page(exporters)
    pushes = {
        name: one for name, one in exporters.items() if isinstance(one, exporter.PushExporter)
    }

    stop = Stop()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.ask())
    push: Push | None = None
    history = History()

    def collect() -> Snapshot:
        snapshot = segments.collect()
        if server:
            history.note(snapshot)
        own = replace(snapshot.own, **(server.requests.facts() if server else {}))
        return replace(snapshot, exports=push.results if push else {}, own=own)

    latest = Latest(collect)
    server: Server | None = None
    if page:
        others = functools.partial(unobserved, patterns)
        pages = live.routes(latest.snapshot, others, can_trace=True, history=history)
        filtered = FilteredPage(page, series)
        server = Server(
            host,
            port,
            latest,
            filtered,
            more=pages,
            actions=PageTrace(patterns).actions,
            warnings=segments.warnings,
            **_access(settings),
        )
    push = Push(
        pushes, lambda: series.apply(latest.snapshot()), lambda news: click.echo(news, err=True)
    )
    if server:
        # First, because people open it; the other address is for programs.
        click.echo(f"live page: {server.url}/")
        click.echo(f"serving {server.url}/metrics")
        _say(server.exposure)
    _say(segments.resumed)
    if pushes:
        click.echo(f"exporting to {', '.join(pushes)}")
    try:
        run(latest, segments.sweep, settings.interval_s, stop, _say)
    finally:
        push.close()
        if server and page:
            server.close()
            page.close()
        segments.close()


def _make_password(ctx: click.Context, name: str | None) -> None:
    if name is not None:
        from opscope.server.access import password_line

        password = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
        click.echo(password_line(name, password))
        ctx.exit()


def _say(news: str) -> None:
    if news:
        click.echo(news, err=True)


def _state(settings: config.Config, places: tuple[str, ...]) -> StateFile | None:
    from opscope.host import state_file

    if settings.state is None:
        return None
    segments = os.path.abspath(places[0]) if places else settings.directory
    if os.geteuid() == 0 and directories.owner(segments) not in (None, 0):
        # Another user took that name first; in this directory only root creates names.
        segments = _ROOTS_OWN
    # systemd's StateDirectory= sets it; the first of several directories.
    directory = os.environ.get("STATE_DIRECTORY", "").partition(":")[0]
    if not os.path.isabs(directory):
        directory = segments
    return state_file.StateFile(
        settings.state or os.path.join(directory, state_file.NAME), segments
    )


def _access(settings: config.Config) -> dict[str, Any]:
    """The access rules, as arguments of Server."""
    from opscope.server.access import Certificate, Passwords

    return {
        "fresh_s": 4 * settings.interval_s,
        "certificate": Certificate(settings.tls_cert, settings.tls_key)
        if settings.tls_cert
        else None,
        "passwords": Passwords(settings.basic_auth_file) if settings.basic_auth_file else None,
    }


def _given(name: str, flags: Mapping[str, str | None]) -> dict[str, object]:
    """The options of that exporter that were given as flags."""
    return {
        option: value
        for of, option, flag in _exporter_flags()
        if of == name and flag.name and (value := flags[flag.name]) is not None
    }


def _page(exporters: Mapping[str, object]) -> exporter.PageExporter | None:
    pages = {name: e for name, e in exporters.items() if isinstance(e, exporter.PageExporter)}
    if len(pages) > 1:
        raise AgentError(f"only one exporter can serve the page; choose one of {', '.join(pages)}")
    return next(iter(pages.values()), None)


def _share_one_heap() -> None:
    """Limits glibc to one heap: otherwise each request thread gets a heap that never shrinks."""
    import ctypes

    try:
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)
    except (AttributeError, OSError):
        return


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise click.BadParameter(f"{text!r} is not HOST:PORT", param_hint="--listen")
    return host.removeprefix("[").removesuffix("]"), int(port)
