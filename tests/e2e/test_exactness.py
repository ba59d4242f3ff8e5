"""The agent's page equals what a whole program did, range by range.

Every program here is an ordinary one, observed with p=1 by `opscope run`; other means than Opscope
count what it did.
"""

import json
import mmap
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.observed_host import ObservedHost

DIGITS = Path(__file__).parents[2] / "agent" / "opscope" / "demo_digits.py"

THREADS_AND_FORKS = """
import os, threading
import numpy as np

a = b = np.ones(10)

def work(count):
    for _ in range(count):
        np.add(a, b)

def in_threads(count):
    for _ in range(2):
        threads = [threading.Thread(target=work, args=(count,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

in_threads(500)
children = []
for _ in range(3):
    child = os.fork()
    if child == 0:
        in_threads(200)
        work(100)
        os._exit(0)
    children.append(child)
work(50)
for child in children:
    os.waitpid(child, 0)
"""
ADDED = 2 * 4 * 500 + 3 * (2 * 4 * 200 + 100) + 50

# Counts each call, once it has returned, in memory that outlives the process.
COUNTING = """
import mmap, os, sys
import numpy as np

a = b = np.ones(10)
with open(sys.argv[1], "r+b") as file:
    count = memoryview(mmap.mmap(file.fileno(), 8)).cast("Q")
while True:
    np.add(a, b)
    count[0] += 1
    if count[0] == int(sys.argv[2]):
        os.write(1, b".")
"""

# Seven steps of relu's backward, whose node calls an operator of a similar name.
STEPS_BACK = """
from opscope import tensor as ot

x = ot.tensor([1.0, -2.0], requires_grad=True)
for _ in range(7):
    x.relu().sum().backward()
"""

# Runs a program and prints, by name, the calls of ndarray's methods that the interpreter saw.
PROFILED = """
import collections, json, runpy, sys
import numpy

calls = collections.Counter()

def count(frame, event, function):
    if event == "c_call" and isinstance(getattr(function, "__self__", None), numpy.ndarray):
        calls[function.__name__] += 1

sys.argv[:] = sys.argv[1:]
sys.setprofile(count)
runpy.run_path(sys.argv[0], run_name="__main__")
sys.setprofile(None)
print(json.dumps(calls))
"""

# Functions that only Python code calls in a training, and those recorded under another name.
METHODS_OF_PYTHON = ("argmax", "argsort", "flatten", "nonzero", "searchsorted", "sort", "take")
METHODS_BY_OPERATOR = {
    "astype": "numpy::ndarray.astype",
    "copy": "numpy::ndarray.copy",
    "max": "numpy::maximum.reduce",
    "sum": "numpy::add.reduce",
}


def test_calls_are_exact_over_threads_and_forks(host: ObservedHost) -> None:
    host.run(sys.executable, "-c", THREADS_AND_FORKS)
    assert host.calls()["numpy::add"] == ADDED


@pytest.mark.parametrize("seed", range(3))
def test_a_killed_program_loses_at_most_the_range_in_flight(
    host: ObservedHost, tmp_path: Path, seed: int
) -> None:
    counter = tmp_path / "counter"
    counter.write_bytes(bytes(8))
    moment = random.Random(seed).randrange(1, 20_000)
    arguments = (sys.executable, "-c", COUNTING, str(counter), str(moment))
    with host.start(*arguments, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        assert program.stdout.read(1) == b"."
        program.kill()
    with counter.open("r+b") as file, mmap.mmap(file.fileno(), 8) as memory:
        counted = int.from_bytes(memory[:], sys.byteorder)
    assert counted >= moment
    # The extra range had ended, but the program had not yet counted it.
    assert host.calls()["numpy::add"] in (counted, counted + 1)


@pytest.mark.slow
def test_a_scikit_learn_training_is_seen_operator_by_operator(host: ObservedHost) -> None:
    profiled = subprocess.run(
        [sys.executable, "-c", PROFILED, str(DIGITS), "1"],
        env=host.environ,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    ).stdout.splitlines()
    counted = json.loads(profiled[-1])
    observed = host.run(sys.executable, str(DIGITS), "1")
    assert observed.splitlines() == profiled[:-1]
    calls = host.calls()
    for method in METHODS_OF_PYTHON:
        assert calls[f"numpy::ndarray.{method}"] == counted[method], method
    for method, operator in METHODS_BY_OPERATOR.items():
        # C code, which the interpreter does not see, calls these too.
        assert calls[operator] >= counted[method] > 0, method
    assert calls["numpy::matmul"] > 0


def test_a_node_of_backward_and_the_operator_it_calls_are_rows_of_their_own(
    host: ObservedHost,
) -> None:
    host.run(sys.executable, "-c", STEPS_BACK)
    calls = host.calls()
    assert calls["core::relu"] == calls["core::ReluBackward"] == calls["core::relu_backward"] == 7
    rows = {
        sample.labels["op"]: (sample.labels["framework"], sample.labels["phase"])
        for sample in host.samples()
        if sample.name == "opscope_op_duration_seconds_count"
    }
    assert rows["core::relu"] == ("opscope", "forward")
    assert rows["core::ReluBackward"] == rows["core::relu_backward"] == ("opscope", "backward")
