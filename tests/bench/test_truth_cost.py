"""The cost cases of `bench truth`: their arithmetic."""

from __future__ import annotations

from random import Random

import pytest

from opscope.bench.truth import cost


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
