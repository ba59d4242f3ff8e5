"""`bench truth` evaluates known numbers correctly, and its programs and loads work.

tests/e2e/test_truth.py judges the recorder's estimates.
"""

import json
import os
import signal
import subprocess
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from math import erf
from pathlib import Path
from random import Random
from typing import Any

import pytest

from opscope.bench import Effort
from opscope.bench.truth import cases, judge, loads
from opscope.bench.truth.judge import Estimate
from opscope.bench.truth.observed import EVERY_RANGE, Observed, run
from opscope.bench.truth.programs import PROGRAMS, Done
from opscope.bench.truth.segments import Key, Sums

OUTER: Key = ("outer", "forward")
INNER: Key = ("inner", "forward")
DATA: Key = ("load", "data")


def _sums(calls: dict[Key, float], self_s: dict[Key, float], overhead_ns: int = 0) -> Sums:
    """Counts as if every range were recorded."""
    samples = Counter({key: round(count) for key, count in calls.items()})
    seconds = {key: self_s.get(key, 0.0) for key in calls}
    none = dict.fromkeys(calls, 0.0)
    return Sums(samples, calls, seconds, seconds, seconds, none, dict(none), overhead_ns)


# ---- truth ------------------------------------------------------------------------------------


def test_a_step_is_what_runs_that_record_every_range_have_of_it() -> None:
    runs = [
        (Done(10, 1.0), _sums({OUTER: 10, INNER: 40}, {})),
        (Done(30, 3.0), _sums({OUTER: 30, INNER: 120}, {})),
    ]
    known = judge.truth(runs, {}, with_times=False)
    assert known.calls == {OUTER: 1.0, INNER: 4.0}
    assert known.shares == []


def test_the_cost_of_recording_is_subtracted_where_it_occurs() -> None:
    # 100 steps: an outer range of 10 us with ten of 2 us in it. Of the 150 ns that recording takes,
    # three sixteenths are within each range; 120 of them are stated.
    count, cost_s = 100, 150e-9
    inside_s = cost_s * 3 / 16
    inner_s, outer_s = 2e-6 + inside_s, 10e-6 + inside_s + 10 * (cost_s - inside_s)
    sums = _sums(
        {OUTER: count, INNER: 10 * count},
        {OUTER: count * outer_s, INNER: 10 * count * inner_s},
        overhead_ns=11 * count * 120,
    )
    # A step takes 40 us, and recording besides.
    done = Done(count, count * (40e-6 + 11 * cost_s))
    known = judge.truth([(done, sums)], {"": 5, "outer": 50}, with_times=True)
    assert known.shares[0][OUTER] == pytest.approx(10 / 40)
    assert known.shares[0][INNER] == pytest.approx(20 / 40)
    # If a recording takes 1 ns more, both times and that of the steps are less.
    for key, alone_s, less_s in ((INNER, 20e-6, 1.875e-9), (OUTER, 10e-6, 8.3125e-9)):
        change = (alone_s - less_s) / (40e-6 - 11e-9) - alone_s / 40e-6
        assert known.cost_slack[key] == pytest.approx(0.6 * cost_s * change / 1e-9, rel=1e-3)


def test_the_truth_is_the_median_of_runs_and_their_spread_is_slack() -> None:
    shares = (0.5, 0.52, 0.53, 0.55, 0.56, 0.9)
    runs = [(Done(1, 1.0), _sums({OUTER: 1}, {OUTER: share})) for share in shares]
    known = judge.truth(runs, {}, with_times=True)
    share, slack = known.share(lambda key: key == OUTER)
    # Of six values, the smallest and the largest are the interval.
    assert share == pytest.approx(0.54)
    assert slack == pytest.approx(0.36)


# ---- judging ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimated", "standard_error", "error"),
    [
        (100.0, None, 0.0),
        (105.0, None, 1.0),
        (90.0, 1.0, 2.0),  # 3 of it are less than 5 %
        (90.0, 10.0, 1 / 3),
        (90.0, 0.0, 2.0),
    ],
)
def test_an_error_is_a_multiple_of_5_percent_or_3_standard_errors(
    estimated: float, standard_error: float | None, error: float
) -> None:
    estimate = Estimate("calls", "some", 100.0, estimated, standard_error)
    assert estimate.error == pytest.approx(error)


def test_the_truths_slack_is_no_error() -> None:
    assert Estimate("self", "some", 100.0, 108.0, None, slack=3.0).error == pytest.approx(1.0)
    assert Estimate("self", "some", 100.0, 103.0, None, slack=3.0).error == 0.0


@pytest.mark.parametrize(("windows", "may_be_missing"), [(10, True), (1000, False)])
def test_an_operator_that_no_window_met_may_have_the_stated_share_of_the_time(
    windows: int, may_be_missing: bool
) -> None:
    known = judge.Truth({OUTER: 1.0, DATA: 99.0}, [{OUTER: 0.95, DATA: 0.05}])
    sums = replace(
        _sums({OUTER: 100.0}, {OUTER: 9.5}),
        calls_variance={OUTER: 25.0},
        window_calls2={("", "forward"): 100.0**2 / windows},
    )
    found = _judged(known, Done(100, 10.0), sums)
    assert found["calls", "load"].is_within_interval == may_be_missing
    assert ("self", "load") not in found or not may_be_missing


def test_operators_whose_errors_cancel_have_a_certain_sum() -> None:
    shares = [{OUTER: 0.3 + 0.1 * run, DATA: 0.7 - 0.1 * run} for run in range(6)]
    known = judge.Truth({OUTER: 1.0, DATA: 1.0}, shares)
    found = _judged(known, Done(1, 10.0), _sums({OUTER: 1.0, DATA: 1.0}, {OUTER: 5.0, DATA: 5.0}))
    assert found["self", "outer"].slack == pytest.approx(2.5)
    assert found["self", ""].slack == pytest.approx(0.0)


def test_stops_that_may_hit_some_operators_more_than_others_are_slack() -> None:
    known = judge.Truth({OUTER: 1.0, DATA: 3.0}, [{OUTER: 0.6, DATA: 0.2}], {OUTER: 0.01})
    # 25 stops of 0.1 s: the operator with 0.2 of the time is hit by 5 of them, give or take 2.
    done = Done(10, 10.0, stopped_s2=25 * 0.1**2)
    found = _judged(known, done, _sums({OUTER: 10.0, DATA: 30.0}, {OUTER: 6.0, DATA: 2.0}))
    assert found["self", "load"].slack == pytest.approx(1.96 * 2 * 0.1)
    assert found["self", "outer"].slack == pytest.approx(0.1 + 1.96 * (0.6 * 0.4 * 25) ** 0.5 * 0.1)
    # Of the 8 s in operators.
    assert found["phase", "data"].slack == pytest.approx(1.96 * (0.25 * 0.75 * 25) ** 0.5 * 0.1 / 8)


def _judged(known: judge.Truth, done: Done, sums: Sums) -> dict[tuple[str, str], Estimate]:
    return {(one.kind, one.name): one for one in judge.estimates(known, done, sums)}


def test_totals_top_operators_and_phases_are_judged() -> None:
    known = judge.Truth({OUTER: 1.0, DATA: 3.0}, [{OUTER: 0.6, DATA: 0.2}])
    sums = _sums({OUTER: 11.0, DATA: 30.0}, {OUTER: 6.0, ("load", "forward"): 1.0, DATA: 1.0})
    sums.calls[("load", "forward")] = 0.0
    sums.known_self_s = sums.total_s = sums.whole_s = {
        OUTER: 6.0,
        ("load", "forward"): 1.0,
        DATA: 1.0,
    }
    found = _judged(known, Done(10, 10.0), sums)
    assert found["calls", ""].true == 40.0
    assert found["calls", "outer"].error == pytest.approx(2.0)
    assert found["calls", "load"].error == 0.0
    assert found["self", ""].error == 0.0
    assert found["self", "load"].error == 0.0
    # Half of the known data ranges were counted as forward.
    assert found["phase", "data"].true == pytest.approx(0.25)
    assert found["phase", "data"].estimated == pytest.approx(0.125)
    assert found["phase", "data"].error == pytest.approx(0.125 / (0.05 * 0.25))


def test_a_phase_that_is_not_in_the_truth_is_an_error() -> None:
    known = judge.Truth({OUTER: 1.0}, [{OUTER: 0.5}])
    guessed: Key = ("outer", "unknown")
    sums = _sums({OUTER: 9.0, guessed: 1.0}, {OUTER: 4.5, guessed: 0.5})
    found = _judged(known, Done(10, 10.0), sums)
    assert found["phase", "unknown"].error == pytest.approx(0.1 / (0.05 * 0.1))


def test_rare_operators_are_not_judged_alone() -> None:
    rare: Key = ("rare", "forward")
    known = judge.Truth({OUTER: 100.0, rare: 1.0}, [{OUTER: 0.9, rare: 0.001}])
    found = _judged(known, Done(1, 1.0), _sums({OUTER: 100.0}, {OUTER: 0.9}))
    assert ("calls", "rare") not in found
    assert found["calls", ""].true == 101.0


def test_stated_variances_become_standard_errors_and_unstated_ones_are_unknown() -> None:
    known = judge.Truth({OUTER: 1.0, DATA: 1.0}, [{OUTER: 0.5, DATA: 0.5}])
    sums = _sums({OUTER: 10.0, DATA: 10.0}, {OUTER: 5.0, DATA: 5.0})
    sums.calls_variance = {OUTER: 9.0, ("", "forward"): 9.0, ("", "data"): 16.0}
    sums.self_variance = {("", "forward"): 1.0, ("", "data"): 1.0}
    found = _judged(known, Done(10, 10.0), sums)
    assert found["calls", "outer"].standard_error == 3.0
    assert found["calls", "load"].standard_error is None
    assert found["calls", ""].standard_error == 5.0
    # Both are off by one of ten on their own, so the share by half of the root of two tenths.
    assert found["phase", "data"].standard_error == pytest.approx(0.5**0.5 / 10)
    assert found["self", "outer"].standard_error is None


def test_a_recording_of_every_range_has_errors_of_0() -> None:
    known = judge.Truth({OUTER: 1.0, DATA: 1.0}, [{OUTER: 0.5, DATA: 0.5}])
    found = _judged(known, Done(10, 10.0), _sums({OUTER: 10, DATA: 10}, {OUTER: 5.0, DATA: 5.0}))
    assert {one.standard_error for one in found.values()} == {0.0}


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_coverage_tells_honest_standard_errors_from_others(factor: float) -> None:
    random = Random(7)
    estimates = [
        Estimate("calls", "some", 100.0, random.gauss(100.0, 4.0), 4.0 * factor)
        for _ in range(4000)
    ]
    share = judge.coverage(estimates, "calls")
    assert share == pytest.approx(erf(1.96 * factor / 2**0.5), abs=0.02)
    assert judge.coverage(estimates, "self") is None


def test_exact_numbers_say_nothing_of_intervals_and_unstated_errors_cover_nothing() -> None:
    exact = Estimate("calls", "a", 100.0, 100.0, 0.0)
    wrong = Estimate("calls", "b", 100.0, 101.0, 0.0)
    unstated = Estimate("calls", "c", 100.0, 101.0, None)
    assert judge.coverage([exact], "calls") is None
    assert judge.coverage([exact, wrong], "calls") == 0.0
    assert judge.coverage([unstated], "calls") == 0.0


# ---- cases ------------------------------------------------------------------------------------


def test_a_case_is_a_program_and_a_load_and_its_value_the_worst_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Windows find 8 % too many calls, once in 50 they state it; all else is exact."""
    asked = []

    def observed(
        name: str, seconds: float, load: loads.Load, variables: Any, **options: bool
    ) -> Observed:
        asked.append((name, seconds, "every" if variables else "windows", load.how))
        calls = 1.0 if variables else 1.08
        sums = _sums({OUTER: 100 * calls, INNER: 400 * calls}, {OUTER: 5.0, INNER: 5.0})
        if not variables:
            sums.calls_variance = {OUTER: 100.0, INNER: 4.0}
        return Observed(Done(100, 10.0), sums, Counter({"": 100, "outer": 400}))

    monkeypatch.setattr(cases, "run", observed)
    monkeypatch.setattr(cases, "LOADS", {"quiet": loads.quiet, "other": loads.quiet})
    effort = Effort(seconds=10.0, only="*_quiet")
    monkeypatch.setattr(cases, "PROGRAMS", {"bursty": PROGRAMS["bursty"]})
    case, *coverages = cases.measure(effort)
    assert (case.case, case.bound, case.rounds) == ("bursty_quiet", 1.0, 1)
    assert case.value == pytest.approx(8 / 5)
    assert case.detail is not None
    assert case.detail["load"] == "nothing else is started"
    json.dumps(case.detail)
    assert [(one.case, one.value) for one in coverages] == [("coverage_quiet", 0.5)]
    # The first counts what encloses what; then come those that record every range, each with one
    # that does not.
    assert [kind for _, _, kind, _ in asked[1:-1]] == ["every", "windows"] * 6
    assert [seconds for _, seconds, kind, _ in asked if kind == "windows"] == [1.0] * 6 + [10.0]


@pytest.mark.parametrize(
    ("one_thread", "reference"), [(True, "nothing else is started"), (False, "much")]
)
def test_a_program_with_one_thread_is_compared_with_runs_without_a_load(
    one_thread: bool, reference: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def observed(
        name: str, seconds: float, load: loads.Load, variables: Any, **options: bool
    ) -> Observed:
        asked.append((load.how, bool(variables)))
        return Observed(Done(100, 10.0), _sums({OUTER: 100}, {OUTER: 5.0}), Counter({"": 100}))

    program = replace(PROGRAMS["bursty"], has_one_thread=one_thread)
    monkeypatch.setattr(cases, "run", observed)
    monkeypatch.setattr(cases, "LOADS", {"much": lambda: nullcontext(loads.Load("much"))})
    monkeypatch.setattr(cases, "PROGRAMS", {"bursty": program})
    assert next(cases.measure(Effort(seconds=10.0, only="*_much"))).case == "bursty_much"
    assert [how for how, is_every in asked[1:] if is_every] == [reference] * 6
    beside = [reference] * 6 if one_thread else []
    assert [how for how, is_every in asked if not is_every] == [*beside, "much"]


# ---- loads ------------------------------------------------------------------------------------


def test_busy_processes_are_four_for_each_processor_and_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loads, "_BUSY", "import time; time.sleep(600)")
    started: list[Any] = []
    original: Any = subprocess.Popen

    def popen(*args: Any, **options: Any) -> Any:
        started.append(original(*args, **options))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", popen)
    with loads.oversubscribed() as load:
        assert [process.poll() for process in started] == [None] * len(started)
        assert len(started) == 4 * len(os.sched_getaffinity(0))
        assert str(len(started)) in load.how
    assert all(process.returncode == -signal.SIGKILL for process in started)


@pytest.mark.parametrize("has_groups", [True, False])
def test_a_quota_lets_a_program_end_and_leaves_nothing(
    has_groups: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_groups:
        monkeypatch.setattr(loads, "_group", lambda: None)
    with loads.quota() as load:
        done = run("numpy_small", 0.3, load, EVERY_RANGE).done
    assert done.steps > 0
    groups = Path("/sys/fs/cgroup").rglob(f"opscope-bench-{os.getpid()}")
    assert list(groups) == []
