"""The cost cases of `bench truth`: their arithmetic, and what a process measures for them."""

from __future__ import annotations

import time
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from opscope.bench.truth import cost
from opscope.bench.truth.observed import output
from opscope.bench.truth.programs import Done


def test_the_centre_bears_outliers() -> None:
    values = [9.0, 10.0, 11.0, 10.0, 9.5, 10.5, 1e6]
    assert cost.center(values).value == pytest.approx(10.0, abs=0.5)
    assert cost.center([3.0]) == (3.0, 3.0, 3.0)
    with pytest.raises(ValueError, match="no values"):
        cost.center([])


def test_the_interval_of_the_centre_is_honest() -> None:
    random = Random(1)
    runs = 1000
    within = 0
    for _ in range(runs):
        found = cost.center([random.gauss(5.0, 2.0) for _ in range(20)])
        within += found.low <= 5.0 <= found.high
    # 0.95, within four standard deviations of such a share.
    assert abs(within / runs - 0.95) < 4 * (0.95 * 0.05 / runs) ** 0.5


def test_drift_is_no_difference() -> None:
    drifting = [(100.0 + 2 * i, 100.0 + 2 * i + 1 + 7) for i in range(9)]
    assert cost._differences(drifting) == [7.0] * 8


def test_many_differences_are_averaged_in_groups() -> None:
    assert cost._grouped([1.0, 2.0]) == [1.0, 2.0]
    many = [float(i) for i in range(2 * cost._MOST_VALUES + 1)]
    found = cost._grouped(many)
    assert len(found) == 667
    assert found[:2] == [1.0, 4.0]


def test_windows_open_in_one_stretch_of_each_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, periods_ms, seen, windows = [0], [0.0], [], [7]

    def drive(seconds: float) -> Done:
        seen.append(periods_ms[-1])
        clock[0] += 750_000
        if periods_ms[-1] == 8.0:
            clock[0] += 150_000
            windows[0] += 2
        return Done(1, 0.00075)

    class Recorder:
        @staticmethod
        def set_sampling(sampling: float, *, window_ms: float, period_ms: float) -> None:
            periods_ms.append(period_ms)

        @staticmethod
        def status() -> Any:
            return SimpleNamespace(window_count=windows[0])

    costs = iter([cost._LoopCost(1000.0, 3.0), cost._LoopCost(101_000.0, 2.0)])
    monkeypatch.setattr(cost, "recorder", Recorder)
    monkeypatch.setattr(cost, "_loop_cost", lambda: next(costs))
    monkeypatch.setattr(time, "thread_time_ns", lambda: clock[0])
    monkeypatch.setattr(time, "monotonic", lambda: clock[0] * 1e-9)
    toggled = cost._toggle(drive, 4, 0.013)
    assert toggled.pairs == [(3_000_000.0, 3_600_000.0)] * 2
    assert seen[:16] == ([1e8] * 4 + [8.0] * 4) * 2
    assert toggled.windows == 16
    # What ranges have cost in loops meanwhile, as much dearer as is known in the end.
    assert toggled.stated_ns == 200_000.0


def test_a_process_measures_and_states_the_cost_of_its_windows() -> None:
    toggled = cost._read(output(cost._CODE, "numpy_small", 0.2, cost._NO_LIMIT))
    assert len(toggled.pairs) >= 2
    assert all(off > 0 and on > 0 for off, on in toggled.pairs)
    assert toggled.windows > 0
    # A window of 2 ms records a thousand ranges here, of at least some nanoseconds.
    assert 1e3 < toggled.stated_ns / toggled.windows < 1e7
