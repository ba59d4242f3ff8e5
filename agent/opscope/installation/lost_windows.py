"""The check of `opscope doctor` for processes with window sampling that open no windows any more.

The thread that opens windows stops for a fork, and for a call that gives the program another user
namespace. It cannot start again if the program has since installed a filter of system calls
(seccomp) that may forbid it (native/segment/sandbox.h), or has asked for a pid namespace for its
children, which forbids new threads. The process then looks idle. proc(5) has the facts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice

from opscope import config
from opscope.errors import OpscopeError
from opscope.host.pid_namespaces import Pids
from opscope.installation.checks import FINE, WARNS, Check
from opscope.segments import directories, liveness
from opscope.segments.segment import Header, read_header
from opscope.segments.segment_file import SegmentError, opened

_THREAD = "opscope-window"
"""The thread's name in native/recorder/window.c."""
_SEGMENT_LIMIT = 4096
_FORK_S = 0.3
"""Seconds; longer than the thread's absence during a fork."""


def windows(pause: Callable[[float], None] = time.sleep) -> Iterator[Check]:
    """Yields one check, or none if the settings are invalid, which another check reports."""
    with suppress(OpscopeError):
        yield _check(directories.patterns(config.load().directory), pause)


def _check(patterns: tuple[str, ...], pause: Callable[[float], None]) -> Check:
    pids = Pids()
    suspects = [pid for header in _headers(patterns) if (pid := _process(header, pids)) is not None]
    suspects = [pid for pid in suspects if _has_lost_them(pid)]
    if suspects:
        # Two samples, to skip a process in the middle of a fork.
        pause(_FORK_S)
    lost = [pid for pid in suspects if _has_lost_them(pid)]
    if not lost:
        return Check("windows", FINE, "no process has lost them")
    told = ", ".join(map(str, lost[:3])) + (f" and {len(lost) - 3} more" if len(lost) > 3 else "")
    found = f"process {told}: none since it may start no threads (seccomp, or a pid namespace)"
    advice = "run it with OPSCOPE_SAMPLING=0.01, which needs no thread"
    return Check("windows", WARNS, found, advice)


def _headers(patterns: tuple[str, ...]) -> Iterator[Header]:
    """Headers of open segments whose recorder has opened windows."""
    for place in directories.find(patterns):
        try:
            with directories.opened(place) as fd:
                for name in islice(os.listdir(fd), _SEGMENT_LIMIT):
                    if name.endswith(".seg") and not name.startswith("."):
                        with suppress(OSError, SegmentError), opened(name, fd) as file:
                            header = read_header(file)
                            if header.window_ns and header.window_count and not header.is_closed:
                                yield header
        except (OSError, SegmentError):
            continue


def _process(header: Header, pids: Pids) -> int | None:
    pid = pids.pid_here(header.pid_namespace, header.pid, header.process_start)
    with suppress(OSError):
        if pid is not None and liveness.process_start(pid) == header.process_start:
            return pid
    return None


def _has_lost_them(pid: int) -> bool:
    try:
        if not _may_lack_threads(pid):
            return False
        for thread in os.listdir(f"/proc/{pid}/task"):
            # A thread that has just ended is not the one that opens windows.
            gone = suppress(FileNotFoundError, ProcessLookupError)
            with gone, open(f"/proc/{pid}/task/{thread}/comm") as file:
                if file.read().rstrip("\n") == _THREAD:
                    return False
    except OSError:
        return False
    return os.path.exists(f"/proc/{pid}")


def _may_lack_threads(pid: int) -> bool:
    own = os.stat(f"/proc/{pid}/ns/pid").st_ino
    try:
        children = os.stat(f"/proc/{pid}/ns/pid_for_children").st_ino
    except FileNotFoundError:  # a namespace that has no process yet
        return True
    if children != own:
        return True
    with open(f"/proc/{pid}/status") as file:
        return any(line.split() == ["Seccomp:", "2"] for line in file)
