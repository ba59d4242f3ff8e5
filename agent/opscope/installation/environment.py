"""What an interpreter says of itself: its version, where it finds modules, which opscope it has.

The interpreter is asked, not guessed about; with the kill switch on, so that asking observes
nothing. Not here: writing anything.
"""

from __future__ import annotations

import glob
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from typing import NamedTuple

from opscope.errors import OpscopeError

# Any Python has to understand this one.
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
}))
"""
_TIMEOUT_S = 60.0
_PROGRAM = re.compile(r"python3(\.\d+)?")
_SYSTEM = ("/usr/bin", "/usr/local/bin", "/bin")


class Environment(NamedTuple):
    """An interpreter with the packages it finds."""

    python: str
    version: tuple[int, int, int]
    refusal: str
    """Why opscope cannot observe it; "" where it can."""
    site: str
    """The directory whose .pth files it reads."""
    package: str
    """Directory of the opscope installed in it; "" where there is none."""

    @property
    def title(self) -> str:
        return f"{self.python} (Python {'.'.join(map(str, self.version))})"


def look_at(place: str) -> Environment:
    """The environment at `place`: a directory such as `python -m venv` makes, or an interpreter.

    Raises OpscopeError where there is no interpreter that runs.
    """
    python = os.path.join(place, "bin", "python") if os.path.isdir(place) else place
    python = os.path.abspath(python)
    if not os.path.exists(python):
        raise OpscopeError(f"{place}: no interpreter at {python}; give an environment's directory")
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
        refusal=_refusal((major, minor), said["implementation"], said["flags"]),
        site=said["site"],
        package=said["package"],
    )


def current() -> Environment:
    """The environment that this program runs in."""
    return look_at(sys.executable)


def of_system(folders: Iterable[str] = _SYSTEM) -> list[Environment]:
    """The interpreters of these folders, each place for packages once."""
    found: dict[str, Environment] = {}
    for folder in folders:
        for path in sorted(glob.glob(os.path.join(glob.escape(folder), "python3*"))):
            if _PROGRAM.fullmatch(os.path.basename(path)) and os.access(path, os.X_OK):
                environment = look_at(path)
                found.setdefault(os.path.realpath(environment.site), environment)
    return list(found.values())


def _refusal(version: tuple[int, int], implementation: str, flags: str) -> str:
    if implementation != "cpython":
        return f"{implementation} is not CPython"
    if version < (3, 10):
        return "older than Python 3.10"
    if "t" in flags:
        return "free-threaded"
    return ""
