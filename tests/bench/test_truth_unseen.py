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
