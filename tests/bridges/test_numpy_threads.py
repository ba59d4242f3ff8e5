"""Threads call NumPy while the bridge attaches, detaches and counts: right results, exact counts.

Without the GIL they run at one time (`make test-free-threaded`); with it they take turns.
"""

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np

import opscope
from opscope.bridges import numpy as bridge
from opscope.record import recorder
from tests.recorded import recorded_calls

THREADS = 6
ROUNDS = 500
OPERATORS = (
    "numpy::add",
    "numpy::add.reduce",
    "numpy::ndarray.argmax",
    "numpy::dot",
    "numpy::getitem_advanced",
    "numpy::setitem_advanced",
)


def use_every_pointer(x: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> bool:
    """Calls each of OPERATORS once; whether all results are right. `x` is 0 to 9."""
    x[[0]] = 0.0
    return bool(
        np.add(x, x)[9] == 18.0
        and np.add.reduce(x) == 45.0
        and x.argmax() == 9
        and np.dot(x, x) == 285.0
        and x[[1, 2]][1] == 2.0
    )


def in_threads(work: Callable[[int], None]) -> list[threading.Thread]:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    return threads


def test_threads_get_their_results_while_the_bridge_comes_and_goes() -> None:
    rounds, wrong = [0] * THREADS, list[object]()
    is_over = False

    def work(number: int) -> None:
        x = np.arange(10.0)
        try:
            while not is_over:
                if not use_every_pointer(x):
                    wrong.append(x)
                rounds[number] += 1
        except Exception as error:
            wrong.append(error)

    threads = in_threads(work)
    try:
        for _ in range(10):
            before = list(rounds)
            bridge.attach()
            assert bridge.status().missed == {}
            bridge.detach()
            # Each turn meets every thread at work.
            while not wrong and any(now == was for now, was in zip(rounds, before, strict=True)):
                pass
    finally:
        is_over = True
        for thread in threads:
            thread.join()
    assert wrong == []
    assert bridge.status().pointers == 0


def test_calls_of_many_threads_are_counted_exactly(tmp_path: Path) -> None:
    bridge.attach()
    recorder.start(str(tmp_path), sampling=1.0)
    wrong = list[int]()

    def work(number: int) -> None:
        x = np.arange(10.0)
        for _ in range(ROUNDS):
            if not use_every_pointer(x):
                wrong.append(number)

    try:
        threads = in_threads(work)
        # Each change sends every thread through its slow path.
        while any(thread.is_alive() for thread in threads):
            handle = opscope.add_global_callback(lambda fn: None, sampling_prob=0.5)
            opscope.remove_callback(handle)
    finally:
        recorder.stop()
        bridge.detach()
    counted = recorded_calls(tmp_path)
    assert wrong == []
    assert {name: counted[name] for name in OPERATORS} == dict.fromkeys(OPERATORS, THREADS * ROUNDS)


FIRST_CALLS = """
import collections, threading
import numpy as np
import opscope
from opscope.bridges import numpy as bridge

bridge.attach()
names = collections.deque()
opscope.add_global_callback(lambda fn: names.append(fn.name))
ufuncs = [np.add, np.multiply, np.maximum, np.minimum, np.logical_or, np.logical_and]
threads, x = 8, np.arange(3.0)
start = threading.Barrier(threads)

def work():
    start.wait()
    for ufunc in ufuncs:
        ufunc.reduce(x)
        ufunc.accumulate(x)

running = [threading.Thread(target=work) for _ in range(threads)]
for thread in running:
    thread.start()
for thread in running:
    thread.join()
counts = collections.Counter(name for name in names if name.count(".") == 1)
wanted = {f"numpy::{u.__name__}.{m}": threads for u in ufuncs for m in ("reduce", "accumulate")}
assert {name: counts[name] for name in wanted} == wanted, counts
assert not [name for name in counts if "ufunc" in name], counts
"""


def test_the_first_calls_of_a_method_by_many_threads_have_its_name() -> None:
    done = subprocess.run([sys.executable, "-c", FIRST_CALLS], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
