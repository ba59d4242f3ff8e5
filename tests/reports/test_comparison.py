"""Operators reported as slower are slower, and false reports are as rare as stated."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from opscope.reports.comparison import LEAST_SLICES, Change, compare, t_reach, t_two_sided
from opscope.reports.recording import Operator, Recording, Slice

SLICES = 15
MM = Operator("aten::mm", "forward")


def recording(operators: dict[Operator, list[Slice]]) -> Recording:
    count = len(next(iter(operators.values())))
    kept = {operator: tuple(slices) for operator, slices in operators.items()}
    return Recording("svc", 0, (1.0,) * count, 1, kept)


def steady(call_s: float, calls: float = 100.0, count: int = SLICES) -> list[Slice]:
    return [Slice(int(calls), calls, calls * call_s * 2, calls * call_s)] * count


def noisy(random: np.random.Generator, call_s: float, spread: float = 0.1) -> list[Slice]:
    """Slices of a machine of varying speed: the calls of a slice are slow or fast together."""
    calls = random.integers(50, 150, SLICES)
    moods = np.exp(random.normal(0.0, spread, SLICES))
    return [
        Slice(int(n), float(n), 2.0 * n * call_s * mood, n * call_s * mood)
        for n, mood in zip(calls.tolist(), moods.tolist(), strict=True)
    ]


def change(before: list[Slice], after: list[Slice]) -> Change:
    (found,) = compare(recording({MM: before}), recording({MM: after})).changes
    return found


def test_means_are_of_calls_and_the_cost_is_at_the_new_rate() -> None:
    found = change(steady(1e-3), steady(1.5e-3, calls=200.0))
    assert found.call_s == pytest.approx((1e-3, 1.5e-3))
    assert found.calls_per_s == pytest.approx((100.0, 200.0))
    assert found.ratio == pytest.approx(1.5)
    assert found.lost_s == pytest.approx(0.5e-3 * 200)
    assert found.is_self
    assert found.verdict(0.95, 0.05) == "slower"
    assert change(steady(1.5e-3), steady(1e-3)).verdict(0.95, 0.05) == "faster"


def test_total_time_is_compared_where_a_self_time_is_unknown() -> None:
    unknown = [one._replace(self_s=None) for one in steady(1e-3)]
    found = change(steady(1e-3), unknown)
    assert not found.is_self
    assert found.call_s == pytest.approx((2e-3, 2e-3))


def test_a_change_below_the_minimum_is_none() -> None:
    found = change(steady(1e-3), steady(1.04e-3))
    assert found.verdict(0.95, 0.05) == "same"
    assert found.verdict(0.95, 0.03) == "slower"


def test_operators_with_a_large_spread_are_not_called_the_same() -> None:
    """A change of 20 % on a busy machine: the verdict is neither slower nor same."""
    random = np.random.default_rng(5)
    found = change(noisy(random, 1e-3, spread=1.0), noisy(random, 1.2e-3, spread=1.0))
    assert found.low < 1 and found.high > 1.2
    assert found.verdict(0.95, 0.05) == "unsure"
    assert found.verdict(0.95, 10.0) == "same"


@pytest.mark.parametrize("count", [1, LEAST_SLICES - 1])
def test_of_few_slices_nothing_is_said(count: int) -> None:
    found = change(steady(1e-3), steady(2e-3, count=count))
    assert math.isnan(found.low)
    assert found.verdict(0.95, 0.05) == "?"
    rare = [*steady(2e-3, count=count), *[Slice(0, 0.0, 0.0, 0.0)] * SLICES]
    assert change(steady(1e-3), rare).verdict(0.95, 0.05) == "?"


def test_an_operator_without_time_is_no_error() -> None:
    nothing = steady(0.0)
    assert change(nothing, nothing).verdict(0.95, 0.05) == "?"
    assert change(nothing, steady(1e-3)).ratio == math.inf


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    random = np.random.default_rng(7)
    held = 0
    for _ in range(200):
        found = change(noisy(random, 1e-3), noisy(random, 1.2e-3))
        held += found.low <= 1.2 <= found.high
    # Binomial of 200 at .95: 99 % lie within 181 to 197.
    assert 181 <= held <= 198


def operators(random: np.random.Generator, factor: Callable[[int], float]) -> Recording:
    return recording(
        {Operator(f"op{i:02}", ""): noisy(random, 1e-3 * factor(i)) for i in range(30)}
    )


def test_among_many_operators_chance_is_seldom_called_a_change() -> None:
    random = np.random.default_rng(11)
    wrong = 0
    for _ in range(20):
        found = compare(operators(random, lambda _: 1.0), operators(random, lambda _: 1.0))
        wrong += any(one.verdict(0.95, 0.0) in ("slower", "faster") for one in found.changes)
    assert wrong <= 4  # 5 % of 20 by design, and three times that at worst


def test_a_slower_operator_is_found_among_many() -> None:
    random = np.random.default_rng(13)
    before = operators(random, lambda _: 1.0)
    after = operators(random, lambda i: 1.5 if i < 5 else 1.0)
    found = {
        one.operator.name
        for one in compare(before, after).changes
        if one.verdict(0.95, 0.05) == "slower"
    }
    assert {f"op{i:02}" for i in range(5)} <= found
    assert len(found) <= 6


def test_operators_of_one_side_only_are_named_and_costly_changes_come_first() -> None:
    cheap, dear, gone, new = (Operator(name, "") for name in ("cheap", "dear", "gone", "new"))
    before = recording({cheap: steady(1e-6), dear: steady(1e-2), gone: steady(1e-3)})
    after = recording({cheap: steady(9e-6), dear: steady(2e-2), new: steady(1e-3)})
    found = compare(before, after)
    assert [one.operator for one in found.changes] == [dear, cheap]
    assert (found.gone, found.new) == ((gone,), (new,))


@pytest.mark.parametrize(
    ("p", "freedom", "t"),
    # Published tables of Student's t, two-sided.
    [(0.05, 4, 2.77645), (0.05, 10, 2.22814), (0.01, 4, 4.60409), (0.2, 8, 1.39682)],
)
def test_t_agrees_with_the_tables(p: float, freedom: float, t: float) -> None:
    assert t_reach(p, freedom) == pytest.approx(t, rel=1e-5)
    assert t_two_sided(t, freedom) == pytest.approx(p, rel=1e-4)
