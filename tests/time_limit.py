"""A limit for each test: one that hangs fails, and its programs end, so that the others can run.

A pytest plugin. Most tests that hang wait for a program, without a limit or in the `__exit__` of
its `Popen`. An exception alone does not end such a wait, so the limit also kills the programs.
"""

import faulthandler
import os
import signal
import sys
from collections.abc import Generator
from pathlib import Path
from types import FrameType

import pytest

LIMIT_S = float(os.environ.get("OPSCOPE_TEST_LIMIT_S", "480"))


def descendants(of: int) -> list[int]:
    """The processes below one, parents first. Those whose parent has ended are missing."""
    parents: dict[int, int] = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            # The name in parentheses may contain anything, also parentheses.
            fields = (process / "stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(process.name)] = int(fields[1])
    found = [of]
    for pid in found:
        found += sorted(child for child, parent in parents.items() if parent == pid)
    return found[1:]


def end_the_test(_signal: int, _frame: "FrameType | None") -> None:
    """Prints all stacks, kills every program below this process, and fails the test that runs."""
    faulthandler.dump_traceback(sys.__stderr__ or sys.stderr)
    for pid in descendants(os.getpid()):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    pytest.fail(f"the test did not end within {LIMIT_S:g} s")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, bool, bool]:
    """Sets the timer before a test's fixtures and stops it after them.

    A test that uses SIGALRM itself has no limit from then on.
    """
    signal.signal(signal.SIGALRM, end_the_test)
    signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
