"""Many threads open ranges while others change the callbacks: exact counts, own labels.

Without the GIL they run at one time (`make test-free-threaded`); with it they take turns.
"""

import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import opscope
from opscope.record import recorder
from tests.recorded import recorded_calls

THREADS = 6


def in_threads(work: Callable[[int], None], count: int = THREADS) -> list[threading.Thread]:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    return threads


CHANGES = 40


def while_callbacks_change(work: Callable[[int], None]) -> list[int]:
    """Calls work(number) on THREADS threads, again and again, until callbacks have been added,
    disabled, enabled and removed CHANGES times; how often on each thread."""
    turns = [0] * THREADS
    is_over = False

    def repeat(number: int) -> None:
        while not is_over:
            work(number)
            turns[number] += 1

    threads = in_threads(repeat)
    try:
        for change in range(CHANGES):
            handle = opscope.add_global_callback(lambda fn: None, sampling_prob=0.5)
            opscope.disable_callback(handle)
            opscope.enable_callback(handle)
            opscope.remove_callback(handle, wait=change % 2 == 0)
    finally:
        is_over = True
        for thread in threads:
            thread.join()
    return turns


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Callable[[], dict[str, int]]]:
    """Every range is recorded; the function stops the recorder and returns the calls by name."""
    recorder.start(str(tmp_path), sampling=1.0)

    def calls() -> dict[str, int]:
        recorder.stop()
        return recorded_calls(tmp_path)

    yield calls
    if recorder.status().running:
        recorder.stop(discard=True)


def test_the_recorder_and_a_callback_see_each_range_of_each_thread(
    recorded: Callable[[], dict[str, int]],
) -> None:
    seen: list[str] = []
    opscope.add_global_callback(lambda fn: seen.append(fn.name))

    def work(number: int) -> None:
        with opscope.record_function("shared"), opscope.record_function(f"own {number}"):
            pass

    turns = while_callbacks_change(work)
    wanted = {"shared": sum(turns)} | {f"own {number}": turns[number] for number in range(THREADS)}
    assert min(turns) > 0
    assert Counter(seen) == wanted  # first: reading a segment calls NumPy, which may be attached
    assert recorded() == wanted


def test_threads_that_come_and_go_lose_no_range(recorded: Callable[[], dict[str, int]]) -> None:
    def work(number: int) -> None:
        for _ in range(10):
            with opscope.record_function("short"):
                pass

    for _ in range(20):
        for thread in in_threads(work):
            thread.join()
    assert recorded() == {"short": 20 * THREADS * 10}


def test_labels_and_local_callbacks_belong_to_their_thread() -> None:
    wrong: list[object] = []
    local = [0] * THREADS
    has_local = [False] * THREADS

    def check(fn: opscope.RecordFunction) -> None:
        if fn.debug_info != {"number": fn.name}:
            wrong.append((fn.name, fn.debug_info))

    def work(number: int) -> None:
        def count(fn: opscope.RecordFunction) -> None:
            local[number] += 1

        if not has_local[number]:
            has_local[number] = True
            opscope.add_thread_local_callback(count)
        with opscope.debug_info(number=number), opscope.record_function(str(number)):
            pass

    opscope.add_global_callback(check)
    turns = while_callbacks_change(work)
    assert wrong == []
    assert local == turns


def test_no_thread_is_in_a_callback_after_a_remove_that_waits() -> None:
    late: list[str] = []
    is_over = False

    def work(number: int) -> None:
        while not is_over:
            with opscope.record_function("x"):
                pass

    threads = in_threads(work)
    try:
        for _ in range(30):
            removed: list[bool] = []
            called = threading.Event()

            def start(
                fn: opscope.RecordFunction,
                removed: list[bool] = removed,
                called: threading.Event = called,
            ) -> None:
                called.set()
                if removed:
                    late.append(fn.name)

            def end(
                fn: opscope.RecordFunction, context: object, removed: list[bool] = removed
            ) -> None:
                if removed:
                    late.append(fn.name)

            handle = opscope.add_global_callback(start, end)
            called.wait()
            opscope.remove_callback(handle, wait=True)
            removed.append(True)
    finally:
        is_over = True
        for thread in threads:
            thread.join()
    assert late == []


FIRST_USES = """
import asyncio, subprocess, sys, threading
import multiprocessing.process
import opscope

start = threading.Barrier(8)
wrong = []

async def labelled():
    with opscope.debug_info(a=1):
        await asyncio.sleep(0)
        return opscope.get_debug_info("a")

def work():
    start.wait()
    opscope.log_api_usage_once("first.use")
    if asyncio.run(labelled()) != "1":
        wrong.append(1)

threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not wrong

def depth(function):
    found = 0
    while hasattr(function, "__wrapped__"):
        function, found = function.__wrapped__, found + 1
    return found

from asyncio.events import Handle
hooks = (subprocess.Popen.__init__, multiprocessing.process.BaseProcess.start, Handle._run,
         asyncio.base_events.BaseEventLoop.run_in_executor)
assert [depth(hook) for hook in hooks] == [1] * 4, [depth(hook) for hook in hooks]
if hasattr(sys, "_is_gil_enabled"):
    assert sys._is_gil_enabled() == ("t" not in sys.abiflags)
"""


@pytest.mark.parametrize("turn", range(3))
def test_what_first_uses_set_up_is_set_up_once(turn: int) -> None:
    done = subprocess.run([sys.executable, "-c", FIRST_USES], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
