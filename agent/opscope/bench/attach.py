"""The cost of attaching for a whole process, from its start to its end, relative to bare Python.

Cases use PYTHONPATH, as `opscope run` and a payload do; cases `_installed` use the .pth file of
`opscope install`, in virtual environments made for them. Each round starts one process of each
kind. A process reports its own memory, threads and sockets at its end, since a parent's statistics
about a child include the parent's own memory.
"""

import os
import statistics
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator, Mapping
from time import perf_counter_ns

import opscope
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
from opscope.installation import path_file
from opscope.installation.environment import Environment, look_at

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
            yield _compared(
                case, bound, rounds, process_ns(program, bare), process_ns(program, attached)
            )
        yield from _looks(effort.rounds_of(11), bare, attached)
        here = bare | {"OPSCOPE_DIR": directory}
        without, installed = _environment(f"{directory}/bare"), _environment(f"{directory}/venv")
        path_file.put(installed.site, os.path.dirname(opscope.__file__))
        for case, program, bound in _PROGRAMS:
            yield _compared(
                f"{case}_installed",
                bound,
                rounds,
                process_ns(program, here, without.python),
                process_ns(program, here, installed.python),
            )


def _compared(
    case: str, bound: float, rounds: int, bare: Callable[[], float], attached: Callable[[], float]
) -> Result:
    ns = interleaved(rounds, {"bare": bare, "attached": attached})
    value = median_ratio(ns["attached"], ns["bare"])
    return Result("attach", case, value, RATIO, "bare Python", bound, rounds)


def _environment(place: str) -> Environment:
    """A virtual environment with the same packages as this one."""
    venv.create(place, symlinks=True)
    made = look_at(place)
    with open(os.path.join(made.site, "bench.pth"), "w") as file:
        for path in dict.fromkeys(sys.path):
            if path.endswith("-packages"):
                # An editable opscope is itself found through a .pth file.
                file.write(f"import site; site.addsitedir({path!r})\n")
    return made


def _looks(rounds: int, bare: Mapping[str, str], attached: Mapping[str, str]) -> Iterator[Result]:
    """The additional memory, threads and sockets of an attached process."""
    pairs = [(_look(bare), _look(attached)) for _ in range(rounds)]
    for index, (case, unit, bound) in enumerate(
        (("memory", "MiB", 1.0), ("threads", "threads", 0.0), ("sockets", "sockets", 0.0))
    ):
        value = statistics.median(there[index] - here[index] for here, there in pairs)
        yield Result("attach", f"python_pass_{case}", value, unit, "bare Python", bound, rounds)


def process_ns(
    program: str, environ: Mapping[str, str], python: str = sys.executable
) -> Callable[[], float]:
    """One side of a comparison: a Python process with this program, from its start to its end."""
    arguments = [python, "-c", program]

    def side() -> float:
        start = perf_counter_ns()
        pid = os.posix_spawn(python, arguments, environ)
        _, status = os.waitpid(pid, 0)
        taken = perf_counter_ns() - start
        if status != 0:
            raise OpscopeError(f"python -c {program!r} ended with status {status}")
        return float(taken)

    return side


def _look(environ: Mapping[str, str]) -> tuple[float, float, float]:
    """MiB, threads and sockets of a minimal Python process."""
    done = subprocess.run(
        [sys.executable, "-c", _LOOK], env=environ, capture_output=True, text=True, check=True
    )
    kib, threads, sockets = map(int, done.stdout.split())
    return kib / 1024, threads, sockets
