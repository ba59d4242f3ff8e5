"""PyTorch observed in windows, with threads at work, in forked children and at exit.

Each test runs in its own process, so that a crash ends only that process.
"""

from pathlib import Path

import pytest

from tests.forked_programs import WITH_TORCH
from tests.waiting import UNTIL

from .conftest import WAIT_FOR_WINDOWS, windows
from .torch_observed import TIMEOUT_S, counts, observed_fork, observing

# Few, because on real PyTorch a window waits for the GIL and a fork takes tens of milliseconds.
# tests/native/bridges/torch has thousands of both.
WINDOWS, THREADS, FORKS = 300, 4, 40
# With a budget, windows get rare on a loaded machine.
UNLIMITED = {**windows(0.02, 0.03), "OPSCOPE_MAX_OVERHEAD": "off"}

_START = """
import os, sys, threading, time
import torch, opscope
from opscope.record import recorder

torch.set_num_threads(1)
sys.setswitchinterval(1e-4)
is_over = False

def work():
    x = torch.ones(4, requires_grad=True)
    while not is_over:
        (x * 2).sum().backward()

# PyTorch finds an operator's kernel at its first call, under a lock that a fork would freeze.
(torch.ones(4, requires_grad=True) * 2).sum().backward()
torch.ones(3).add_(1)
threads = [threading.Thread(target=work, daemon=True) for _ in range(COUNT)]
for thread in threads:
    thread.start()
"""

_END = """
is_over = True
for thread in threads:
    thread.join()
"""


@pytest.mark.slow
def test_windows_open_and_close_under_threads(tmp_path: Path) -> None:
    waiting = WAIT_FOR_WINDOWS + f"wait_for_windows({WINDOWS})\n"
    program = _START.replace("COUNT", str(THREADS)) + waiting + _END
    observed_fork(tmp_path, program, **UNLIMITED)
    found = counts(tmp_path / "segments")
    assert found.calls["MulBackward0"] > 0
    assert found.snapshot.health.dropped == 0


@pytest.mark.slow
def test_memory_does_not_grow_with_windows(tmp_path: Path) -> None:
    program = (
        _START.replace("COUNT", "2")
        + WAIT_FOR_WINDOWS
        + """
def rss():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGESIZE")

wait_for_windows(300)
before = rss()
wait_for_windows(1300)
grown = rss() - before
"""
        + _END
        + "print(grown)"
    )
    assert int(observed_fork(tmp_path, program, **UNLIMITED)) < 1 << 20


@pytest.mark.slow
def test_children_forked_within_windows_go_on(tmp_path: Path) -> None:
    program = (
        _START.replace("COUNT", "2")
        + f"""
for turn in range({FORKS}):
    pid = os.fork()
    if pid == 0:
        torch.ones(3).add_(1)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0, turn
"""
        + _END
        + "print(recorder.status().window_count)"
    )
    assert int(observed_fork(tmp_path, program, **windows(0.2, 0.3))) > 0
    # Most children end before a window comes; those that made a segment counted in it.
    found = counts(tmp_path / "segments")
    assert found.snapshot.health.dropped == 0


def test_a_child_records_from_its_first_operator_on(tmp_path: Path) -> None:
    program = """
import os, torch
torch.ones(3)
if os.fork() == 0:
    torch.zeros(3)
    os._exit(0)
os.wait()
torch.ones(3)
"""
    observed_fork(tmp_path, program)
    found = counts(tmp_path / "segments")
    assert (found.calls["aten::ones"], found.calls["aten::zeros"]) == (2, 1)
    assert len(list((tmp_path / "segments").glob("*.seg"))) == 2


def test_threads_after_the_first_thousands_are_counted(tmp_path: Path) -> None:
    # More than the bridge has room for.
    program = """
import threading, torch
x = torch.ones(3)
for _ in range(5000):
    thread = threading.Thread(target=torch.negative, args=(x,))
    thread.start()
    thread.join()
"""
    observed_fork(tmp_path, program)
    assert counts(tmp_path / "segments").calls["aten::neg"] == 5000


@pytest.mark.parametrize(
    "way_out",
    [
        "sys.exit(0)",
        "os._exit(0)",
        "import ctypes; ctypes.CDLL(None).exit(0)",
        "os.kill(os.getpid(), 9)",
        "threading.Thread(target=time.sleep, args=(1e6,), daemon=True).start()",
    ],
)
def test_exit_in_the_middle_of_a_window(tmp_path: Path, way_out: str) -> None:
    program = f"""{UNTIL}
import os, sys, threading, time
import torch
from opscope.record import recorder
x = torch.ones(3)
def window():
    status = recorder.status()
    return status.in_window and status.window_count
def is_met():
    # The thread calls within one window for longer than the window warms up, and is not held up by
    # other load.
    first, end = window(), time.thread_time() + 0.003
    while time.thread_time() < end:
        x.add_(1)
    return first and window() == first
until(is_met, "a window that met the calls", lambda: None)
met = window()
until(lambda: window() > met, "a later window that is open", lambda: x.add_(1))
{way_out}
"""
    script = tmp_path / "program.py"
    script.write_text(program)
    environ = observing(tmp_path, windows(5.0, 5.01))
    done = WITH_TORCH.run(script, tmp_path, environ, TIMEOUT_S)
    assert done.returncode == (-9 if "kill" in way_out else 0), done.stderr
    assert counts(tmp_path / "segments").calls["aten::add_"] > 0


def test_a_program_may_clear_all_callbacks_of_pytorch(tmp_path: Path) -> None:
    """PyTorch writes a line for each callback that is removed after that."""
    program = """
import torch
from opscope.record import recorder
x = torch.ones(3)
for _ in range(20):
    met = recorder.status().window_count
    while recorder.status().window_count < met + 3:
        x.add_(1)
        torch._C._autograd._clear_callbacks()
"""
    script = tmp_path / "program.py"
    script.write_text(program)
    done = WITH_TORCH.run(script, tmp_path, observing(tmp_path, windows(0.5, 2.0)), TIMEOUT_S)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
