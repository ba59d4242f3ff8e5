"""A program that records ranges, and logs the duration of each by its own clock."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

# Runs until its standard input ends. Writes a line for each range: its end, and its seconds
# measured inside and outside of it.
_PROGRAM = """
import random, select, sys, time
import opscope
from opscope.record import recorder

recorder.start(sys.argv[1])
recorder.note("service.name", sys.argv[2])
random.seed(1)
log = open(sys.argv[3], "w", buffering=1 << 20)
written = 0
while written < int(sys.argv[4]) and not select.select([sys.stdin], [], [], 0)[0]:
    seconds = random.lognormvariate(-7.5, 0.7)
    before = time.perf_counter()
    with opscope.record_function("core::work"):
        begin = time.perf_counter()
        time.sleep(seconds)
        took = time.perf_counter() - begin
    around = time.perf_counter() - before
    log.write(f"{time.time()} {took} {around}\\n")
    written += 1
log.close()
"""


@dataclass
class Log:
    ended_s: np.ndarray
    """Unix time at which each range ended."""
    took_s: np.ndarray
    """How long each took, looked at from within, and so a bit less than it did."""
    around_s: np.ndarray
    """From outside, and so a bit more."""

    def quantile_within(self, quantile: float, error: float) -> tuple[float, float]:
        """Bounds for a quantile of a histogram with that relative error: the recorder's duration of
        a range is between the two measured ones, and with few long ranges the next one may differ a
        lot."""
        rank = int(quantile * len(self.took_s))
        least = np.sort(self.took_s)[rank - 1]
        most = np.sort(self.around_s)[min(rank + 1, len(self.around_s) - 1)]
        return float(least * (1 - error)), float(most * (1 + error))

    def count_at(self, unix_s: float) -> int:
        return int(np.searchsorted(self.ended_s, unix_s))


def start(segments: Path, service: str, log: Path, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _PROGRAM, str(segments), service, str(log), str(count)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, text=True)


def read(log: Path) -> Log:
    return Log(*np.loadtxt(log, ndmin=2).T)


def stop(program: subprocess.Popen[str], log: Path) -> Log:
    """Ends it regularly, before it has done all."""
    assert program.stdin is not None
    program.stdin.close()
    assert program.wait(300) == 0
    return read(log)


def run(segments: Path, service: str, log: Path, count: int) -> Log:
    """Waits for its end."""
    with start(segments, service, log, count) as program:
        assert program.wait(300) == 0
    return read(log)
