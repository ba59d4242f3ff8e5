"""Free-threaded CPython: its GIL stays off, whether opscope observes it or leaves it alone.

Opscope observes it from 3.14 on, with an extension of its own. Runs with the interpreters that
OPSCOPE_TEST_PYTHONS names (paths, separated by colons) and those on PATH; the decision alone is
tested with every Python.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys

import pytest

from opscope.attachment.interpreter import FREE_THREADED, NOT_BUILT, free_threaded_refusal

from .conftest import Bench

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
print("gil", sys._is_gil_enabled())
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


def _refusal(python: str) -> str:
    """The reason why the opscope of these tests does not observe it; "" if it does."""
    program = (
        "import json, sys\n"
        "try: import opscope._native; own = True\n"
        "except ImportError: own = False\n"
        "print(json.dumps([*sys.version_info[:2], own]))"
    )
    done = subprocess.run([python, "-c", program], capture_output=True, text=True, check=True)
    major, minor, has_own = json.loads(done.stdout)
    is_ours = "t" in sys.abiflags and sys.version_info[:2] == (major, minor)
    without = "" if has_own or is_ours else NOT_BUILT
    return free_threaded_refusal((major, minor), "t") or without


@pytest.mark.parametrize("gil", ["", "0", "1"])
def test_a_free_threaded_program_runs_as_without_opscope(
    bench: Bench, free_threaded: str, gil: str
) -> None:
    arguments = ("-X", "dev", "-c", PROGRAM)
    bare = bench.run(*arguments, python=free_threaded, observed=False, PYTHON_GIL=gil)
    done = bench.run(*arguments, python=free_threaded, PYTHON_GIL=gil)
    assert (done.returncode, done.stderr) == (0, bare.stderr)
    assert bare.stdout == f"gil {gil == '1'}\n[]\n"
    refusal = _refusal(free_threaded)
    if refusal:
        assert done.stdout == bare.stdout
        assert bench.reasons() == [("unsupported-python", refusal)]
        assert bench.segment_files() == []
    else:
        assert done.stdout.startswith(f"gil {gil == '1'}\n['opscope")
        assert [code for code, _ in bench.reasons()] in (["bridge"], ["bridge"] * 2)  # the stub


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
        assert done.stdout.startswith("gil False\n")
    refusal = _refusal(free_threaded)
    assert bench.reasons() == ([("unsupported-python", refusal)] if refusal else [])
    assert bool(bench.segment_files()) == (not refusal)


AS_313T = "import sys; sys.abiflags = 't'; sys.version_info = (3, 13, 0, 'final', 0)\n"


def test_before_it_is_refused_nothing_of_opscope_is_imported(bench: Bench) -> None:
    program = (
        f"{AS_313T}import numpy\n"
        "print([name for name in sys.modules if name.startswith('opscope')])"
    )
    done = bench.run("-c", program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")
    assert bench.reasons() == [("unsupported-python", FREE_THREADED)]
    assert bench.segment_files() == []


def test_an_opscope_without_an_extension_for_it_leaves_it_alone(
    bench: Bench, bare_python: str
) -> None:
    # The opscope beside the startup files, in an interpreter in which none is installed.
    as_314t = "import sys; sys.abiflags = 't'; sys.version_info = (3, 14, 0, 'final', 0)\n"
    suffixes = "import importlib.machinery as m; m.EXTENSION_SUFFIXES.insert(0, '.other.so')\n"
    program = (
        f"{as_314t}{suffixes}import numpy\n"
        "print([name for name in sys.modules if name.startswith('opscope')])"
    )
    done = bench.run("-c", program, python=bare_python)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")
    assert bench.reasons() == [("unsupported-python", NOT_BUILT)]


@pytest.mark.skipif("t" not in sys.abiflags, reason="this Python has the GIL")
@pytest.mark.parametrize("name", ["opscope.tensor", "opscope.models", "opscope.tensor.nn"])
def test_parts_that_need_the_gil_say_so_and_leave_it_off(name: str) -> None:
    for _ in range(2):
        with pytest.raises(ImportError, match="need the GIL; this Python is free-threaded"):
            importlib.import_module(name)
    assert not getattr(sys, "_is_gil_enabled", bool)()


@pytest.mark.parametrize(
    ("version", "flags", "refusal"),
    [((3, 13), "t", FREE_THREADED), ((3, 14), "t", ""), ((3, 15), "td", ""), ((3, 13), "", "")],
)
def test_it_is_observed_from_3_14_on(version: tuple[int, int], flags: str, refusal: str) -> None:
    assert free_threaded_refusal(version, flags) == refusal
