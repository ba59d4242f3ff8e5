"""Processes of multiprocessing inherit labels, with every start method."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from opscope.record import children
from tests.record.programs import run_python

METHODS = ["fork", "spawn", "forkserver"]

PROGRAM = """
import multiprocessing, os, sys, threading
import opscope

def show(queue):
    queue.put(sorted(opscope.get_debug_info().items()))

class Own(multiprocessing.get_context(sys.argv[1]).Process):
    def __init__(self, queue):
        super().__init__()
        self.queue = queue
    def run(self):
        show(self.queue)

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    queue = context.SimpleQueue()
    def run(process):
        process.start()
        print(queue.get())
        process.join()
    with opscope.debug_info(model_id="a", **{"x.y": "z"}):
        run(context.Process(target=show, args=(queue,)))
        process = Own(queue)
        run(process)
        print("_opscope_luggage" in vars(process))
        with opscope.debug_info(model_id="b"):
            with context.Pool(1) as pool:
                print(sorted(pool.apply(opscope.get_debug_info).items()))
        with opscope.debug_info(model_id=None, inherited=None):
            run(context.Process(target=show, args=(queue,)))
        # Labels are a thread's.
        thread = threading.Thread(target=run, args=(context.Process(target=show, args=(queue,)),))
        thread.start()
        thread.join()
    with opscope.debug_info(inherited=None):
        run(context.Process(target=show, args=(queue,)))
"""


@pytest.mark.parametrize("method", METHODS)
def test_a_child_has_the_labels_of_the_thread_that_starts_it(method: str, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script), method],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=os.environ | {"OPSCOPE_DEBUG_INFO": "inherited=1"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    both = "[('inherited', '1'), ('model_id', 'a'), ('x.y', 'z')]"
    inner = "[('inherited', '1'), ('model_id', 'b'), ('x.y', 'z')]"
    masked, none = "[('x.y', 'z')]", "[('inherited', '1')]"
    assert done.stdout.splitlines() == [both, both, "False", inner, masked, none, "[]"]


def test_multiprocessing_is_not_imported_for_it() -> None:
    done = run_python(
        "import sys, opscope\n"
        "with opscope.debug_info(a=1): pass\n"
        "print('multiprocessing' in sys.modules)"
    )
    assert done.stdout == "False\n"


def test_luggage_is_unpacked_by_being_unpickled() -> None:
    unpacked: list[int] = []
    _receiver.append(unpacked)
    luggage = children._Luggage([(_receive, (1,)), (_receive, (2,))])
    assert pickle.loads(pickle.dumps(luggage)) is None
    assert unpacked == [1, 2]


_receiver: list[list[int]] = []


def _receive(number: int) -> None:
    _receiver[-1].append(number)


def test_left_behind_tasks_are_not_asked_for() -> None:
    def ask() -> None:
        raise AssertionError

    children.take_along(ask)
    children.take_along(ask)
    children.leave_behind(ask)
    children.leave_behind(ask)
    assert ask not in children._askers
