"""Programs that work intermittently, in step with the windows, or in short-lived processes."""

import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

from opscope.bench.truth.programs import Done, Drive, in_turn

_PERIOD_S = 0.25
"""The default period of windows, in seconds."""

_SHORT = """
import time
start = time.perf_counter()
import numpy as np
a, b = np.ones(10), np.ones(20_000)
for _ in range(500):
    for _ in range(20):
        np.add(a, a)
    np.sin(b)
print(time.perf_counter() - start)
"""


def _work() -> Callable[[], None]:
    """About a millisecond."""
    ten, many = np.ones(10), np.ones(20_000)

    def step() -> None:
        for _ in range(200):
            np.add(ten, ten)
        for _ in range(5):
            np.sin(many)

    return step


class _Bursts:
    """Called between two steps: sleeps once the work has lasted as long as a burst."""

    def __init__(self, work_s: float, sleep_s: float) -> None:
        self.work_s, self.sleep_s = work_s, sleep_s
        self.start_s = time.monotonic()

    def __call__(self) -> None:
        if time.monotonic() - self.start_s >= self.work_s:
            time.sleep(self.sleep_s)
            self.start_s = time.monotonic()


def bursty() -> Drive:
    return in_turn(_work(), _Bursts(0.1, 0.4))


def mostly_idle() -> Drive:
    """Works for a hundredth of the time."""
    return in_turn(_work(), _Bursts(0.01, 0.99))


def periodic() -> Drive:
    """Does the same work in the same order in each period: exponentials first, then tangents."""
    many = np.ones(20_000)

    def step() -> None:
        for _ in range(400):
            np.exp(many)
        for _ in range(400):
            np.tanh(many)

    return in_turn(step, lambda: time.sleep(_PERIOD_S - time.monotonic() % _PERIOD_S))


def short_processes() -> Drive:
    """A step is a process that lives for about 0.2 s and is observed like this one."""

    def drive(seconds: float) -> Done:
        end = time.monotonic() + seconds
        steps, active_s = 0, 0.0
        while not steps or time.monotonic() < end:
            command = [sys.executable, "-c", _SHORT]
            said = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
            steps, active_s = steps + 1, active_s + float(said)
        return Done(steps, active_s)

    return drive
