"""The names that a wheel's libraries need, and nothing that is loaded with them has.

auditwheel knows glibc's names by version, and does not look at those of musl.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from native.cross.build import run


def missing(libraries: Iterable[Path], libc: Path) -> set[str]:
    """Of libraries for any machine. The interpreter has what begins with Py."""
    tables = [_read(run("readelf", "--wide", "--dyn-syms", path)) for path in libraries]
    known = {*_read(run("readelf", "--wide", "--dyn-syms", libc))["defined"]}
    known = known.union(*(table["defined"] for table in tables))
    needed = set[str]().union(*(table["needed"] for table in tables))
    return {name for name in needed - known if not name.startswith(("Py", "_Py"))}


def _read(table: str) -> Mapping[str, set[str]]:
    found: dict[str, set[str]] = {"defined": set(), "needed": set()}
    for line in table.splitlines():
        # number, value, size, type, binding, visibility, section, name
        columns = line.split()
        if len(columns) < 8 or not columns[0].removesuffix(":").isdigit():
            continue
        binding, section, name = columns[4], columns[6], columns[7].split("@")[0]
        if section != "UND":
            found["defined"].add(name)
        elif binding == "GLOBAL":  # what is weak may be absent
            found["needed"].add(name)
    return found
