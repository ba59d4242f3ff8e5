"""``opscope agent``: read all segments of this host and give them to its exporters.

The options of the installed exporters are flags of the command.
"""

from __future__ import annotations

import ctypes
import functools
import os
import signal
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import click

from opscope import config
from opscope.agent import directories, exporter, live, privileges, state_file
from opscope.agent.access import Certificate, Passwords, password_line
from opscope.agent.host import Host
from opscope.agent.inventory import unobserved
from opscope.agent.passes import run
from opscope.agent.push import Push
from opscope.agent.server import Latest, Server
from opscope.agent.snapshot import Snapshot
from opscope.agent.state_file import StateFile
from opscope.errors import AgentError

# <malloc.h>
_M_ARENA_MAX = -8


class _Command(click.Command):
    """With the options of the installed exporters as flags, which are looked up when needed."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return super().get_params(ctx) + [flag for _, _, flag in _exporter_flags()]


@functools.cache
def _exporter_flags() -> list[tuple[str, str, click.Option]]:
    """(exporter, option, flag); what cannot be imported is told to whoever chooses it."""
    flags = []
    for name in exporter.installed():
        with suppress(AgentError):
            for option in exporter.module(name).OPTIONS:
                flag = f"--{name}-{option.name}".replace("_", "-")
                default = "none" if option.default == "" else option.default
                text = f"{option.help}; default {default}."
                # Not click's own types: what an option may be is for exporter.Option to say.
                flags.append((name, option.name, click.Option([flag], metavar="…", help=text)))
    return flags


@click.command("agent", cls=_Command)
@click.option("--listen", metavar="HOST:PORT", help="Where to serve; default 127.0.0.1:9464.")
@click.option(
    "--directory", "places", multiple=True, help="Where segments are; may be given repeatedly."
)
@click.option("--max-series", type=click.IntRange(min=1), help="Series before the rest is other.")
@click.option(
    "--exporter", "names", multiple=True, help="What to run; default prometheus; may be repeated."
)
@click.option(
    "--make-password",
    metavar="NAME",
    is_eager=True,
    expose_value=False,
    callback=lambda ctx, _, name: _make_password(ctx, name),
    help="Ask for a password, print its line for basic_auth_file, and end.",
)
def command(
    listen: str | None,
    places: tuple[str, ...],
    max_series: int | None,
    names: tuple[str, ...],
    **flags: str | None,
) -> None:
    """Serve the metrics of all observed processes of this host.

    Reads the segments of this user's processes, as root those of all users, and takes in what the
    dead ones left. Metrics are at http://HOST:PORT/metrics, or go where the exporters send them; a
    page to look at is at http://HOST:PORT/.
    """
    _share_one_heap()
    settings = config.load()
    host, port = _address(listen) if listen else (settings.listen_host, settings.listen_port)
    patterns = directories.exactly(places) if places else directories.patterns(settings.directory)
    exporter.check_tables()
    privileges.drop(keep_low_ports=port < 1024)
    segments = Host(
        patterns,
        consume=True,
        max_series=max_series or settings.max_series,
        state=_state(settings, places),
    )
    exporters = {
        name: exporter.load(name, _given(name, flags))
        for name in dict.fromkeys(names or settings.exporters)
    }
    page = _page(exporters)
    pushes = {
        name: one for name, one in exporters.items() if isinstance(one, exporter.PushExporter)
    }

    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    push: Push | None = None

    def collect() -> Snapshot:
        snapshot = segments.collect()
        own = replace(snapshot.own, **(server.requests.facts() if server else {}))
        return replace(snapshot, exports=push.results if push else {}, own=own)

    latest = Latest(collect)
    server: Server | None = None
    if page:
        pages = live.routes(latest.snapshot, functools.partial(unobserved, patterns))
        server = Server(host, port, latest, page, more=pages, **_access(settings))
    push = Push(pushes, latest.snapshot, lambda news: click.echo(news, err=True))
    if server:
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
        password = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
        click.echo(password_line(name, password))
        ctx.exit()


def _say(news: str) -> None:
    if news:
        click.echo(news, err=True)


def _state(settings: config.Config, places: tuple[str, ...]) -> StateFile | None:
    if settings.state is None:
        return None
    beside = os.path.abspath(places[0]) if places else settings.directory
    return StateFile(settings.state or os.path.join(beside, state_file.NAME))


def _access(settings: config.Config) -> dict[str, Any]:
    """Who may read the pages, for Server."""
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
        raise AgentError(f"one exporter can serve the page, not {', '.join(pages)}: choose one")
    return next(iter(pages.values()), None)


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
