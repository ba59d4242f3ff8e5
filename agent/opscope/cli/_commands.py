"""The list of subcommands, and error handling that commands with and without click share."""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from types import ModuleType

from opscope.nearest_name import nearest

NEED_NO_EXTRA = ("install", "run", "status", "uninstall")


def names() -> list[str]:
    """The names of the subcommands, sorted."""
    found = (module.name for module in pkgutil.iter_modules([os.path.dirname(__file__)]))
    return sorted(name.replace("_", "-") for name in found if not name.startswith("_"))


def module(name: str) -> str:
    """The module of a subcommand."""
    return f"opscope.cli.{name.replace('-', '_')}"


def no_such(name: str) -> str:
    """The message for an unknown subcommand, with the known one that is nearest."""
    near = nearest(name, names())
    return f"No such command {name!r}." + (f" Did you mean {near!r}?" if near else "")


def without_extra(name: str) -> ModuleType | None:
    """The subcommand's file if it needs no extra, else None."""
    return importlib.import_module(module(name)) if name in NEED_NO_EXTRA else None


def unforeseen(error: Exception) -> str:
    """The line for an unexpected error; raises it instead if OPSCOPE_DEBUG is set."""
    if os.environ.get("OPSCOPE_DEBUG", "") not in ("", "0"):
        raise error
    return f"{type(error).__name__}: {error}; OPSCOPE_DEBUG=1 shows the traceback"


def leave_broken_pipe() -> None:
    """The reader of our output has exited; keeps Python's flush at exit from complaining too."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
