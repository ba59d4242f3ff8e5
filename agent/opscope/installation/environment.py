"""Query an interpreter: its version, its module path, and the opscope installed in it.

It runs the interpreter with the kill switch on, so the query itself is not observed. It writes
nothing.
"""

from __future__ import annotations

import glob
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from typing import NamedTuple

from opscope.attachment.interpreter import NOT_BUILT, free_threaded_refusal
from opscope.errors import OpscopeError

# Must run in any Python.
_LOOK = """
import json, os, site, sys, sysconfig
sites = site.getsitepackages() if hasattr(site, "getsitepackages") else []
purelib = sysconfig.get_path("purelib")
found = None
if sys.version_info >= (3, 4):
    import importlib.util
    found = importlib.util.find_spec("opscope")
print(json.dumps({
    "version": list(sys.version_info[:3]),
    "implementation": getattr(sys, "implementation", sys).__dict__.get("name", "cpython"),
    "flags": getattr(sys, "abiflags", ""),
    "site": purelib if purelib in sites else (sites or [purelib])[0],
    "package": os.path.dirname(found.origin) if found and found.origin else "",
    "path": [os.path.abspath(place) for place in sys.path if place],
}))
"""
_TIMEOUT_S = 60.0
_PROGRAM = re.compile(r"python3(\.\d+)?")
_SYSTEM = ("/usr/bin", "/usr/local/bin", "/bin")


class Environment(NamedTuple):
    """An interpreter with the packages that it finds."""

    python: str
    version: tuple[int, int, int]
    refusal: str
    """The reason why opscope cannot observe it; "" if it can."""
    site: str
    """The directory whose .pth files it reads."""
    package: str
    """Directory of the opscope installed in it; "" without one."""
    path: tuple[str, ...] = ()
    """Its module search path."""

    @property
    def title(self) -> str:
        return f"{self.python} (Python {'.'.join(map(str, self.version))})"


def look_at(place: str) -> Environment:
    """The environment at `place`: a directory such as `python -m venv` makes, or an interpreter.

    Raises OpscopeError if there is no working interpreter.
    """
    python = os.path.join(place, "bin", "python") if os.path.isdir(place) else place
    python = os.path.abspath(python)
    if not os.path.exists(python):
        raise OpscopeError(
            f"{place}: no interpreter at {python}; give the directory of an environment"
        )
    environ = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    environ["OPSCOPE_ENABLED"] = "0"
    command = [python, "-E", "-s", "-c", _LOOK]
    try:
        done = subprocess.run(
            command, env=environ, capture_output=True, text=True, timeout=_TIMEOUT_S
        )
        said = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise OpscopeError(f"{python} does not run as a Python interpreter: {error}") from error
    major, minor, micro = said["version"]
    return Environment(
        python=python,
        version=(major, minor, micro),
        refusal=_refusal(
            (major, minor),
            said["implementation"],
            said["flags"],
            is_installed=bool(said["package"]),
        ),
        site=said["site"],
        package=said["package"],
        path=tuple(said.get("path", ())),
    )


def current() -> Environment:
    """The environment of this program."""
    return look_at(sys.executable)


def of_system(
    folders: Iterable[str] = _SYSTEM, may_run: Callable[[str], bool] = lambda _: True
) -> list[Environment]:
    """The permitted interpreters of these folders, one for each site-packages directory."""
    found: dict[str, Environment] = {}
    for folder in folders:
        for path in sorted(glob.glob(os.path.join(glob.escape(folder), "python3*"))):
            is_python = _PROGRAM.fullmatch(os.path.basename(path)) and os.access(path, os.X_OK)
            if is_python and may_run(path):
                environment = look_at(path)
                found.setdefault(os.path.realpath(environment.site), environment)
    return list(found.values())


def _refusal(
    version: tuple[int, int], implementation: str, flags: str, *, is_installed: bool
) -> str:
    if implementation != "cpython":
        return f"{implementation} is not CPython"
    if version < (3, 10):
        return "Python older than 3.10"
    # An opscope elsewhere has no extension for a free-threaded interpreter.
    without_own = NOT_BUILT if "t" in flags and not is_installed else ""
    return free_threaded_refusal(version, flags) or without_own
