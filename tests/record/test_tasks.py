"""fork and wait: results, errors, state, depth, forks of the process, Ctrl-C."""

import gc
import sys
import threading
import traceback
import weakref

import pytest

import opscope
from opscope import fork, wait
from tests.record.programs import output_of

HAS_NO_GIL = "t" in sys.abiflags


def test_wait_returns_the_tasks_result() -> None:
    future = fork(divmod, 7, 2)
    assert wait(future) == (3, 1)
    assert future.wait() == (3, 1)
    assert future.done()


def test_keyword_arguments_come_through() -> None:
    assert wait(fork(sorted, [1, 3, 2], reverse=True)) == [3, 2, 1]


@pytest.mark.parametrize("error", [KeyError, SystemExit, KeyboardInterrupt, StopIteration])
def test_wait_raises_the_tasks_exception(error: type[BaseException]) -> None:
    def fail() -> None:
        raise error("from a task")

    future = fork(fail)
    for _ in range(2):
        with pytest.raises(error) as caught:
            wait(future)
        assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "fail"
    assert future.done()


def test_tasks_run_on_other_threads_while_this_one_works() -> None:
    ready = threading.Event()
    assert fork(ready.set) is not None
    assert ready.wait(30)


def test_done_tells_whether_the_task_has_ended() -> None:
    may_end = threading.Event()
    begun = threading.Event()

    def task() -> bool:
        begun.set()
        return may_end.wait(30)

    future = fork(task)
    assert begun.wait(30)
    assert not future.done()
    may_end.set()
    assert wait(future)
    assert future.done()


def test_tasks_fork_and_wait_to_any_depth() -> None:
    def fibonacci(n: int) -> int:
        if n < 2:
            return n
        left, right = fork(fibonacci, n - 1), fork(fibonacci, n - 2)
        return wait(left) + wait(right)

    assert fibonacci(10) == 55


def test_many_threads_may_wait_for_one_task() -> None:
    may_end = threading.Event()
    future = fork(may_end.wait, 30)
    results: list[bool] = []
    threads = [threading.Thread(target=lambda: results.append(wait(future))) for _ in range(5)]
    for thread in threads:
        thread.start()
    may_end.set()
    for thread in threads:
        thread.join()
    assert results == [True] * 5


def test_a_task_has_the_local_callbacks_and_the_switch_of_its_forker() -> None:
    names: list[str] = []
    opscope.add_thread_local_callback(lambda fn: names.append(fn.name))

    def task(name: str) -> None:
        with opscope.record_function(name):
            pass

    with opscope.recording(False):
        silent = fork(task, "silent")
    loud = fork(task, "loud")
    wait(silent)
    wait(loud)
    assert names == ["loud"]


def test_a_local_callback_removed_after_the_fork_is_still_the_tasks() -> None:
    names: list[str] = []
    may_run = threading.Event()
    handle = opscope.add_thread_local_callback(lambda fn: names.append(fn.name))

    def task() -> None:
        may_run.wait(30)
        with opscope.record_function("task"):
            pass

    future = fork(task)
    opscope.remove_callback(handle)
    may_run.set()
    wait(future)
    assert names == ["task"]


def test_results_errors_and_arguments_are_let_go_of_with_the_future() -> None:
    class Thing:
        pass

    def keep(thing: Thing) -> Thing:
        return thing

    def fail(thing: Thing) -> None:
        raise KeyError

    thing = Thing()
    watched = weakref.ref(thing)
    gc.disable()
    try:
        future: opscope.Future[object] = fork(keep, thing)
        wait(future)
        future = fork(fail, thing)
        with pytest.raises(KeyError):
            wait(future)
        del future, thing
        for _ in range(10_000):  # the task's thread may still be leaving it
            if watched() is None:
                break
            if HAS_NO_GIL:
                # What a thread made is freed when that thread runs Python the next time.
                fork(int)
            threading.Event().wait(0.001)
        assert watched() is None
    finally:
        gc.enable()


def test_an_unawaited_future_is_no_error() -> None:
    ran = threading.Event()
    fork(ran.set)
    assert ran.wait(30)


def test_in_a_forked_child_an_unfinished_task_is_lost_and_a_finished_one_is_not() -> None:
    code = """
import os, threading, opscope
begun, may_end = threading.Event(), threading.Event()
def task(): begun.set(); may_end.wait(30); return "unfinished"
finished = opscope.fork(str, "finished")
opscope.wait(finished)
unfinished = opscope.fork(task)
begun.wait(30)
child = os.fork()
if child == 0:
    print(opscope.wait(finished), flush=True)
    try: opscope.wait(unfinished)
    except opscope.TaskLostError as error: print(error, flush=True)
    print(opscope.wait(opscope.fork(str, "new")), flush=True)
    os._exit(0)
os.waitpid(child, 0)
may_end.set()
print(opscope.wait(unfinished))
"""
    assert output_of(code, None, "-W", "ignore") == [
        "finished",
        "the task belongs to the process this one was forked from",
        "new",
        "unfinished",
    ]


def test_waiting_for_a_task_at_exit_is_an_error_and_no_hang() -> None:
    code = """
import atexit
later = []
atexit.register(lambda: [function() for function in later])
import opscope
from opscope._native import lib
lib.opscope_pool_set_threads(1)
opscope.wait(opscope.fork(str))
def at_exit():
    try: print(opscope.wait(opscope.fork(str, "ran")))
    except opscope.TaskLostError as error: print(error)
later.append(at_exit)
"""
    assert output_of(code) == ["the interpreter is shutting down and starts no more tasks"]


def test_waiting_at_exit_ends_also_for_a_task_that_another_thread_takes() -> None:
    """Of so many tasks, the pool's thread has taken some, without running them, when the wait
    begins."""
    code = """
import atexit
later = []
atexit.register(lambda: [function() for function in later])
import opscope
from opscope._native import lib
lib.opscope_pool_set_threads(1)
opscope.wait(opscope.fork(str))
def is_lost():
    try: opscope.wait(opscope.fork(str))
    except opscope.TaskLostError: return True
    return False
later.append(lambda: print(all(is_lost() for _ in range(10_000))))
"""
    assert output_of(code) == ["True"]


def test_ctrl_c_ends_a_wait_and_not_the_task() -> None:
    code = """
import os, signal, sys, threading, opscope
signal.signal(signal.SIGINT, signal.default_int_handler)
main, begun, may_end = threading.get_ident(), threading.Event(), threading.Event()
def place():
    frame = sys._current_frames()[main]
    return frame.f_code.co_name, frame.f_lasti
def task():
    begun.set()
    before = None
    while place()[0] != "wait" or place() != before:  # until the main thread stands within wait
        before = place()
        may_end.wait(0.01)
    os.kill(os.getpid(), signal.SIGINT)
    return may_end.wait(20)
future = opscope.fork(task)
begun.wait(30)
try: opscope.wait(future)
except KeyboardInterrupt: print("interrupted", future.done())
may_end.set()
print(opscope.wait(future))
"""
    assert output_of(code) == ["interrupted False", "True"]
