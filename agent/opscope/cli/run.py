"""`opscope run -- CMD...`: starts a program so that it, and its Python children, are observed.

The program takes this process over: its exit status, its signals and its standard streams are its
own. What happens in it stands in attachment/site/sitecustomize.py.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from typing import NoReturn

import click

from opscope.attachment.launch import environment
from opscope.config import load
from opscope.errors import ConfigError

# As env(1) has it: opscope run itself failed; CMD cannot be run; there is no CMD.
_FAILED, _NOT_RUNNABLE, _NOT_FOUND = 125, 126, 127


@click.command(
    "run",
    short_help="Start a program observed.",
    context_settings={"allow_interspersed_args": False},
)
@click.option("--sampling", metavar="P|windows", help="Probability of recording, or windows.")
@click.option("--window-ms", metavar="MS", help="Length of a sampling window.")
@click.option("--period-ms", metavar="MS", help="Mean time between starts of windows.")
@click.option("--max-overhead", metavar="SHARE", help="Of CPU time, like 0.5%; or off.")
@click.option("--labels", metavar="KEYS", help="Debug-info keys that become labels, by commas.")
@click.option("--dir", "directory", metavar="DIR", help="Where the segments go.")
@click.option("--service", metavar="NAME", help="Value of service.name (OTEL_SERVICE_NAME).")
@click.option("--debug", is_flag=True, help="Say on standard error what opscope does.")
@click.argument("cmd", nargs=-1, required=True, type=click.UNPROCESSED)
def command(
    sampling: str | None,
    window_ms: str | None,
    period_ms: str | None,
    max_overhead: str | None,
    labels: str | None,
    directory: str | None,
    service: str | None,
    debug: bool,
    cmd: tuple[str, ...],
) -> None:
    """Runs CMD so that it and the Python programs it starts are observed.

    \b
        opscope run -- python train.py
        opscope run --sampling windows -- gunicorn app:app

    Exits with CMD's status; with 125 where opscope run itself fails, 126 where CMD cannot be run
    and 127 where there is no such command.
    """
    if (window_ms or period_ms) and sampling is None:
        sampling = "windows"
    elif (window_ms or period_ms) and sampling != "windows":
        raise click.UsageError("--window-ms and --period-ms go with --sampling windows")
    settings = {
        "OPSCOPE_SAMPLING": sampling,
        "OPSCOPE_WINDOW_MS": window_ms,
        "OPSCOPE_PERIOD_MS": period_ms,
        "OPSCOPE_MAX_OVERHEAD": max_overhead,
        "OPSCOPE_LABELS": labels,
        "OPSCOPE_DIR": os.path.abspath(directory) if directory else None,
        "OPSCOPE_DEBUG": "1" if debug else None,
        "OTEL_SERVICE_NAME": service,
    }
    environ = _own_environment() | {k: v for k, v in settings.items() if v is not None}
    try:
        load(environ)
    except ConfigError as error:
        _fail(str(error), _FAILED)
    _become(cmd, environment(environ))


def _own_environment() -> dict[str, str]:
    environ = dict(os.environ)
    # In the C locale Python adds this variable for itself (PEP 538); CMD is not to inherit it.
    try:
        with open("/proc/self/environ", "rb") as file:
            given = file.read().split(b"\0")
    except OSError:
        return environ  # without /proc there is no telling
    if not any(entry.startswith(b"LC_CTYPE=") for entry in given):
        environ.pop("LC_CTYPE", None)
    return environ


def _become(cmd: tuple[str, ...], environ: Mapping[str, str]) -> NoReturn:
    # Python ignores these two for itself, and what is ignored stays so in the next program.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvpe(cmd[0], cmd, environ)
    except FileNotFoundError:
        _fail(f"{cmd[0]}: command not found", _NOT_FOUND)
    except OSError as error:
        _fail(f"{cmd[0]}: {error.strerror}", _NOT_RUNNABLE)
    except ValueError as error:
        _fail(f"{cmd[0]!r}: {error}", _FAILED)


def _fail(text: str, status: int) -> NoReturn:
    click.echo(f"Error: {text}", err=True)
    sys.exit(status)
