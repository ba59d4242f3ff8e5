"""The command `opscope`: each subcommand is a file of this folder, imported only when needed.

Subcommands in NEED_NO_EXTRA (_commands.py) are for observed environments, which have only the
package itself: such a file has `main(arguments)` and a SUMMARY, and imports no third-party package.
Every other file has a click command `command` (_group.py) and needs the extra `agent`. `opscope
--help` and completion import all of these files, so they import within their functions what takes
long: NumPy, whatever reads segments, HTTP. A usage error, or an exception that Opscope raises on
purpose, is one line on standard error; so is an unexpected exception, whose traceback
OPSCOPE_DEBUG=1 shows.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from opscope import OpscopeError, __version__
from opscope.cli._commands import NEED_NO_EXTRA, leave_broken_pipe, names, no_such, unforeseen

_EXTRA = "agent"


def main(arguments: Sequence[str] | None = None) -> None:
    """The entry point; `arguments` default to those of the program."""
    if os.getpid() == 1:
        _end_on_signal()
    name, *arguments = (sys.argv[1:] if arguments is None else arguments) or [""]
    if name in NEED_NO_EXTRA:
        _run(name, arguments)
    elif name == "--version":
        print(f"opscope, version {__version__}")
    else:
        from opscope import extras

        if extras.is_installed(_EXTRA):
            from opscope.cli import _group

            _group.main([name, *arguments] if name else [])
        elif name in names():
            _fail(extras.line(f"opscope {name}", _EXTRA))
        elif name in ("", "-h", "--help"):
            print(_overview(extras.line("opscope", _EXTRA)))
        else:
            _fail(no_such(name), 2)


def _end_on_signal() -> None:
    """The kernel ignores signals to a container's first process that it has no handler for. Until
    a command has its own, SIGTERM ends it, as it ends other processes."""
    signal.signal(signal.SIGTERM, lambda number, _: os._exit(128 + number))


def _run(name: str, arguments: Sequence[str]) -> None:
    try:
        module = importlib.import_module(f"{__name__}.{name}")
        module.main(arguments)
        sys.stdout.flush()
    except OpscopeError as error:
        _fail(str(error))
    except BrokenPipeError:
        leave_broken_pipe()
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        _fail(unforeseen(error))


def _overview(how: str) -> str:
    """The help if only the package itself is installed."""
    lines = [
        f"  {name:10} {importlib.import_module(f'{__name__}.{name}').SUMMARY}"
        for name in NEED_NO_EXTRA
    ]
    others = ", ".join(name for name in names() if name not in NEED_NO_EXTRA)
    return "\n".join(
        ("Usage: opscope COMMAND [ARGS]...\n\nCommands:", *lines, f"\nFor {others}, {how}")
    )


def _fail(text: str, status: int = 1) -> NoReturn:
    print(f"Error: {text}", file=sys.stderr)
    sys.exit(status)
