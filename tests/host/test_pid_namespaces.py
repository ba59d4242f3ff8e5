"""Pids of other namespaces, from /proc as it is."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from opscope.host import pid_namespaces
from opscope.host.pid_namespaces import Inner, Pids
from opscope.segments import liveness
from tests.segments.segment_writer import start_of

SAY = "import os; print(os.stat('/proc/self/ns/pid').st_ino, os.getpid(), flush=True); input()"
UNSHARE = ("unshare", "--pid", "--fork", "--kill-child")


@pytest.fixture
def inside() -> Iterator[tuple[int, int]]:
    """The pid here of the first process of another pid namespace, and that namespace."""
    if subprocess.run([*UNSHARE, "true"], capture_output=True).returncode != 0:
        pytest.skip("no pid namespace may be made here: unshare(2) is refused")
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*UNSHARE, sys.executable, "-c", SAY], stdin=pipe, stdout=pipe, text=True
    ) as unshare:
        assert unshare.stdout is not None
        namespace, pid = map(int, unshare.stdout.readline().split())
        assert pid == 1
        with open(f"/proc/{unshare.pid}/task/{unshare.pid}/children") as file:
            (child,) = file.read().split()
        yield int(child), namespace
        unshare.communicate("\n")


def test_a_process_of_another_namespace_is_identified_by_its_pid_there(
    inside: tuple[int, int],
) -> None:
    pid, namespace = inside
    start = start_of(pid)
    assert pid_namespaces.look_into(pid) == Inner(namespace, 1, start)
    assert Pids().pid_here(namespace, 1, start) == pid
    assert Pids().pid_here(namespace, 1, start + 1) is None
    assert Pids().pid_here(namespace + 1, 1, start) is None


def test_an_inaccessible_process_is_identified_by_pid_and_start(
    inside: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    pid, namespace = inside
    stat = os.stat

    def refuse(path: str, **options: object) -> os.stat_result:
        if path == f"/proc/{pid}/ns/pid":
            raise PermissionError
        return stat(path, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "stat", refuse)
    assert pid_namespaces.look_into(pid) == Inner(0, 1, start_of(pid))
    assert Pids().pid_here(namespace, 1, start_of(pid)) == pid


def test_processes_of_this_namespace_are_as_they_are() -> None:
    assert pid_namespaces.look_into(os.getpid()) is None
    assert pid_namespaces.look_into(0x7777777) is None
    assert Pids().pid_here(liveness.here().pid_namespace, 5, 6) == 5
    assert Pids().pid_here(0, 5, 6) == 5
