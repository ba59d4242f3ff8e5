"""However processes start, fork and end: each program behaves as unobserved, and all of its work is
counted.

Every program here first runs unobserved. Its text gives the number of calls of numpy.add.
"""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.observed_host import TIMEOUT_S, ObservedHost

PRELUDE = """
import os, sys
import numpy as np
a = b = np.ones(10)
def work(count):
    for _ in range(count):
        np.add(a, b)
"""


class Ran:
    """The visible result of a program."""

    def __init__(self, status: int, output: bytes, errors: bytes) -> None:
        self.seen = (status, output.decode(), errors.decode())


def script(place: Path, text: str) -> str:
    path = place / "program.py"
    path.write_text(PRELUDE + textwrap.dedent(text))
    return str(path)


def run_both(host: ObservedHost, *command: str, limit: Callable[[], None] | None = None) -> Ran:
    """Runs unobserved, then observed; checks that both ended and printed the same."""
    pipes: dict[str, Any] = {
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "preexec_fn": limit,
    }

    def ran(process: subprocess.Popen[bytes]) -> Ran:
        with process:
            output, errors = process.communicate(timeout=TIMEOUT_S)
        return Ran(process.returncode, output, errors)

    bare: Any = subprocess.Popen(command, env=host.environ, **pipes)
    unobserved = ran(bare)
    observed = ran(host.start(*command, **pipes))
    assert observed.seen == unobserved.seen
    return observed


def added(host: ObservedHost) -> int:
    return host.calls()["numpy::add"]


def test_forks_of_forks(host: ObservedHost, tmp_path: Path) -> None:
    program = script(
        tmp_path,
        """
        def tree(depth):
            work(10)
            if depth:
                children = [os.fork() for _ in range(1)]
                if children == [0]:
                    tree(depth - 1)
                    os._exit(depth)
                print(os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]), flush=True)
                work(5)
        tree(6)
        """,
    )
    assert run_both(host, sys.executable, program).seen[0] == 0
    assert added(host) == 7 * 10 + 6 * 5


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_pool_of_multiprocessing(host: ObservedHost, tmp_path: Path, method: str) -> None:
    program = script(
        tmp_path,
        f"""
        import multiprocessing
        def task(n):
            work(7)
            return n * n
        if __name__ == "__main__":
            context = multiprocessing.get_context({method!r})
            with context.Pool(2, maxtasksperchild=5) as pool:
                print(sum(pool.map(task, range(40), chunksize=1)))
            # Leaving the block terminates the workers, in whatever they are.
            process = context.Process(target=sys.exit, args=(3,))
            process.start(); process.join()
            print(process.exitcode)
        """,
    )
    run_both(host, sys.executable, program)
    assert added(host) == 40 * 7


@pytest.mark.parametrize("kind", ["ThreadPoolExecutor", "ProcessPoolExecutor"])
def test_an_executor(host: ObservedHost, tmp_path: Path, kind: str) -> None:
    program = script(
        tmp_path,
        f"""
        from concurrent.futures import {kind}
        if __name__ == "__main__":
            with {kind}(3) as executor:
                list(executor.map(work, [10] * 30))
        """,
    )
    run_both(host, sys.executable, program)
    assert added(host) == 300


def test_subprocesses_and_what_they_run_in_turn(host: ObservedHost, tmp_path: Path) -> None:
    program = script(
        tmp_path,
        """
        import subprocess
        depth = int(sys.argv[1])
        work(20)
        if depth:
            command = [sys.executable, __file__, str(depth - 1)]
            if depth % 2:
                command = ["/bin/sh", "-c", 'exec "$@"', "sh", *command]
            done = subprocess.run(command, capture_output=True, text=True)
            print(depth, done.returncode, done.stdout, done.stderr)
        sys.exit(depth)
        """,
    )
    assert run_both(host, sys.executable, program, "3").seen[0] == 3
    assert added(host) == 4 * 20


def test_a_program_that_becomes_another(host: ObservedHost, tmp_path: Path) -> None:
    program = script(
        tmp_path,
        """
        left = int(sys.argv[1])
        work(30 + left)
        if left:
            os.execv(sys.executable, [sys.executable, __file__, str(left - 1)])
        print("end", len(os.listdir("/proc/self/fd")))
        """,
    )
    run_both(host, sys.executable, program, "3")
    assert added(host) == 33 + 32 + 31 + 30


def test_threads_by_the_hundred(host: ObservedHost, tmp_path: Path) -> None:
    program = script(
        tmp_path,
        """
        import threading
        barrier = threading.Barrier(200)
        def all_at_once():
            barrier.wait()
            work(5)
        for target, count in ((all_at_once, 200), (lambda: work(3), 400)):
            threads = [threading.Thread(target=target) for _ in range(count)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
        print(threading.active_count())
        """,
    )
    run_both(host, sys.executable, program)
    assert added(host) == 200 * 5 + 400 * 3


def test_processes_that_live_for_milliseconds(host: ObservedHost, tmp_path: Path) -> None:
    program = script(
        tmp_path,
        """
        for _ in range(100):
            if os.fork() == 0:
                work(3)
                os._exit(0)
            os.wait()
        """,
    )
    run_both(host, sys.executable, program)
    assert added(host) == 300


def test_children_that_are_killed_in_their_work(host: ObservedHost, tmp_path: Path) -> None:
    program = script(
        tmp_path,
        """
        import signal
        deaths = signal.SIGKILL, signal.SIGTERM, signal.SIGABRT, signal.SIGSEGV
        for count in range(1, 9):
            ready, says = os.pipe()
            child = os.fork()
            if child == 0:
                work(count * 100)
                os.write(says, b".")
                signal.pause()
            os.read(ready, 1)
            os.kill(child, deaths[count % 4])
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """,
    )
    no_core = resource.getrlimit(resource.RLIMIT_CORE)[1]
    run_both(
        host,
        sys.executable,
        program,
        limit=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, no_core)),
    )
    assert added(host) == 100 * sum(range(1, 9))


def test_a_process_that_runs_out_of_memory(host: ObservedHost, tmp_path: Path) -> None:
    program = script(
        tmp_path,
        """
        import resource
        work(50)
        pages = int(open("/proc/self/statm").read().split()[0])
        size = pages * resource.getpagesize() + (4 << 20)
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
        for _ in range(3):
            try:
                np.ones(1 << 28)
            except MemoryError:
                print("no memory")
            work(20)
        # Its segment has no room in there either.
        child = os.fork()
        if child == 0:
            work(10)
            os._exit(5)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        held = []
        while True:
            held.append(bytes(100_000))
        """,
    )
    ran = run_both(host, sys.executable, program)
    assert ran.seen[0] == 1
    assert ran.seen[1] == "no memory\n" * 3 + "5\n"
    assert added(host) in (110, 120)


def test_a_process_killed_for_lack_of_memory_loses_nothing(
    host: ObservedHost, tmp_path: Path
) -> None:
    # As the kernel's OOM killer does: from outside, immediately.
    program = script(
        tmp_path,
        """
        work(1234)
        held = [np.ones(1 << 16) for _ in range(50)]
        os.kill(os.getpid(), 9)
        """,
    )
    assert run_both(host, sys.executable, program).seen[0] == -signal.SIGKILL
    assert added(host) == 1234


def test_a_directory_that_is_deleted_meanwhile(host: ObservedHost, tmp_path: Path) -> None:
    program = script(
        tmp_path,
        """
        import shutil
        work(10)
        shutil.rmtree(os.environ["OPSCOPE_DIR"], ignore_errors=True)
        work(10)
        if os.fork() == 0:
            work(25)
            os._exit(0)
        os.wait()
        print("on")
        """,
    )
    run_both(host, sys.executable, program)
    # The parent's records were removed with its file; its child has started anew.
    assert added(host) in (25, 35, 45)


def test_a_detached_daemon(host: ObservedHost, tmp_path: Path) -> None:
    program = script(
        tmp_path,
        """
        done, says = os.pipe()
        if os.fork():
            os.close(says)
            os.read(done, 1)
            sys.exit(0)
        os.setsid()
        if os.fork():
            os._exit(0)
        for fd in (0, 1, 2):
            os.close(fd)
        work(77)
        os._exit(0)
        """,
    )
    run_both(host, sys.executable, program)
    assert added(host) == 77
