"""The machine's load while a program is observed: none, four times too much, or a quota.

Each is a context that yields a `Load`, and ends the processes that it started, by their ids.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

_OVER = 4
_SLICE_S = 0.05
"""CPU time per 100 ms, the kernel's default period, with a quota of 50 %."""
_BUSY = """
import os, sys
while os.getppid() == int(sys.argv[1]):
    for _ in range(1_000_000):
        pass
"""
# Enters the group whose file is the first argument, then becomes the command.
_ENTER = 'echo $$ > "$0" && exec "$@"'

Around = Callable[[int], AbstractContextManager[object]]


def _nothing(group: int) -> AbstractContextManager[object]:
    return nullcontext()


@dataclass(frozen=True)
class Load:
    """`prefix` comes before the program's command; `around(process group)` while it runs."""

    how: str
    prefix: tuple[str, ...] = ()
    around: Around = _nothing


@contextmanager
def quiet() -> Iterator[Load]:
    yield Load("nothing else is started")


@contextmanager
def oversubscribed() -> Iterator[Load]:
    """Four busy processes for each processor, which are not children of the program."""
    bare = {key: value for key, value in os.environ.items() if not key.startswith("OPSCOPE")}
    command = [sys.executable, "-S", "-c", _BUSY, str(os.getpid())]
    count = _OVER * len(os.sched_getaffinity(0))
    busy: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(count):
            # Each in its own session: a scheduler that is fair among sessions would otherwise give
            # all of them together no more than the program.
            busy.append(subprocess.Popen(command, env=bare, start_new_session=True))
        yield Load(f"{count} busy processes")
    finally:
        for process in busy:
            process.kill()
            process.wait()


@contextmanager
def quota() -> Iterator[Load]:
    """Half of one processor: by a control group if possible, otherwise by signals."""
    group = _group()
    if group is None:
        yield Load("SIGSTOP and SIGCONT, 50 ms each", around=_stopped_half_of_the_time)
        return
    try:
        enter = ("sh", "-c", _ENTER, str(group / "cgroup.procs"))
        yield Load(f"CFS quota of 50 ms in 100, in {group.parent}", enter)
    finally:
        _remove(group)


LOADS: dict[str, Callable[[], AbstractContextManager[Load]]] = {
    "quiet": quiet,
    "oversubscribed": oversubscribed,
    "quota": quota,
}


def _group() -> Path | None:
    """A new control group with that quota; None if impossible."""
    for parent, files in (
        (Path("/sys/fs/cgroup/cpu"), {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "50000"}),
        (Path("/sys/fs/cgroup"), {"cpu.max": "50000 100000"}),
    ):
        group = parent / f"opscope-bench-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            for name, value in files.items():
                (group / name).write_text(value)
            # Tests that a process may enter, which version 2 forbids in some groups.
            subprocess.run(
                ["sh", "-c", _ENTER, str(group / "cgroup.procs"), "true"],
                check=True,
                stderr=subprocess.DEVNULL,
            )
        except (OSError, subprocess.CalledProcessError):
            _remove(group)
            continue
        return group
    return None


def _remove(group: Path) -> None:
    for _ in range(100):  # its last process may have ended only just now
        try:
            group.rmdir()
        except OSError:
            time.sleep(_SLICE_S)
        else:
            return


@contextmanager
def _stopped_half_of_the_time(group: int) -> Iterator[None]:
    done = threading.Event()
    thread = threading.Thread(target=partial(_stop_and_continue, group, done))
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _stop_and_continue(group: int, done: threading.Event) -> None:
    try:
        while not done.is_set():
            os.killpg(group, signal.SIGSTOP)
            time.sleep(_SLICE_S)
            os.killpg(group, signal.SIGCONT)
            done.wait(_SLICE_S)
    except ProcessLookupError:
        pass  # it has ended
