"""Interrupt an installation at every step, in forks of a small process: those of a process with all
tests take several times as long."""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from opscope.cli import main
from opscope.errors import OpscopeError
from opscope.installation import choice, environment, ownership, path_file, payload, payload_swap
from opscope.installation.interruption import Interrupted, Interruption
from tests.installation.conftest import contents

CHANGES = ("open", "mkdir", "fchmod", "write", "fsync", "rename", "unlink", "rmdir", "try_out")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
ENDS = (*SIGNALS, signal.SIGKILL, -errno.ENOSPC, -errno.EIO)
"""Signals, and below 0 errors."""


def at_step(step: int, what: int) -> list[str]:
    """From now on, at the change to files with this number: a signal, or below 0 an error.

    Returns the names of the changes made so far.
    """
    seen: list[str] = []

    def arrived(name: str) -> None:
        seen.append(name)
        if len(seen) == step + 1:
            if what < 0:
                raise OSError(-what, os.strerror(-what))
            os.kill(os.getpid(), what)

    def wrapped(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            is_change = name != "open" or args[1] & os.O_CREAT
            # Removal needs no space.
            if is_change and not (what < 0 and name in ("unlink", "rmdir", "fchmod")):
                arrived(name)
            return real(*args, **kwargs)

        return call

    for name in CHANGES[:-1]:
        setattr(os, name, wrapped(name, getattr(os, name)))
    choice.try_out = wrapped("try_out", lambda _: "1.0")
    return seen


def in_child(step: int, what: int, work: Callable[[], object]) -> tuple[int, bool]:
    """The exit status of a process that runs work(), and whether it reached that step."""
    pid = os.fork()
    if pid == 0:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        status = 70
        try:
            seen = at_step(step, what)
            try:
                work()
                status = 0
            except SystemExit as end:
                status = end.code if isinstance(end.code, int) else 1
            except OpscopeError:
                status = 1
            if len(seen) <= step:
                status = 99
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return (0, False) if status == 99 else (status, True)


def be_quick() -> None:
    """From now on, interpreters are queried once; children start no threads, and do not look for
    the owner of each file of the package, which test_ownership.py is about."""
    known: dict[str, environment.Environment] = {}
    real = environment.look_at

    def look_at(place: str) -> environment.Environment:
        return known.setdefault(place, real(place))

    environment.look_at = look_at
    ownership._tree = lambda top: iter((top,))


def check_environment(
    directory: Path, site: Path, what: int, command: str, package: str | None
) -> None:
    """Whatever step `what` comes at, the environment has all of the command's result or nothing."""
    be_quick()
    path_file.restore(str(site), package)
    before = contents(site)
    arguments = [command, "--venv", str(directory)]
    main(arguments)
    whole = contents(site)
    assert whole != before
    step = -1
    while True:
        step += 1
        path_file.restore(str(site), package)
        assert contents(site) == before
        status, has_come = in_child(step, what, lambda: main(arguments))
        if not has_come:
            assert contents(site) == whole
            break
        if what == signal.SIGKILL:
            # Nothing that Python would read; what is left goes with the next one.
            assert status == -signal.SIGKILL
            found = contents(site)
            left = found.keys() - before.keys() - whole.keys()
            kept = {name: one for name, one in found.items() if name not in left}
            assert kept in (before, whole)
            assert all(name.endswith(".new") for name in left)
        elif status == 0:
            assert contents(site) == whole, (step, status)
        else:
            assert contents(site) == before, (step, status)
            assert status == (1 if what < 0 else 128 + what)
    # Removing takes no room, so no error is put there.
    assert step >= (4 if command == "install" else what >= 0)


PARTS = ("opscope", "machines", "cffi", "site")


def fill(made: Path, version: str) -> None:
    """Like payload._fill(), with a file for each part."""
    for name in PARTS:
        (made / name).mkdir()
        (made / name / "file").write_text(f"{name} {version}")
    listing = {
        "opscope": version,
        "machines": {"m": ["3.11"]},
        "made": False,
        "files": payload._digests(made),
    }
    (made / payload.LISTING).write_text(json.dumps(listing))


@contextmanager
def filled_with(version: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(payload, "_fill", lambda made, *_: fill(made, version))
        yield


def write(place: Path, version: str) -> None:
    with filled_with(version), Interruption() as interruption:
        try:
            payload.write(str(place), (), (), (), interruption.allowed)
        except Interrupted as interrupted:
            sys.exit(interrupted.exit_status)


def remove(place: Path) -> None:
    with Interruption():
        payload.remove(str(place))


def there(place: Path) -> dict[str, tuple[int, str]]:
    return contents(place) if place.exists() else {}


def check_payload(directory: Path, what: int, case: str) -> None:
    """Whatever step `what` comes at, the payload is the old one or the new one."""
    step = -1
    while True:
        step += 1
        top = directory / str(step)
        place = top / "above" / "payload"
        if case == "into an empty directory":
            place.mkdir(parents=True)
        if case in ("upgrade", "remove"):
            write(place, "1")
        before, was_there = there(place), top.exists()
        work = partial(remove, place) if case == "remove" else partial(write, place, "2")
        status, has_come = in_child(step, what, work)
        if not has_come:
            break
        if what == signal.SIGKILL:
            # Where DIR/site is, the rest is whole; the next command takes back what was begun.
            if (place / "site").exists():
                parts = {(place / name / "file").read_text().split()[1] for name in PARTS}
                assert len(parts) == 1
            if place.exists():
                remove(place)
                assert not place.exists() or os.listdir(place) == []
            write(place, "3")
            assert payload.describe(str(place)) == "payload of opscope 3 for Python 3.11 on m"
        elif status == 0:
            after = there(place)
            assert not (place / payload_swap.UNFINISHED).exists()
            if case == "remove":
                assert after == {}
            else:
                assert payload.describe(str(place)) == "payload of opscope 2 for Python 3.11 on m"
        else:
            assert there(place) == before, (step, status)
            assert top.exists() == was_there
    assert step >= 4
