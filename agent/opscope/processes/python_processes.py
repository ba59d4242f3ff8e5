"""The Python processes of this host, from /proc, observed or not.

Facts: proc(5). Processes that cannot be examined (of another user, or just ended) are left out, or
have unknown fields.
"""

from __future__ import annotations

import os
import pwd
import re
from typing import NamedTuple

from opscope.attachment.program import identify
from opscope.printable import printable
from opscope.processes import attach_diagnosis
from opscope.segments import liveness

_INTERPRETER = re.compile(r"(python|pypy)[\d.]*t?d?")


class PythonProcess(NamedTuple):
    pid: int
    process_start: int
    user: str
    program: str
    start: attach_diagnosis.Start
    """Whether it would attach once it imports a framework, or why not."""


def running() -> list[PythonProcess]:
    """The processes whose executable is a Python interpreter, by pid."""
    pids = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
    return [found for pid in pids if (found := look_up(pid, any_executable=False)) is not None]


def look_up(pid: int, *, any_executable: bool) -> PythonProcess | None:
    """The process with this pid; None if it has ended or does not run Python."""
    try:
        start = liveness.process_start(pid)
        command_line = _read(pid, "cmdline").split(b"\0")[:-1]
        user = user_name(os.stat(f"/proc/{pid}").st_uid)
    except OSError:
        return None
    words = [os.fsdecode(word) for word in command_line]
    if start is None or not words or not (any_executable or _is_python(pid, words[0])):
        return None
    return PythonProcess(
        pid, start, user, printable(identify(words, ())[0]), _start(pid, start, words)
    )


def user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _is_python(pid: int, word: str) -> bool:
    try:
        path = os.readlink(f"/proc/{pid}/exe")
    except OSError:
        path = word
    name = os.path.basename(path.removesuffix(" (deleted)"))
    return _INTERPRETER.fullmatch(name) is not None


def _start(pid: int, process_start: int, words: list[str]) -> attach_diagnosis.Start:
    try:
        return attach_diagnosis.look(pid, process_start, words)
    except OSError:
        return attach_diagnosis.Start(
            "not-started", "not known: its environment cannot be read from here"
        )


def _read(pid: int, name: str) -> bytes:
    with open(f"/proc/{pid}/{name}", "rb") as file:
        return file.read()
