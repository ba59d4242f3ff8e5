"""The process of one program: it warms up, has perf and the tracer begin, and works."""

import pickle
import sys
import time
from importlib import import_module
from typing import TextIO

from opscope.bench.coverage.programs import PROGRAMS
from opscope.bench.coverage.spans import of_trace
from opscope.timeline.taking import taken

_TRACE_BYTES = 512 << 20
_LEAST_STEPS = 2


def main() -> None:
    """Writes the start and the end by CLOCK_MONOTONIC, and when ranges were open, as a pickle."""
    name, seconds, control, answer, written = sys.argv[1:]
    program = next(program for program in PROGRAMS if program.name == name)
    step = import_module(f"opscope.bench.coverage.programs.{program.module}").setup()
    step()
    with open(control, "w") as told, open(answer) as heard, taken(_TRACE_BYTES) as take:
        _tell(told, heard, "enable")
        start, count = time.monotonic_ns(), 0
        while count < _LEAST_STEPS or time.monotonic_ns() < start + float(seconds) * 1e9:
            step()
            count += 1
        end = time.monotonic_ns()
        _tell(told, heard, "disable")
    with open(written, "wb") as file:
        pickle.dump((start, end, of_trace(take.trace(), _realtime_ns())), file)


def _tell(told: TextIO, heard: TextIO, text: str) -> None:
    told.write(f"{text}\n")
    told.flush()
    if "ack" not in heard.readline():
        raise SystemExit(f"perf does not {text}")


def _realtime_ns() -> int:
    """The wall clock minus CLOCK_MONOTONIC: of several readings, the closest pair's."""
    best = None
    for _ in range(100):
        before, wall, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        if best is None or after - before < best[0]:
            best = after - before, wall - (before + after) // 2
    assert best is not None
    return best[1]
