"""The bench of PyTorch finds known costs: its steps take a given time.

No clock is read and PyTorch is not called: a step moves a clock of its own.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from statistics import median
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.profiler import ProfilerActivity

from opscope.bench import median_interval
from opscope.bench import torch as bench

STEP_NS = 200_000


class Machine:
    """A clock on which a step takes STEP_NS times a factor, sometimes with a disturbance."""

    def __init__(self, *, attached: float = 1.0, window: float = 1.0, opening_ns: int = 0) -> None:
        self.process_ns = 0
        self.thread_ns = 0
        self.others_ns = self.windows_ns = 0
        """Of other threads of the process, at each step while attached: of one that also works, and
        of the window thread."""
        self.windows_thread_ns = 0
        self._factors = {"attached": attached, "window": window}
        self._opening_ns = opening_ns
        self._in_force: list[str] = []
        self._random = Random(7)

    def step(self) -> None:
        ns = float(STEP_NS)
        for name in self._in_force:
            ns *= self._factors[name]
        if self._random.random() < 0.05:
            ns += self._random.expovariate(1 / STEP_NS)
        self.thread_ns += round(ns)
        self.process_ns += round(ns)
        if "attached" in self._in_force:
            self.process_ns += self.others_ns + self.windows_ns
            self.windows_thread_ns += self.windows_ns

    @contextmanager
    def attached(self) -> Iterator[None]:
        self._in_force.append("attached")
        yield
        self._in_force.remove("attached")

    def begin(self, weight: float) -> None:
        assert weight == 1.0
        self.process_ns += self._opening_ns
        self._in_force.append("window")

    def end(self) -> None:
        self._in_force.remove("window")


def _on(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(bench, "process_time_ns", lambda: machine.process_ns)
    monkeypatch.setattr(bench, "thread_time_ns", lambda: machine.thread_ns)
    monkeypatch.setattr(bench, "_windows_thread_ns", lambda: machine.windows_thread_ns)
    lib = SimpleNamespace(
        opscope_recorder_window_begin=machine.begin, opscope_recorder_window_end=machine.end
    )
    monkeypatch.setattr(bench, "lib", lib)
    return machine


@pytest.mark.parametrize("factor", [1.0, 1.01, 0.99])
def test_the_cost_of_each_step_outside_of_windows_is_found(
    factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = _on(Machine(attached=factor), monkeypatch)
    ratios = bench._outside(machine.step, machine.attached, 200)
    assert len(ratios) == 200
    assert median(ratios) == pytest.approx(factor, abs=1e-4)


@pytest.mark.parametrize(("factor", "opening_ns"), [(1.0, 0), (1.25, 0), (1.0, 50_000)])
def test_the_cost_of_a_window_is_spread_over_its_period(
    factor: float, opening_ns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = _on(Machine(window=factor, opening_ns=opening_ns), monkeypatch)
    ratios = bench._windows(machine.step, machine.attached, 1000, 2.0, 250.0)
    dearer_ns = 2e6 * (factor - 1) + opening_ns
    # Disturbed steps are longer, so a window has fewer of them.
    assert (median(ratios) - 1) * 250e6 == pytest.approx(dearer_ns, rel=0.1, abs=5_000)


def test_the_time_of_the_windows_thread_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = _on(Machine(), monkeypatch)
    assert bench._thread_shares(machine.step, machine.attached, 2) == [1.0, 1.0]
    machine.windows_ns = STEP_NS // 100
    for share in bench._thread_shares(machine.step, machine.attached, 3):
        assert 1.009 < share <= 1.01  # disturbed steps are longer
    machine.others_ns = STEP_NS  # autograd has a thread for each GPU
    for share in bench._thread_shares(machine.step, machine.attached, 3):
        assert 1.0045 < share <= 1.005


def profile_of_2_4(*, activities: list[ProfilerActivity]) -> dict[str, Any]:
    return {"activities": activities}


def profile_since_2_5(
    *, activities: list[ProfilerActivity], acc_events: bool = False
) -> dict[str, Any]:
    return {"activities": activities, "acc_events": acc_events}


@pytest.mark.parametrize(
    ("profile", "keeps"), [(profile_of_2_4, {}), (profile_since_2_5, {"acc_events": True})]
)
def test_the_profiler_keeps_its_events_in_every_pytorch(
    profile: Callable[..., Any], keeps: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KINETO_LOG_LEVEL", "99")
    monkeypatch.setattr(torch.profiler, "profile", profile)
    asked: Any = bench._profiled()
    assert asked == {"activities": [ProfilerActivity.CPU], **keeps}


def test_a_case_is_its_parts_together() -> None:
    outside = [1.0 + 0.0001 * (i - 50) for i in range(101)]
    windows = [1.002 + 0.0002 * (i - 50) for i in range(101)]
    thread = [1.0003 + 0.0001 * (i - 4) for i in range(9)]
    results = list(bench._whole("some", outside, windows, thread))
    assert [result.case for result in results] == ["some", "some_outside", "some_by_window"]
    assert [result.bound for result in results] == [1.005, None, None]
    assert [result.value for result in results] == pytest.approx([1.0023, 1.0, 1.0023])
    case, first, second = [
        result.interval[1] - result.interval[0] for result in results if result.interval
    ]
    assert case == pytest.approx((first**2 + second**2) ** 0.5)
    assert second > median_interval(windows)[1] - median_interval(windows)[0]
