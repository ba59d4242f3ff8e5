"""Which environments `install`, `uninstall` and `status` are about, and whether one works.

Not here: what is done to them (path_file.py, payload.py).
"""

from __future__ import annotations

import functools
import os
import subprocess
from collections.abc import Callable
from typing import Any, NamedTuple

import click

from opscope.errors import OpscopeError
from opscope.installation import environment
from opscope.installation.environment import Environment

PYTHON_HELP = "An interpreter that the payload is for; repeatable. Default: this one."
CFFI_HELP = "Wheel of cffi for one more Python, or a directory of them; repeatable."

# Is run in the environment, as any program of it would be.
_TRY = """
import sys
entries = [e for e in (getattr(f, "opscope_entry", None) for f in sys.meta_path) if e]
if not entries:
    raise SystemExit("its start does not reach opscope")
try:
    print(entries[0].load().check())
except Exception as error:
    raise SystemExit(str(error))
"""
_TIMEOUT_S = 60.0


class Chosen(NamedTuple):
    """What the options say."""

    system: bool
    venvs: tuple[str, ...]
    payload: str | None

    def environments(self) -> list[Environment]:
        """Those that are meant; never none."""
        if self.system:
            found = environment.of_system()
            if not found:
                raise OpscopeError("no python3 in /usr/bin or /usr/local/bin; name one with --venv")
            return found
        return [environment.look_at(place) for place in self.venvs] or [environment.current()]


def environments(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a click command the options that choose, as one argument `chosen`."""

    @click.option("--system", is_flag=True, help="Every Python 3 of this host's own.")
    @click.option(
        "--venv", "venvs", multiple=True, metavar="PATH", help="An environment; repeatable."
    )
    @click.option("--payload", metavar="DIR", help="A directory to copy into containers.")
    @functools.wraps(command)
    def chosen(system: bool, venvs: tuple[str, ...], payload: str | None, **rest: Any) -> None:
        if system + bool(venvs) + (payload is not None) > 1:
            raise click.UsageError("--system, --venv and --payload exclude one another")
        command(Chosen(system, venvs, payload), **rest)

    return chosen


def try_out(target: Environment) -> str:
    """The version of opscope that a program of this environment finds at its start.

    Raises OpscopeError where it finds none, with the reason and what to do.
    """
    environ = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("PYTHON", "OPSCOPE_"))
    }
    try:
        done = subprocess.run(
            [target.python, "-s", "-c", _TRY],
            env=environ,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise OpscopeError(f"{target.title} does not run: {error}") from error
    if done.returncode != 0:
        reason = done.stderr.strip().rpartition("\n")[2]
        raise OpscopeError(
            f"{target.title} cannot load opscope: {reason}; "
            f"`{target.python} -m pip install opscope` gives it one of its own"
        )
    return done.stdout.strip()
