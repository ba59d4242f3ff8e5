"""Diagnose why a Python process is not attached, or not yet, from its start and environment.

The process's own ledger entry (attachment/ledger.py) is more precise; this covers processes without
one. It does not contact the process; proc(5) has the facts. Paths of a process in a container are
resolved in its own root directory.
"""

from __future__ import annotations

import glob
import os
import re
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from opscope.attachment.interpreter import free_threaded_refusal
from opscope.config import OFF

ARMED = "armed: no framework with a bridge imported yet"
NOT_STARTED_BY_US = "started without opscope"

# The name in opscope/installation/path_file.py.
_PATH_FILE = "opscope-attach.pth"
_VERSION = re.compile(r"python(\d+)\.(\d+)(t?)")
_WITH_VALUE = "WX"


class Start(NamedTuple):
    code: str
    """`armed`, `not-started`, or one of ledger.CODES."""
    why: str


def look(pid: int, process_start: int, words: Sequence[str]) -> Start:
    """How the start of this process affects attaching; `words` is its command line.

    Raises OSError if the process has ended or may not be examined.
    """
    if _has_lost_segment(pid):
        return Start("recorder", "its segment was deleted; restart the process")
    environ = _environ(pid)
    asked = environ.get("OPSCOPE_ATTACH")
    path_file = _path_file(pid, words, environ) if asked in (None, "1") else ""
    if asked != "1" and not path_file:
        return Start("not-started", NOT_STARTED_BY_US)
    if refusal := _refusal(pid):
        return refusal
    flags = interpreter_flags(words)
    if "S" in flags:
        return Start("not-started", "python -S skips the startup files")
    if not path_file and flags & {"E", "I"}:
        return Start("not-started", f"python -{'I' if 'I' in flags else 'E'} ignores PYTHONPATH")
    if asked != "1" and os.stat(path_file).st_mtime > _started_at(process_start):
        return Start("not-started", "started before opscope was installed; restart it")
    if environ.get("OPSCOPE_ENABLED", "").strip().lower() in OFF:
        return Start("disabled", "OPSCOPE_ENABLED")
    return Start("armed", ARMED)


def interpreter_flags(words: Sequence[str]) -> set[str]:
    """The letters of the interpreter's own options: those before the program."""
    found: set[str] = set()
    rest = iter(words[1:])
    for word in rest:
        if not word.startswith("-") or word.startswith("--") or word == "-":
            break
        for index, letter in enumerate(word[1:], start=2):
            if letter in "cm":
                return found
            if letter in _WITH_VALUE:
                if not word[index:]:
                    next(rest, None)
                break
            found.add(letter)
    return found


def _refusal(pid: int) -> Start | None:
    name = os.path.basename(os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)"))
    if name.startswith("pypy"):
        return Start("unsupported-python", "pypy is not CPython")
    if version := _VERSION.match(name):
        number = int(version[1]), int(version[2])
        if number < (3, 10):
            return Start("unsupported-python", f"Python {version[1]}.{version[2]}: older than 3.10")
        if reason := free_threaded_refusal(number, version[3]):
            return Start("unsupported-python", reason)
    with open(f"/proc/{pid}/status") as file:
        ids = [line.split()[1:3] for line in file if line.startswith(("Uid:", "Gid:"))]
    if any(real != effective for real, effective in ids):
        return Start("other-user", "setuid or setgid")
    return None


def _has_lost_segment(pid: int) -> bool:
    with open(f"/proc/{pid}/maps", "rb") as file:
        return b".seg (deleted)\n" in file.read()


def _environ(pid: int) -> dict[str, str]:
    with open(f"/proc/{pid}/environ", "rb") as file:
        entries = [os.fsdecode(entry).partition("=") for entry in file.read().split(b"\0")]
    return {key: value for key, _, value in entries if key}


def _path_file(pid: int, words: Sequence[str], environ: Mapping[str, str]) -> str:
    """The .pth file of the interpreter's environment; "" without one."""
    root = f"/proc/{pid}/root"
    exe = os.readlink(f"/proc/{pid}/exe")
    prefixes = [os.path.dirname(os.path.dirname(exe))]
    if prefixes[0] == "/usr":
        prefixes.append("/usr/local")  # Debian's Python searches it too
    called = _called(pid, root, words[0], environ)
    of_called = os.path.dirname(os.path.dirname(called))
    if called and os.path.exists(f"{root}{of_called}/pyvenv.cfg"):
        prefixes = [of_called]
    version = _VERSION.match(os.path.basename(exe))
    folder = f"python{version[1]}.{version[2]}" if version else "python3*"
    for prefix in prefixes:
        place = f"{glob.escape(root + prefix)}/lib/{folder}/*-packages/{_PATH_FILE}"
        for found in glob.glob(place):
            return found
    return ""


def _called(pid: int, root: str, word: str, environ: Mapping[str, str]) -> str:
    """The path by which the interpreter was called, in its own root directory."""
    if "/" in word:
        return os.path.normpath(os.path.join(os.readlink(f"/proc/{pid}/cwd"), word))
    for folder in environ.get("PATH", "").split(":"):
        if folder and os.path.lexists(f"{root}{folder}/{word}"):
            return os.path.join(folder, word)
    return ""


def _started_at(process_start: int) -> float:
    """Start time in Unix seconds, to the precision of a clock tick."""
    seconds = process_start / os.sysconf("SC_CLK_TCK")
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + seconds
