"""`opscope doctor` names a process whose windows ended with a fork, and may not start again."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from opscope.attachment.launch import environment
from opscope.installation import lost_windows
from opscope.installation.checks import FINE, WARNS, Check
from tests.waiting import UNTIL

# The filter allows everything: its presence matters.
PROGRAM = f"""{UNTIL}
import ctypes, os, struct, sys
import numpy, opscope

def window_count():
    with open(opscope.attach_status().segment, "rb") as file:
        return struct.unpack_from("<Q", file.read(256), 168)[0]

until(window_count, "a window", lambda: numpy.add(1.0, numpy.ones(10)))
if "filter" in sys.argv:
    class Program(ctypes.Structure):
        _fields_ = [("count", ctypes.c_ushort), ("code", ctypes.c_void_p)]
    allow = ctypes.create_string_buffer(struct.pack("<HBBI", 6, 0, 0, 0x7FFF0000))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    program = Program(1, ctypes.addressof(allow))
    assert libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0
if "namespace" in sys.argv:
    CLONE_NEWPID = 0x20000000
    assert ctypes.CDLL(None).unshare(CLONE_NEWPID) == 0
if "fork" in sys.argv:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
for _ in range(1000):
    numpy.add(1.0, numpy.ones(10))
print(flush=True)
sys.stdin.read()
"""

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="a pid namespace needs root")


@contextmanager
def running(directory: Path, *words: str) -> Iterator[int]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("OPSCOPE_")}
    environ = environment({**kept, "OPSCOPE_DIR": str(directory), "OPSCOPE_BRIDGES": "numpy"})
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *words],
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == b"\n"
        yield process.pid
        process.stdin.close()


def check(directory: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Check, list[float]]:
    monkeypatch.setenv("OPSCOPE_DIR", str(directory))
    pauses: list[float] = []
    (found,) = lost_windows.windows(pauses.append)
    return found, pauses


@pytest.mark.parametrize("limit", ["filter", pytest.param("namespace", marks=AS_ROOT)])
def test_a_process_that_lost_them_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    with running(tmp_path / "segments", limit, "fork") as pid:
        found, pauses = check(tmp_path / "segments", monkeypatch)
    assert (found.verdict, len(pauses)) == (WARNS, 1)
    assert found.found.startswith(f"process {pid}: none since it may start no threads")
    assert "OPSCOPE_SAMPLING=0.01" in found.advice


@pytest.mark.parametrize("words", [(), ("filter",), pytest.param(("namespace",), marks=AS_ROOT)])
def test_a_process_that_has_them_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    with running(tmp_path / "segments", *words):
        found, pauses = check(tmp_path / "segments", monkeypatch)
    assert (found.verdict, pauses) == (FINE, [])


def test_a_process_that_is_gone_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(tmp_path / "segments", "filter", "fork"):
        pass
    assert check(tmp_path / "segments", monkeypatch)[0].verdict == FINE
