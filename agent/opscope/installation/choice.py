"""Select the environments for `install`, `uninstall` and `status`, and test one.

path_file.py and payload.py change them.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from optparse import OptionParser, Values
from typing import NamedTuple

from opscope.errors import OpscopeError
from opscope.installation import environment
from opscope.installation.environment import Environment

# Runs in the environment, like any of its programs.
_TRY = """
import sys
entries = [e for e in (getattr(f, "opscope_entry", None) for f in sys.meta_path) if e]
if not entries:
    raise SystemExit("its startup does not load opscope")
try:
    print(entries[0].load().check())
except Exception as error:
    raise SystemExit(str(error))
"""
_TIMEOUT_S = 60.0


class Chosen(NamedTuple):
    """The selection that the options make."""

    system: bool
    venvs: tuple[str, ...]
    payload: str | None

    def environments(self, may_run: Callable[[str], bool] = lambda _: True) -> list[Environment]:
        """The selected environments; empty only if `may_run` refuses all interpreters."""
        if self.system:
            asked = []

            def ask(python: str) -> bool:
                asked.append(python)
                return may_run(python)

            found = environment.of_system(may_run=ask)
            if not asked:
                raise OpscopeError("no python3 in /usr/bin or /usr/local/bin; give one with --venv")
            return found
        return [environment.look_at(place) for place in self.venvs] or [environment.current()]


def add_options(parser: OptionParser) -> None:
    """Adds the options for the selection."""
    parser.add_option(
        "--system", action="store_true", help="Every Python 3 of /usr/bin and /usr/local/bin."
    )
    parser.add_option("--venv", action="append", metavar="PATH", help="An environment; repeatable.")
    parser.add_option("--payload", metavar="DIR", help="Directory to copy into containers.")


def parsed(parser: OptionParser, arguments: Sequence[str]) -> tuple[Chosen, Values]:
    """The selection and all option values. Exits on a usage error."""
    given, others = parser.parse_args(list(arguments))
    if others:
        parser.error(f"Got unexpected extra argument ({others[0]})")
    if bool(given.system) + bool(given.venv) + (given.payload is not None) > 1:
        parser.error("--system, --venv and --payload cannot be combined")
    return Chosen(bool(given.system), tuple(given.venv or ()), given.payload), given


def try_out(target: Environment) -> str:
    """The version of opscope that a program of this environment finds at its start.

    Raises OpscopeError, with the reason and a remedy, if it finds none.
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
            f"`{target.python} -m pip install opscope` installs it there"
        )
    return done.stdout.strip()
