"""`bench truth` judges an operator that no window met by what a view states of such operators."""

from collections import Counter

import pytest

from opscope.bench.truth import judge
from opscope.bench.truth.judge import Estimate
from opscope.bench.truth.programs import Done
from opscope.bench.truth.segments import Key, Sums

OUTER: Key = ("outer", "forward")
INNER: Key = ("inner", "forward")


def judged(calls_a_step: float) -> dict[tuple[str, str], Estimate]:
    """1,000 steps of an operator that is seen, and one that is not, so often in a step."""
    known = judge.Truth({OUTER: 1.0, INNER: calls_a_step}, [{OUTER: 0.5, INNER: 0.5}])
    seconds, variance = {OUTER: 5.0}, {OUTER: 1e5}
    # Each sample is of a hundred calls: a view states that 300 calls may be missing.
    sums = Sums(
        Counter({OUTER: 10}), {OUTER: 1000.0}, seconds, seconds, seconds, variance, {OUTER: 1.0}
    )
    return {(one.kind, one.name): one for one in judge.estimates(known, Done(1000, 10.0), sums)}


def test_it_may_have_the_calls_that_a_view_states() -> None:
    found = judged(0.03)
    assert found["calls", "inner"].is_within_interval
    assert ("self", "inner") not in found


@pytest.mark.parametrize("kind", ["calls", "self"])
def test_more_of_them_are_an_error(kind: str) -> None:
    assert judged(0.5)[kind, "inner"].error > 1


def of_an_idle_program(seconds: float, period_s: float = 0.25) -> list[Estimate]:
    """It worked that long, and windows met nothing."""
    known = judge.Truth({OUTER: 1.0}, [{OUTER: 1.0}])
    return judge.estimates(known, Done(10, seconds), Sums(period_s=period_s))


def test_windows_may_miss_three_periods_of_a_program() -> None:
    """A view then states that they met no operator of its service."""
    assert all(one.kind == "calls" and one.is_within_interval for one in of_an_idle_program(0.7))


def test_they_may_not_miss_more() -> None:
    assert any(one.error > 1 for one in of_an_idle_program(0.8))


def test_a_program_without_windows_misses_nothing() -> None:
    assert any(one.error > 1 for one in of_an_idle_program(0.7, period_s=0.0))


def test_few_calls_may_be_missing_whatever_their_time() -> None:
    """Windows meet a call where it begins."""
    known = judge.Truth({OUTER: 1.0, INNER: 0.018}, [{OUTER: 0.5, INNER: 0.5}])
    seconds = {OUTER: 5.0}
    sums = Sums(
        Counter({OUTER: 100}),
        {OUTER: 10_000.0},
        seconds,
        seconds,
        seconds,
        {OUTER: 1e5},
        {OUTER: 1.0},
        window_calls2={("", "forward"): 10_000.0**2 / 1000},
    )
    found = judge.estimates(known, Done(1000, 10.0), sums)
    assert [one.kind for one in found if one.name == "inner" and one.is_within_interval] == [
        "calls"
    ]
    assert not any(one.kind == "self" and one.name == "inner" for one in found)
