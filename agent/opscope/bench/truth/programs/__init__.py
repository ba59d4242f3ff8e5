"""The programs with known work: by name, and the way to run one in a separate process.

A program's setup function imports its modules, warms up, and returns a function that makes steps
for some seconds and then returns their number. Every step runs the same operators. Importing this
package imports no NumPy, PyTorch or core; each program's module imports its own.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import NamedTuple


class Done(NamedTuple):
    """A program's work: its steps, and the time of its threads in them, summed, in seconds. Where
    threads wait for each other, a step may count as what it takes alone (threads.server)."""

    steps: int
    active_s: float
    stopped_s2: float = 0.0
    """The sum over steps of the square of the time in which its thread had no processor."""


Drive = Callable[[float], Done]
"""Makes steps for that many seconds, at least one."""

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
TWO_THREADS = dict.fromkeys(ONE_THREAD, "2")

LEARNING_RATE = 0.0
"""So every step of a training takes as long as the first. As a model learns, the moments of its
optimizer become subnormal numbers, with which some processors calculate several times slower."""


@dataclass(frozen=True)
class Program:
    name: str
    setup: str
    """`module.function` within this package."""
    needs: str
    """The module that it requires."""
    environ: Mapping[str, str] = field(default_factory=lambda: ONE_THREAD)
    times_itself: bool = True
    """Whether `Done.active_s` is all the time in which its operators run. Otherwise only its calls
    are judged."""
    has_one_thread: bool = True
    """Whether a load makes all of its operators slower alike."""


PROGRAMS = {
    program.name: program
    for program in (
        Program("numpy_small", "arrays.small", "numpy"),
        Program("numpy_threads1", "arrays.one_thread", "numpy"),
        Program("numpy_threads2", "arrays.two_threads", "numpy", has_one_thread=False),
        Program("numpy_threads8", "arrays.eight_threads", "numpy", has_one_thread=False),
        Program("numpy_short_threads", "arrays.short_threads", "numpy", has_one_thread=False),
        Program("numpy_blas2", "arrays.blas", "numpy", TWO_THREADS, has_one_thread=False),
        Program("numpy_sizes", "arrays.sizes", "numpy"),
        Program("bursty", "rhythm.bursty", "numpy"),
        Program("mostly_idle", "rhythm.mostly_idle", "numpy"),
        Program("periodic", "rhythm.periodic", "numpy"),
        Program("short_processes", "rhythm.short_processes", "numpy", has_one_thread=False),
        Program("core_cnn", "core.cnn", "opscope.tensor"),
        Program("mlp_train", "models.mlp", "torch"),
        Program("bert_train", "models.bert", "torch"),
        Program("gpt2_generate", "models.gpt2", "torch"),
        Program("resnet18_train", "models.resnet18", "torch"),
        Program("resnet18_train2", "models.resnet18", "torch", TWO_THREADS, has_one_thread=False),
        Program("convolutions_train", "models.convolutions", "torch"),
        Program("thread_per_request", "threads.thread_per_request", "torch", has_one_thread=False),
        Program("threaded_server", "threads.server", "torch", has_one_thread=False),
        Program("input_bound", "loading.in_process", "torch"),
        Program("loader_workers2", "loading.two_workers", "torch", times_itself=False),
    )
}


def setup(name: str) -> Drive:
    """Sets the program up in this process; it is then ready to make steps."""
    module, function = PROGRAMS[name].setup.split(".")
    drive: Drive = getattr(import_module(f"{__name__}.{module}"), function)()
    return drive


def main() -> None:
    """`NAME SECONDS [children]`: prints ready, waits for a line, makes steps, prints the result.

    With `children`, counts by operator the ranges that open directly within its ranges.
    """
    name, seconds, *asked = sys.argv[1:]
    drive = setup(name)
    print("ready", flush=True)
    sys.stdin.readline()
    counted: Mapping[str, int] = {}
    if asked:
        from opscope.bench.truth.programs.children import counting

        with counting() as counted:
            done = drive(float(seconds))
    else:
        done = drive(float(seconds))
    print(json.dumps([done, dict(counted)]), flush=True)


_LOOK_S = 0.02
"""How often a program reads its CPU time."""


class _CpuTime(threading.local):
    """The calling thread's CPU time as the kernel last counted it: up to a timer tick old.

    `time.thread_time` has it counted at that moment. If the thread's quota is used up, the kernel
    stops it there, and not in a step: of the stops of products on two threads, a tenth came there.
    """

    _fd: int | None = None

    def now_s(self) -> float:
        if self._fd is None:
            try:
                self._fd = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                self._fd = -1  # gVisor has none
        if self._fd < 0:
            return time.thread_time()
        return int(os.pread(self._fd, 100, 0).split()[0]) / 1e9


_cpu_time = _CpuTime()


def in_turn(
    step: Callable[[], object],
    pause: Callable[[], object] | None = None,
    warm: int = 3,
) -> Drive:
    """Steps in sequence on the calling thread, with a pause in between that does not count. Some
    run before it is ready."""
    for _ in range(warm):
        step()

    def drive(seconds: float) -> Done:
        end = time.monotonic() + seconds
        steps, active_s, stopped_s2 = 0, 0.0, 0.0
        while not steps or time.monotonic() < end:
            cpu_start, look_s = _cpu_time.now_s(), 0.0
            look_end = time.monotonic() + _LOOK_S
            while not look_s or time.monotonic() < min(look_end, end):
                start = time.perf_counter()
                step()
                look_s += time.perf_counter() - start
                steps += 1
                if pause is not None:
                    pause_start = _cpu_time.now_s()
                    pause()
                    cpu_start += _cpu_time.now_s() - pause_start
            active_s += look_s
            stopped_s = look_s - (_cpu_time.now_s() - cpu_start)
            stopped_s2 += max(0.0, stopped_s) ** 2
        return Done(steps, active_s, stopped_s2)

    return drive


def with_threads(step: Callable[[], object]) -> Drive:
    """Steps in sequence that start threads and wait for them; three run before it is ready.

    Their time is the CPU time of the process. How long a thread takes to wake up differs between
    runs: beside other programs, a step took 0.44 to 1.0 ms, and 0.21 to 0.28 ms of CPU time.
    """
    for _ in range(3):
        step()

    def drive(seconds: float) -> Done:
        end, start = time.monotonic() + seconds, time.process_time()
        steps = 0
        while not steps or time.monotonic() < end:
            step()
            steps += 1
        return Done(steps, time.process_time() - start)

    return drive
