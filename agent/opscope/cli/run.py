"""`opscope run -- CMD...`: start a program so that it and its Python children are observed.

The program replaces this process: exit status, signals and standard streams are its own.
attachment/site/sitecustomize.py runs inside it.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

from opscope.attachment.launch import environment
from opscope.cli._options import Options
from opscope.config import load
from opscope.errors import ConfigError

# The statuses of env(1): opscope run itself failed; CMD cannot be run; CMD is not found.
_FAILED, _NOT_RUNNABLE, _NOT_FOUND = 125, 126, 127


SUMMARY = "Run a program and observe it."
_TEXT = """
    Run CMD, and observe it and the Python programs that it starts.

        opscope run -- python train.py
        opscope run --sampling windows -- gunicorn app:app

    Exits with the status of CMD; with 125 if opscope itself fails, 126 if CMD
    cannot be run, and 127 if CMD is not found.
"""


def main(arguments: Sequence[str]) -> None:
    """Becomes CMD, or exits."""
    parser = _parser()
    given, cmd = parser.parse_args(list(arguments))
    if not cmd:
        parser.error("Missing argument 'CMD...'.")
    sampling = given.sampling
    if (given.window_ms or given.period_ms) and sampling is None:
        sampling = "windows"
    elif (given.window_ms or given.period_ms) and sampling != "windows":
        parser.error("--window-ms and --period-ms require --sampling windows")
    settings = {
        "OPSCOPE_SAMPLING": sampling,
        "OPSCOPE_WINDOW_MS": given.window_ms,
        "OPSCOPE_PERIOD_MS": given.period_ms,
        "OPSCOPE_MAX_OVERHEAD": given.max_overhead,
        "OPSCOPE_LABELS": given.labels,
        "OPSCOPE_DIR": os.path.abspath(given.directory) if given.directory else None,
        "OPSCOPE_DEBUG": "1" if given.debug else None,
        "OTEL_SERVICE_NAME": given.service,
    }
    environ = _own_environment() | {k: v for k, v in settings.items() if v is not None}
    try:
        load(environ)
    except ConfigError as error:
        _fail(str(error), _FAILED)
    _become(cmd, environment(environ))


def _parser() -> Options:
    parser = Options("run", "[OPTIONS] CMD...", _TEXT)
    parser.disable_interspersed_args()
    for name, metavar, text in (
        ("--sampling", "P|windows", "Probability of recording a range, or windows."),
        ("--window-ms", "MS", "Length of a sampling window."),
        ("--period-ms", "MS", "Mean time from one window's start to the next."),
        ("--max-overhead", "SHARE", "Most CPU time to record with, like 0.5%; or off."),
        ("--labels", "KEYS", "Debug-info keys to export as labels, comma-separated."),
        ("--directory", "DIR", "Directory for the segment files."),
        ("--service", "NAME", "Name of the service (sets OTEL_SERVICE_NAME)."),
    ):
        parser.add_option(name, metavar=metavar, help=text)
    parser.add_option(
        "--debug", action="store_true", help="Log what opscope does to standard error."
    )
    return parser


def _own_environment() -> dict[str, str]:
    environ = dict(os.environ)
    # In the C locale Python sets this variable for itself (PEP 538); CMD must not inherit it.
    try:
        with open("/proc/self/environ", "rb") as file:
            given = file.read().split(b"\0")
    except OSError:
        return environ  # without /proc, its source is unknown
    if not any(entry.startswith(b"LC_CTYPE=") for entry in given):
        environ.pop("LC_CTYPE", None)
    return environ


def _become(cmd: list[str], environ: Mapping[str, str]) -> NoReturn:
    # Python ignores these two signals, and ignored signals stay ignored in the next program.
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
    print(f"Error: {text}", file=sys.stderr)
    sys.exit(status)
