"""What attaching costs a whole process: from its start to its end, against bare Python.

Each round starts one process of either kind. Memory, threads and sockets are what a process says of
itself at its end, since what a parent is told about a child's memory includes the parent's own.
"""

import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from time import perf_counter_ns

from opscope.attachment.launch import environment
from opscope.bench import (
    RATIO,
    Effort,
    Result,
    interleaved,
    median_ratio,
    segment_directory,
)
from opscope.errors import OpscopeError

# (case, program, bound)
_PROGRAMS = (("python_pass", "pass", 1.25), ("import_numpy", "import numpy", 1.10))

# Peak memory in KiB, threads, and sockets among the open files.
_LOOK = """
import os
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
links = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
sockets = [path for path in links if os.path.islink(path) and "socket" in os.readlink(path)]
print(status["VmHWM"].split()[0], status["Threads"], len(sockets))
"""


def measure(effort: Effort) -> Iterator[Result]:
    if "OPSCOPE_ATTACH" in os.environ:
        raise OpscopeError("this environment is an attached one; run it outside of opscope")
    rounds = effort.rounds_of(41)
    with segment_directory() as directory:
        bare = dict(os.environ)
        attached = environment(bare | {"OPSCOPE_DIR": directory})
        for case, program, bound in _PROGRAMS:
            ns = interleaved(
                rounds,
                {"bare": process_ns(program, bare), "attached": process_ns(program, attached)},
            )
            value = median_ratio(ns["attached"], ns["bare"])
            yield Result("attach", case, value, RATIO, "bare Python", bound, rounds)
        yield from _looks(effort.rounds_of(11), bare, attached)


def _looks(rounds: int, bare: Mapping[str, str], attached: Mapping[str, str]) -> Iterator[Result]:
    """What an attached process has that a bare one has not."""
    pairs = [(_look(bare), _look(attached)) for _ in range(rounds)]
    for index, (case, unit, bound) in enumerate(
        (("memory", "MiB", 1.0), ("threads", "threads", 0.0), ("sockets", "sockets", 0.0))
    ):
        value = statistics.median(there[index] - here[index] for here, there in pairs)
        yield Result("attach", f"python_pass_{case}", value, unit, "bare Python", bound, rounds)


def process_ns(program: str, environ: Mapping[str, str]) -> Callable[[], float]:
    """A side of a comparison: a Python process with this program, from its start to its end."""
    arguments = [sys.executable, "-c", program]

    def side() -> float:
        start = perf_counter_ns()
        pid = os.posix_spawn(sys.executable, arguments, environ)
        _, status = os.waitpid(pid, 0)
        taken = perf_counter_ns() - start
        if status != 0:
            raise OpscopeError(f"python -c {program!r} ended with status {status}")
        return float(taken)

    return side


def _look(environ: Mapping[str, str]) -> tuple[float, float, float]:
    """MiB, threads and sockets of a Python process that imports nothing of note."""
    done = subprocess.run(
        [sys.executable, "-c", _LOOK], env=environ, capture_output=True, text=True, check=True
    )
    kib, threads, sockets = map(int, done.stdout.split())
    return kib / 1024, threads, sockets
