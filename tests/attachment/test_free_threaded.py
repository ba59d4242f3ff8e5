"""Free-threaded CPython stays unobserved: nothing is loaded that would enable its GIL.

Runs with the interpreters that OPSCOPE_TEST_PYTHONS names (paths, separated by colons) and those on
PATH; the decision alone is tested with every Python.
"""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from opscope.attachment.interpreter import FREE_THREADED

from .conftest import Bench

REFUSED = [("unsupported-python", FREE_THREADED)]

# Frameworks imported by eight threads at once, then all of them at work, a fork, and asyncio.
PROGRAM = """
import asyncio, os, sys, threading, warnings

warnings.simplefilter("ignore", DeprecationWarning)
totals = [0] * 8
start = threading.Barrier(8)

def work(number):
    start.wait()
    import numpy
    for _ in range(20000):
        totals[number] += len(numpy.__version__)
    if hasattr(numpy, "add"):
        for _ in range(200):
            totals[number] += int(numpy.add(numpy.ones(100), 1).sum())

threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(set(totals)) == 1, totals
pid = os.fork()
if pid == 0:
    import numpy
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
asyncio.run(asyncio.sleep(0))
print("gil", sys._is_gil_enabled(), "threads", len(os.listdir("/proc/self/task")))
print([name for name in sys.modules if name.startswith("opscope")])
"""


def _is_free_threaded(path: str) -> bool:
    code = "import sys; print(getattr(sys, 'abiflags', ''))"
    done = subprocess.run([path, "-c", code], capture_output=True, text=True)
    return "t" in done.stdout


def _free_threaded() -> list[str]:
    named = os.environ.get("OPSCOPE_TEST_PYTHONS", "").split(":")
    on_path = [shutil.which(f"python3.{minor}t") for minor in range(13, 17)]
    return [path for path in dict.fromkeys((*named, *on_path)) if path and _is_free_threaded(path)]


@pytest.fixture(params=_free_threaded() or [""])
def free_threaded(request: pytest.FixtureRequest) -> str:
    if not request.param:
        pytest.skip("no free-threaded Python here; OPSCOPE_TEST_PYTHONS may name some")
    return str(request.param)


@pytest.mark.parametrize("gil", ["", "0", "1"])
def test_a_free_threaded_program_runs_as_without_opscope(
    bench: Bench, free_threaded: str, gil: str
) -> None:
    arguments = ("-X", "dev", "-c", PROGRAM)
    bare = bench.run(*arguments, python=free_threaded, observed=False, PYTHON_GIL=gil)
    done = bench.run(*arguments, python=free_threaded, PYTHON_GIL=gil)
    assert (done.returncode, done.stdout, done.stderr) == (0, bare.stdout, bare.stderr)
    assert done.stdout == f"gil {gil == '1'} threads 1\n[]\n"
    assert bench.reasons() == REFUSED
    assert bench.segment_files() == []


@pytest.mark.parametrize("gil", ["", "0"])
def test_a_free_threaded_program_with_the_true_numpy_runs_as_without_opscope(
    bench: Bench, free_threaded: str, gil: str
) -> None:
    if bench.run("-c", "import numpy", python=free_threaded, stub=False, observed=False).returncode:
        pytest.skip("this interpreter has no NumPy")
    for observed in (False, True):
        done = bench.run(
            "-c", PROGRAM, python=free_threaded, stub=False, observed=observed, PYTHON_GIL=gil
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("gil False")
        assert done.stdout.endswith("\n[]\n")
    assert bench.reasons() == REFUSED


def test_before_it_is_refused_nothing_of_opscope_is_imported(bench: Bench) -> None:
    program = (
        "import sys; sys.abiflags = 't'; import numpy\n"
        "print([name for name in sys.modules if name.startswith('opscope')])"
    )
    done = bench.run("-c", program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")
    assert bench.reasons() == REFUSED
    assert bench.segment_files() == []
