"""Callbacks, threads and tasks at interpreter exit and at forks: silent and correct."""

import pytest

from tests.record.programs import output_of
from tests.waiting import UNTIL

NOTING = f"""{UNTIL}
import os, sys, threading, opscope
started, ended = [], []
opscope.add_global_callback(lambda fn: started.append(fn.name), lambda fn, _: ended.append(fn.name))
opscope.add_thread_local_callback(lambda fn: started.append(fn.name))
"""

BUSY_THREADS = """
def work():
    while True:
        with opscope.record_function("outer"):
            with opscope.record_function("inner"): pass
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
until(lambda: len(ended) >= 100, "100 ranges")
"""


def test_the_interpreter_ends_quietly_with_callbacks_registered() -> None:
    assert output_of(NOTING + "with opscope.record_function('x'): print('ran')") == ["ran"]


def test_the_interpreter_ends_quietly_within_an_open_range() -> None:
    code = "opscope.record_function('x').__enter__(); sys.exit(0)"
    assert output_of(NOTING + code) == []


@pytest.mark.parametrize("attempt", range(5))
def test_the_interpreter_ends_quietly_while_threads_open_ranges(attempt: int) -> None:
    assert output_of(NOTING + BUSY_THREADS) == []


@pytest.mark.parametrize("attempt", range(5))
def test_the_interpreter_ends_quietly_while_tasks_run_and_wait_their_turn(attempt: int) -> None:
    code = """
def spin():
    while True:
        with opscope.record_function("x"): pass
futures = [opscope.fork(spin) for _ in range(50)]
until(lambda: len(ended) >= 100, "100 ranges")
"""
    assert output_of(NOTING + code) == []


def test_ranges_opened_by_later_exit_functions_do_no_harm() -> None:
    code = """
import atexit
def at_exit():
    with opscope.record_function("at exit"): print("ran")
atexit.register(at_exit)
"""
    assert output_of("import atexit\n" + NOTING + code) == ["ran"]
    early = "import atexit\nlater = []\natexit.register(lambda: [f() for f in later])\n"
    assert output_of(early + NOTING + code.replace("atexit.register(", "later.append(")) == ["ran"]


def test_after_a_fork_both_processes_call_their_callbacks() -> None:
    code = """
with opscope.record_function("before"): pass
child = os.fork()
with opscope.record_function("after"): pass
if child: os.waitpid(child, 0)
print(started.count("before"), started.count("after"), ended.count("after"))
"""
    assert output_of(NOTING + code) == ["2 2 1", "2 2 1"]


def test_a_range_open_at_the_fork_ends_in_both_processes() -> None:
    code = """
with opscope.record_function("x"):
    child = os.fork()
if child: os.waitpid(child, 0)
print(ended)
"""
    assert output_of(NOTING + code) == ["['x']", "['x']"]


def test_forks_while_other_threads_open_ranges_and_change_callbacks() -> None:
    code = """
def change():
    while True: opscope.remove_callback(opscope.add_global_callback())
threading.Thread(target=change, daemon=True).start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        started, ended = [], []  # without the GIL, a thread may have locked the old ones
        with opscope.record_function("child"): pass
        handle = opscope.add_global_callback()
        opscope.remove_callback(handle, wait=True)
        os._exit(0 if ended[-1] == "child" else 1)
    print(os.waitpid(child, 0)[1])
"""
    # Python itself warns of forks beside threads, from 3.12 on.
    assert output_of(NOTING + BUSY_THREADS + code, None, "-W", "ignore") == ["0"] * 20


def test_the_child_of_a_fork_draws_another_sampling_sequence() -> None:
    code = """
import os, opscope
fired, turn = [], 0
opscope.add_global_callback(lambda fn: fired.append(turn), sampling_prob=0.1)
def draw():
    global turn
    for turn in range(500):
        with opscope.record_function("x"): pass
    print(fired, flush=True)
for _ in range(3):
    child = os.fork()
    if child == 0:
        draw()
        os._exit(0)
    os.waitpid(child, 0)
draw()
"""
    drawn = output_of(code)
    assert len(drawn) == len(set(drawn)) == 4


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing_works_with_callbacks_registered(method: str) -> None:
    code = f"""
import multiprocessing
if __name__ == "__main__":
    context = multiprocessing.get_context({method!r})
    with opscope.record_function("x"), context.Pool(2) as pool:
        print(pool.map(abs, [-1, -2, -3]))
        pool.close(); pool.join()
"""
    assert output_of(NOTING + code, None, "-W", "ignore") == ["[1, 2, 3]"]
