"""Ctrl-C while workers are started: it reaches the consumer, no worker, and leaves nothing behind.

Each test runs in its own program, in which no helper process of a start method runs yet and other
tests have left no threads or descriptors.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys

import pytest

from opscope.tensor import data
from tests.examples import few_or
from tests.tensor.data.datasets import Rows
from tests.waiting import UNTIL

pytestmark = pytest.mark.usefixtures("signals_at_default")

METHODS = ["fork", "spawn", "forkserver"]


def run(program: str, *arguments: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=300
    )
    return done.returncode, done.stdout, done.stderr


def test_ctrl_c_is_the_consumers_to_act_on() -> None:
    batches = iter(data.DataLoader(Rows(), batch_size=2, num_workers=2))
    first = [next(batches)[2].tolist(), next(batches)[2].tolist()]  # now both workers are at work
    assert first == [[0, 1], [2, 3]]
    for process in multiprocessing.active_children():
        assert process.pid is not None
        os.kill(process.pid, signal.SIGINT)
    assert [batch[2].tolist() for batch in batches] == [[4, 5], [6, 7], [8, 9], [10, 11]]


INTERRUPTED_WORKER = """
import sys
from opscope.tensor import data
from opscope.tensor.data import pool
from tests.tensor.data.datasets import Rows, interrupted_work
if __name__ == "__main__":
    pool.work = interrupted_work
    batches = data.DataLoader(Rows(4), num_workers=2, multiprocessing_context=sys.argv[1])
    print([batch[2].item() for batch in batches])
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_ctrl_c_does_not_reach_a_worker_before_its_first_line(method: str) -> None:
    assert run(INTERRUPTED_WORKER, method) == (0, "[0, 1, 2, 3]\n", "")


# The signal comes at the n-th line that multiprocessing executes to start a process, for
# every n, or every few. The test waits for it, because another thread may handle it late.
INTERRUPTED_STARTS = """
import gc, multiprocessing, os, signal, sys, threading, time
from multiprocessing import popen_fork, popen_forkserver, popen_spawn_posix, process
from opscope.tensor import data
from tests.tensor.data.datasets import Rows, interrupts_are_blocked

STARTING = {m.__file__ for m in (popen_fork, popen_forkserver, popen_spawn_posix, process)}

def start(method, line):
    seen = 0
    def trace(frame, event, _):
        nonlocal seen
        if frame.f_code.co_filename not in STARTING:
            return None
        seen += event == "line"
        if event == "line" and seen == line:
            os.kill(os.getpid(), signal.SIGINT)
        return trace
    how = {"num_workers": 2, "multiprocessing_context": method}
    sys.settrace(trace)
    try:
        batches = iter(data.DataLoader(Rows(4), **how))
    finally:
        sys.settrace(None)
    while seen >= line:
        time.sleep(0.001)
    return [batch[2].item() for batch in batches]

def facts():
    gc.collect()
    open_now = len(os.listdir("/proc/self/fd"))
    return open_now, multiprocessing.active_children(), interrupts_are_blocked()

if __name__ == "__main__":
    method, step, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    print(start(method, sys.maxsize))
    for _ in range(threads):
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    before, line, batches = facts(), 1, None
    while batches is None:
        try:
            batches = start(method, line)
        except KeyboardInterrupt:
            pass
        now = facts()
        assert now == before, (line, now, before)
        line += step
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    print(before[1:], batches)
"""


@pytest.mark.slow
@pytest.mark.examples
@pytest.mark.parametrize("threads", [0, 1])
@pytest.mark.parametrize(
    ("method", "step"),
    [("fork", few_or(10, 3)), ("spawn", few_or(200, 60)), ("forkserver", few_or(200, 60))],
)
def test_ctrl_c_while_a_worker_is_started_reaches_the_consumer(
    method: str, step: int, threads: int
) -> None:
    done = run(INTERRUPTED_STARTS, method, str(step), str(threads))
    assert done == (0, "[0, 1, 2, 3]\n([], False) [0, 1, 2, 3]\n", "")


HANDLED = f"""{UNTIL}
import os, signal, threading, time
from opscope.tensor import data
from tests.tensor.data.datasets import Rows
from multiprocessing.process import BaseProcess

came = []
start = BaseProcess.start

def start_interrupted(process):
    os.kill(os.getpid(), signal.SIGINT)
    start(process)

BaseProcess.start = start_interrupted
for handler in (lambda *_: came.append(threading.active_count()), signal.SIG_IGN):
    signal.signal(signal.SIGINT, handler)
    print([batch[2].item() for batch in data.DataLoader(Rows(4), num_workers=1)], end=" ")
    until(lambda: came, "a signal")
    print(signal.getsignal(signal.SIGINT) is handler, came)
thread = threading.Thread(target=lambda: print(len(list(data.DataLoader(Rows(4), num_workers=1)))))
thread.start()
thread.join()
"""


def test_a_handler_of_the_programs_own_is_called_and_kept() -> None:
    assert run(HANDLED) == (0, "[0, 1, 2, 3] True [1]\n[0, 1, 2, 3] True [1]\n4\n", "")


MASKS = """
import multiprocessing, sys
from opscope.tensor import data
from tests.tensor.data.datasets import Masks, interrupts_are_blocked
if __name__ == "__main__":
    how = {"num_workers": 1, "multiprocessing_context": sys.argv[1]}
    print(*data.DataLoader(Masks(), batch_size=None, **how))
    context = multiprocessing.get_context(sys.argv[1])
    with context.Pool(1) as others:
        print(interrupts_are_blocked(), *others.map(interrupts_are_blocked, [0]))
"""


@pytest.mark.parametrize("method", METHODS)
def test_starting_workers_leaves_no_process_with_interrupts_blocked(method: str) -> None:
    assert run(MASKS, method) == (0, "False\nFalse False\n", "")
