"""Find the bridges that other distributions declare in their metadata.

site/sitecustomize.py loads this file by its path in programs where opscope may not be importable,
so it imports nothing of opscope.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

GROUP = "opscope.bridges"


def bridges_on(path: "Sequence[Any]", searched: "set[str]") -> dict[str, str]:
    """The module of each bridge, by framework, in the directories of `path` not in `searched`.

    Bridges are entry points of the group `opscope.bridges` in a distribution whose name begins with
    "opscope", in a directory like site-packages or dist-packages. Other distributions are not read:
    listing a directory of 114 takes 0.1 ms, reading all their entry points 0.7 ms, and every
    observed program waits for it. Adds the directories to `searched`. Skips unreadable metadata
    without an exception.
    """
    found: dict[str, str] = {}
    for directory in path:
        if not isinstance(directory, str) or directory in searched:
            continue
        searched.add(directory)
        if directory.endswith("-packages"):
            found = _bridges_in(directory) | found
    return found


def _bridges_in(directory: str) -> dict[str, str]:
    found: dict[str, str] = {}
    try:
        names = os.listdir(directory)
    except OSError:
        return found
    # Slices: startswith() on each of hundreds of names costs twice as much.
    infos = [name for name in names if name[-5:] == "-info" and name[:7].lower() == "opscope"]
    for name in sorted(infos):
        try:
            with open(os.path.join(directory, name, "entry_points.txt"), "rb") as file:
                found.update(_declared(file.read().decode()))
        except (OSError, UnicodeDecodeError):
            pass  # no declaration, or an unreadable one
    return found


def _declared(text: str) -> dict[str, str]:
    found, section = {}, ""
    for line in text.splitlines():
        name, equals, module = (part.strip() for part in line.partition("="))
        if name.startswith("["):
            section = name
        elif equals and section == f"[{GROUP}]":
            found[name] = module
    return found
