"""What `bench truth` takes off the times of runs in which every range was recorded."""

from collections import Counter

import pytest

from opscope.bench.truth import judge
from opscope.bench.truth.programs import Done
from opscope.bench.truth.segments import Sums


def test_the_cost_of_recording_is_what_steps_take_longer() -> None:
    # Ten ranges of a step take 80 ns each; 120 are stated. Of six values, the smallest and the
    # largest are the interval.
    sums = Sums(Counter({("outer", "forward"): 1000}), overhead_ns=1000 * 120)
    runs = [(Done(100, 100 * 10.8e-6), sums)] * 6

    def found(off_us: list[float]) -> judge.Cost:
        return judge.cost(runs, [Done(200, 200 * (10.0 + off) * 1e-6) for off in off_us])

    steady = found([-0.01, 0.0, 0.0, 0.0, 0.0, 0.01])
    assert steady.range_s == pytest.approx(80e-9)
    assert steady.slack_s == pytest.approx(0.2 * 80e-9)  # operators differ
    varying = found([-0.3, -0.1, 0.0, 0.0, 0.1, 0.25])
    assert varying.range_s == pytest.approx(80e-9)
    assert varying.slack_s == pytest.approx(30e-9)
    # With a machine whose speed varies by more than that, what is stated says more.
    stated = pytest.approx(judge.Cost(150e-9, 90e-9))
    assert found([-3.0, -0.1, 0.0, 0.0, 0.1, 0.25]) == stated
    assert judge.cost(runs, []) == stated
