"""The programs of the truth bench: their steps are counted and timed, and their runs are read."""

import subprocess
import sys
import time
from importlib import import_module
from typing import Any

import pytest

from opscope.bench.truth import judge, loads
from opscope.bench.truth.observed import EVERY_RANGE, run
from opscope.bench.truth.programs import PROGRAMS, Done, in_turn, with_threads
from opscope.errors import OpscopeError


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_every_program_is_there(program: Any) -> None:
    module, function = program.setup.split(".")
    assert callable(getattr(import_module(f"opscope.bench.truth.programs.{module}"), function))


def test_importing_the_programs_imports_no_framework() -> None:
    script = "import sys; import opscope.bench.truth.programs; print(*sys.modules)"
    said = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout
    assert {"numpy", "torch", "opscope.tensor"}.isdisjoint(said.split())


def test_steps_are_counted_and_timed_without_the_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, cpu_clock = [0.0], [0.0]

    def move(seconds: float) -> None:
        clock[0] += seconds
        cpu_clock[0] += 0.75 * seconds

    programs = import_module("opscope.bench.truth.programs")
    monkeypatch.setattr(programs.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(programs.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(programs._cpu_time, "now_s", lambda: cpu_clock[0])
    drive = in_turn(lambda: move(2.0), lambda: move(3.0))
    assert clock == [6.0]  # three to warm up
    # Each step was stopped for a quarter of its time.
    assert drive(12.0) == Done(3, 6.0, 3 * 0.5**2)
    assert drive(0.0) == Done(1, 2.0, 0.5**2)


def test_the_time_of_steps_with_threads_is_the_cpu_time_of_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, cpu_clock = [0.0], [0.0]

    def step() -> None:
        clock[0] += 2.0
        cpu_clock[0] += 0.5

    programs = import_module("opscope.bench.truth.programs")
    monkeypatch.setattr(programs.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(programs.time, "process_time", lambda: cpu_clock[0])
    drive = with_threads(step)
    assert clock == [6.0]  # three to warm up
    assert drive(5.0) == Done(3, 1.5)
    assert drive(0.0) == Done(1, 0.5)


def test_short_steps_read_the_cpu_time_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, reads = [0.0], [0]

    def cpu_time() -> float:
        reads[0] += 1
        return 0.5 * clock[0]

    def step() -> None:
        clock[0] += 0.001

    programs = import_module("opscope.bench.truth.programs")
    monkeypatch.setattr(programs.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(programs.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(programs._cpu_time, "now_s", cpu_time)
    done = in_turn(step)(1.0)
    assert done.steps == pytest.approx(1000, abs=2)
    assert done.active_s == pytest.approx(1.0, abs=0.002)
    assert reads[0] == pytest.approx(2 * 50, abs=6)
    assert done.stopped_s2 == pytest.approx(50 * 0.01**2, rel=0.1)


def test_the_cpu_time_of_a_program_is_as_the_kernel_last_counted_it() -> None:
    cpu_time = import_module("opscope.bench.truth.programs")._cpu_time
    before, start = cpu_time.now_s(), time.thread_time()
    while time.thread_time() < start + 0.05:
        pass
    spent = cpu_time.now_s() - before
    assert 0.04 <= spent <= time.thread_time() - start + 0.01  # a tick of 10 ms at most


def test_arrays_of_small_operators_begin_at_a_cache_line() -> None:
    arrays = import_module("opscope.bench.truth.programs.arrays")
    made = [arrays._aligned(3, count) for count in range(1, 40)]  # kept, so that each is elsewhere
    assert {array.__array_interface__["data"][0] % 64 for array in made} == {0}
    assert [array.shape for array in made] == [(3, count) for count in range(1, 40)]
    assert all((array == 1.0).all() for array in made)


def test_a_request_counts_as_the_time_that_it_takes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu_clock = [0.0]

    def work() -> None:
        cpu_clock[0] += 0.25

    threads = import_module("opscope.bench.truth.programs.threads")
    monkeypatch.setattr(threads, "_request", lambda: work)
    monkeypatch.setattr(threads.time, "thread_time", lambda: cpu_clock[0])
    done = threads.server()(0.05)
    assert done.steps > 0
    assert done.active_s == 0.25 * done.steps


@pytest.mark.slow
@pytest.mark.parametrize("name", ["numpy_small", "short_processes", "threaded_server"])
def test_a_run_that_records_every_range_is_exact(name: str) -> None:
    with loads.quiet() as load:
        first, second = (run(name, 0.5, load, EVERY_RANGE) for _ in range(2))
    known = judge.truth([(first.done, first.sums)], {}, with_times=False)
    for estimate in judge.estimates(known, second.done, second.sums):
        assert estimate.estimated == pytest.approx(estimate.true), estimate
        assert estimate.standard_error == 0.0


@pytest.mark.slow
def test_children_are_counted_by_the_range_around_them() -> None:
    with loads.quiet() as load:
        observed = run("mlp_train", 0.2, load, EVERY_RANGE, count_children=True)
    steps, children = observed.done.steps, observed.children
    assert children["Optimizer.step#Adam.step"] > 0
    # Of a linear layer: the product, and the transposed weight before it.
    assert children["aten::linear"] == 2 * 2 * steps
    recorded = observed.sums.samples.total()
    assert sum(children.values()) == pytest.approx(recorded, rel=0.01)
    # Under the names that the recorder uses, which have no overload: transpose.int is one.
    assert children["aten::transpose"] > 0
    assert set(children) <= {op for op, _ in observed.sums.samples} | {""}


def test_a_program_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    # Known here, but not in the program's own process.
    monkeypatch.setitem(PROGRAMS, "nonsense", PROGRAMS["numpy_small"])
    with loads.quiet() as load, pytest.raises(OpscopeError, match="KeyError: 'nonsense'"):
        run("nonsense", 0.1, load, {})
