"""Pointers of ufuncs are replaced only while a callback wants operators, whatever the program does
meanwhile; between windows NumPy runs unchanged."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import opscope
from opscope._native import lib
from opscope.attachment.launch import environment
from opscope.bridges import numpy as bridge
from opscope.record import recorder
from tests.recorded import recorded_calls
from tests.waiting import UNTIL

from .conftest import WAIT_FOR_WINDOWS, pointers, vectorcall, windows

UFUNC = "numpy::add"


@pytest.fixture(autouse=True)
def detached() -> None:
    """`opscope.profile()` in an earlier test of this process attaches the bridge, and leaves it."""
    bridge.detach()


def _changed(before: dict[str, int]) -> set[str]:
    now = pointers()
    return {name for name in before if now[name] != before[name]}


def test_ufuncs_are_replaced_while_a_callback_wants_operators() -> None:
    before = pointers()
    bridge.attach()
    others = _changed(before)
    assert UFUNC not in others and "numpy::dot" in others
    handle = opscope.add_global_callback(lambda fn: None, scopes=[opscope.RecordScope.USER_SCOPE])
    assert _changed(before) == others
    wide = opscope.add_global_callback(lambda fn: None)
    assert _changed(before) == set(before)
    opscope.disable_callback(wide)
    assert _changed(before) == others
    opscope.enable_callback(wide)
    assert _changed(before) == set(before)
    opscope.remove_callback(wide)
    opscope.remove_callback(handle)
    assert _changed(before) == others
    bridge.detach()
    assert pointers() == before


def test_a_pointer_replaced_by_another_tool_is_left_alone() -> None:
    before = pointers()
    bridge.attach()
    handle = opscope.add_global_callback(lambda fn: None)
    slot = vectorcall(np.add)
    ours = slot.value
    theirs = ctypes.cast(ctypes.pythonapi.PyObject_Vectorcall, ctypes.c_void_p).value or 0
    try:
        slot.value = theirs
        opscope.remove_callback(handle)
        assert slot.value == theirs
        handle = opscope.add_global_callback(lambda fn: None)
        assert slot.value == theirs
    finally:
        slot.value = ours
        opscope.remove_callback(handle)
        bridge.detach()
    assert pointers() == before


def test_outside_of_windows_ufuncs_are_numpys_own(tmp_path: Path) -> None:
    before = pointers()[UFUNC]
    bridge.attach()
    recorder.start(str(tmp_path), window_ms=1.0, period_ms=1e6)
    try:
        assert pointers()[UFUNC] != before
        np.add(1, 2)  # the first range starts the window thread; from then on windows decide
        assert pointers()[UFUNC] == before
        np.add(1, 2)
        lib.opscope_recorder_window_begin(3.0)
        assert pointers()[UFUNC] != before
        np.add(1, 2)
        lib.opscope_recorder_window_end()
        assert pointers()[UFUNC] == before
        np.add(1, 2)
    finally:
        recorder.stop()
        bridge.detach()
    assert recorded_calls(tmp_path) == {UFUNC: 3}


_START = """
import os, sys, threading
import numpy as np
import opscope

sys.setswitchinterval(1e-4)
is_over = False
x, wrong = np.arange(10.0), []

def work():
    while not is_over:
        if np.add(x, x)[9] != 18.0 or (x * x)[9] != 81.0:
            wrong.append(1)

threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
for thread in threads:
    thread.start()
"""
_END = """
is_over = True
for thread in threads:
    thread.join()
assert not wrong
"""


def _observed(directory: Path, program: str, length_ms: float, period_ms: float) -> None:
    settings = windows(length_ms, period_ms) | {"OPSCOPE_DIR": str(directory / "segments")}
    # From 3.12 on Python warns of a fork beside threads, which is what some programs are for.
    done = subprocess.run(
        [sys.executable, "-W", "ignore:This process:DeprecationWarning", "-c", program],
        env=environment({**os.environ, **settings}),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


@pytest.mark.slow
def test_windows_open_and_close_under_threads(tmp_path: Path) -> None:
    waiting = WAIT_FOR_WINDOWS + "wait_for_windows(500)\n"
    _observed(tmp_path, _START + waiting + _END, 0.02, 0.03)
    assert recorded_calls(tmp_path / "segments")[UFUNC] > 0


@pytest.mark.slow
def test_children_forked_within_windows_go_on(tmp_path: Path) -> None:
    forking = """
for turn in range(60):
    pid = os.fork()
    if pid == 0:
        for _ in range(100):
            np.add(x, x)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0, turn
"""
    _observed(tmp_path, _START + forking + _END, 0.1, 0.15)
    assert recorded_calls(tmp_path / "segments")[UFUNC] > 0


def test_a_child_forked_between_windows_is_seen(tmp_path: Path) -> None:
    program = """
import os
import numpy as np
from opscope.record import recorder

if os.fork() == 0:
    np.add(1, 2)
    os._exit(0 if f"/{os.getpid()}-" in recorder.status().path else 1)
assert os.wait()[1] == 0
"""
    _observed(tmp_path, program, 1.0, 1e6)


@pytest.mark.parametrize("turn", range(3))
def test_the_interpreter_ends_within_windows(turn: int, tmp_path: Path) -> None:
    # The program starts the recorder itself, so Opscope does not end it before the interpreter.
    program = f"""{UNTIL}
import atexit, sys, time
import numpy as np
from opscope.bridges import numpy as bridge
from opscope.record import recorder

bridge.attach()
recorder.start(sys.argv[1], window_ms=0.02, period_ms=0.03)
until(lambda: recorder.status().window_count >= 100, "100 windows", lambda: np.add(1, 2))
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, timeout=600
    )
    assert (done.returncode, done.stderr) == (0, "")
