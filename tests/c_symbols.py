"""The names that each C file below native/ defines and uses, from the symbols of its object file.

The object files are those of the editable build, which every test that imports Opscope uses. Types,
macros and inline functions of headers are not seen.
"""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
NATIVE = ROOT / "native"
OBJECTS = ROOT / "build" / "editable" / "CMakeFiles"
# Parts of a generated file, not compiled by themselves; and what npm compiles.
ELSEWHERE = ("python/", "node/")


def sources() -> set[str]:
    """The C files that are compiled, relative to native/."""
    names = {path.relative_to(NATIVE).as_posix() for path in NATIVE.rglob("*.c")}
    return {name for name in names if not name.startswith(ELSEWHERE)}


@cache
def symbols() -> tuple[dict[str, str], dict[str, set[str]]]:
    """Of each name that one C file alone defines, that file; of each file, the names it uses.

    A file that is compiled for several levels of CPU has several object files. What the build
    writes itself is left out: its lists of operators are how the registry gets to know those.
    """
    compiled = sources()
    objects = {}
    for path in OBJECTS.glob("*.dir/**/*.c.o"):
        name = path.relative_to(OBJECTS).as_posix().partition("/")[2].removesuffix(".o")
        if name in compiled:
            objects[path] = name
    assert set(objects.values()) == compiled, "the build is not that of these sources: make venv"
    listed = subprocess.run(
        ["nm", "--extern-only", "--format=posix", "--print-file-name", *map(str, objects)],
        capture_output=True,
        text=True,
        check=True,
    )
    defines: dict[str, set[str]] = {}
    uses: dict[str, set[str]] = {name: set() for name in compiled}
    for line in listed.stdout.splitlines():
        at, _, rest = line.partition(": ")
        symbol, kind, *_ = rest.split()
        if kind in "Uvw":
            uses[objects[Path(at)]].add(symbol)
        else:
            defines.setdefault(symbol, set()).add(objects[Path(at)])
    return {symbol: names.pop() for symbol, names in defines.items() if len(names) == 1}, uses


def calls() -> dict[str, dict[str, list[str]]]:
    """For each C file the others whose names it uses, with these names."""
    home, uses = symbols()
    found: dict[str, dict[str, list[str]]] = {}
    for name, used in uses.items():
        found[name] = {}
        for symbol in sorted(used & home.keys()):
            if home[symbol] != name:
                found[name].setdefault(home[symbol], []).append(symbol)
    return found
