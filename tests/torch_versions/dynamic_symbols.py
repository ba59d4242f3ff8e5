"""What shared libraries need, ask for and define, as binutils' `readelf` and `nm` list it."""

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

_NEEDED = re.compile(r"\(NEEDED\).*\[([^]]+)\]")


def needed(libraries: Iterable[Path]) -> set[str]:
    """The names of the libraries that these ask the loader for."""
    return set(_NEEDED.findall(_output("readelf", "--dynamic", "--wide", *libraries)))


def undefined(libraries: Iterable[Path]) -> set[str]:
    """The symbols that these do not define themselves and cannot do without."""
    return _symbols("--undefined-only", libraries, of_kind="U")


def defined(libraries: Iterable[Path]) -> set[str]:
    return _symbols("--defined-only", libraries)


def _symbols(which: str, libraries: Iterable[Path], of_kind: str = "") -> set[str]:
    """Without the version that may follow a name."""
    listed = _output("nm", "--dynamic", "--format=posix", which, *libraries)
    found = set()
    for line in listed.splitlines():
        name, kind, *_ = (*line.split(), "", "")
        if kind and of_kind in kind:
            found.add(name.partition("@")[0])
    return found


def _output(*command: str | Path) -> str:
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
