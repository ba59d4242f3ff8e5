"""Programs that must have one thread: forks from Python 3.12 on, user namespaces."""

from __future__ import annotations

import os
import sys

import pytest

from tests.attachment.conftest import Bench
from tests.waiting import UNTIL

# Read in one call of C, before any other Python code runs, as CPython does it.
FORK = f"""{UNTIL}
import functools, os
stat, text = os.open("/proc/self/stat", os.O_RDONLY), bytearray(4096)
os.register_at_fork(after_in_parent=functools.partial(os.preadv, stat, [text], 0))
import sys, time
import numpy, opscope
def field(text): return int(text.rpartition(b")")[2].split()[17])
def threads():
    with open("/proc/self/stat", "rb") as file: return field(file.read())
def work():
    for _ in range(100):
        with opscope.record_function("x"): pass
alone = threads()
work()
with_ours = threads()
for _ in range(1000):
    pid = os.fork()
    if not pid: os._exit(threads())
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
    assert field(bytes(text)) == alone
    work()
until(lambda: threads() == with_ours, "the window thread runs again")
print(opscope.attach_status().attached, with_ours - alone)
"""


def test_no_thread_of_opscope_exists_when_a_fork_returns(bench: Bench) -> None:
    done = bench.run("-Werror::DeprecationWarning", "-c", FORK)
    assert (done.stderr, done.stdout) == ("", "True 1\n")


POOL = """
import multiprocessing, numpy, opscope, time
def work(n):
    with opscope.record_function("x"): return n * n
if __name__ == "__main__":
    work(0)
    for _ in range(3):
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(work, range(50)) == [n * n for n in range(50)]
    print("done")
"""


def test_fork_pools_work(bench: Bench) -> None:
    done = bench.run("-c", POOL)
    assert (done.stderr, done.stdout) == ("", "done\n")
    assert len(bench.segment_files()) > 1


HOOK = """
import os, numpy, opscope, threading
def in_parent(): # Python code, which os.fork calls: 3.13 counts threads after it
    for _ in range(100): str(_)
os.register_at_fork(after_in_parent=in_parent)
for _ in range(50):
    with opscope.record_function("x"): pass
    pid = os.fork()
    if not pid: os._exit(0)
    os.waitpid(pid, 0)
"""


def test_python_code_at_forks_does_not_bring_it_back_too_early(bench: Bench) -> None:
    done = bench.run("-Walways::DeprecationWarning", "-c", HOOK)
    assert (done.stderr, done.stdout) == ("", "")


UNSHARE = """
import ctypes, os
{before}
CLONE_NEWUSER = 0x10000000
libc = ctypes.CDLL(None, use_errno=True)
print(libc.unshare(CLONE_NEWUSER), os.strerror(ctypes.get_errno()))
"""


@pytest.mark.parametrize(
    ("before", "variables"),
    [
        ("", {}),
        ("import numpy, opscope", {}),
        (
            "import numpy, opscope\nwith opscope.record_function('x'): pass",
            {"OPSCOPE_SAMPLING": "0.5"},
        ),
    ],
    ids=["no framework", "no operator", "no windows"],
)
def test_a_user_namespace_can_be_created_as_when_unobserved(
    bench: Bench, before: str, variables: dict[str, str]
) -> None:
    code = UNSHARE.replace("{before}", before)
    environ = {**bench.bare, "PYTHONPATH": str(bench.stub), **variables}
    bare = bench.start([sys.executable, "-c", code], environ)
    observed = bench.start([sys.executable, "-c", code], bench.stub_environment(**variables))
    assert observed.stdout == bare.stdout != ""
    assert observed.stderr == bare.stderr == ""


UNSHARE_AFTER_OPERATORS = f"""{UNTIL}
import os
import numpy, opscope
def threads(): return len(os.listdir("/proc/self/task"))
def work():
    with opscope.record_function("x"): pass
alone = threads()
until(lambda: threads() > alone, "the window thread runs", work)
os.unshare(os.CLONE_NEWUSER)
until(lambda: threads() > alone, "the window thread runs again", work)
print(alone)
"""


@pytest.mark.skipif(not hasattr(os, "unshare"), reason="needs Python 3.12")
def test_a_user_namespace_can_be_created_after_operators(bench: Bench) -> None:
    assert bench.run("-c", UNSHARE_AFTER_OPERATORS).stdout == "1\n"


# os.listdir has the calling convention of os.unshare, and tells how many threads there are.
ALONE = f"""{UNTIL}
import os
import numpy, opscope
from opscope._native import lib
def threads():
    with os.scandir("/proc/self/task") as found: return len(list(found))
def work():
    with opscope.record_function("x"): pass
alone = threads()
until(lambda: threads() > alone, "the window thread runs", work)
before = os.listdir, repr(os.listdir)
for _ in range(2):
    assert lib.opscope_interpreter_call_alone(id(os.listdir), 1) == 0
assert (os.listdir, repr(os.listdir)) == before
for _ in range(200):
    assert len(os.listdir("/proc/self/task")) == alone
    assert len(os.listdir(path="/proc/self/task")) == alone
    try: os.listdir("/nothing")
    except FileNotFoundError: pass
    else: raise AssertionError
    until(lambda: threads() > alone, "the window thread runs again")
print("done")
"""


@pytest.mark.skipif(hasattr(os, "unshare"), reason="os.unshare has the place from Python 3.12 on")
def test_a_builtin_of_python_runs_without_the_window_thread(bench: Bench) -> None:
    done = bench.run("-c", ALONE)
    assert (done.stderr, done.stdout) == ("", "done\n")


def test_numpy_without_an_operator_of_the_program_has_no_thread_of_ours(bench: Bench) -> None:
    code = UNSHARE.replace("{before}", "import numpy, opscope\nnumpy.zeros(3)")
    bare = bench.run("-c", code, observed=False, stub=False, OPENBLAS_NUM_THREADS="1")
    observed = bench.run("-c", code, stub=False, OPENBLAS_NUM_THREADS="1")
    assert observed.stdout == bare.stdout != ""
