"""Quantiles from buckets are within their stated bounds for every distribution."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from opscope.fleet.medians import NATIVE_WIDTH, SLOPE, Cell, between, reading

BOUNDS = [2.0**exponent for exponent in range(-22, 5)]
FINE = [2.0 ** (eighth / 8) for eighth in range(-22 * 8, 4 * 8 + 1)]
Shape = Callable[[float], float]


def normal(z: float) -> float:
    return 0.5 * (1 + math.erf(z / math.sqrt(2)))


def laplace(z: float) -> float:
    half = 0.5 * math.exp(-abs(z) * math.sqrt(2))
    return half if z < 0 else 1 - half


def skewed(z: float) -> float:
    return math.exp(-math.exp(min(-z * math.pi / math.sqrt(6), 700.0)))


SHAPES = [normal, laplace, skewed]


def cell(shape: Shape, middle: float, sigma: float, *, is_classic: bool = True) -> Cell:
    """As histogram_quantile reads it: linear within a bucket. `middle`, `sigma`: of logarithms."""
    bounds = BOUNDS if is_classic else FINE
    upto = [shape((math.log(bound) - middle) / sigma) for bound in bounds]

    def quantile(p: float) -> float:
        above = int(np.searchsorted(upto, p))
        share = (p - upto[above - 1]) / (upto[above] - upto[above - 1])
        return bounds[above - 1] + share * (bounds[above] - bounds[above - 1])

    return Cell(quantile(0.5), quantile(0.1), quantile(0.9), is_classic)


def interval(before: Cell, after: Cell) -> tuple[float, float]:
    return between([reading(before, BOUNDS)], [reading(after, BOUNDS)], 0.0)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("sigma", [0.01, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.5])
@pytest.mark.parametrize("is_classic", [True, False], ids=["classic", "native"])
def test_the_true_ratio_is_within_the_interval(
    shape: Shape, sigma: float, is_classic: bool
) -> None:
    for change in (0.0, 0.05, 0.2, 0.5, 1.5):
        for place in np.linspace(0, math.log(2), 41):
            middle = math.log(1e-3) + float(place)
            before = cell(shape, middle, sigma, is_classic=is_classic)
            after = cell(shape, middle + change, sigma, is_classic=is_classic)
            for truth, pair in ((change, (before, after)), (-change, (after, before))):
                low, high = interval(*pair)
                assert low - 0.01 <= truth <= high + 0.01, (truth, place, pair)


def test_a_change_within_a_bucket_is_not_ruled_out() -> None:
    before = cell(normal, math.log(1.2e-3), 0.01)
    after = cell(normal, math.log(1.2e-3 * 1.4), 0.01)
    low, high = interval(before, after)
    assert low < 0 and math.log(1.4) < high


def test_a_small_change_across_a_bound_is_no_large_one() -> None:
    bound = 2.0**-10
    before = cell(normal, math.log(bound * 0.98), 0.005)
    after = cell(normal, math.log(bound * 1.02), 0.005)
    assert after.median / before.median > 1.9
    low, _ = interval(before, after)
    assert low <= math.log(1.04)


def test_coarser_buckets_leave_more_open() -> None:
    wide, narrow = cell(normal, -7, 1.5), cell(normal, -7, 0.01)
    native = cell(normal, -7, 0.3, is_classic=False)
    narrow_native = cell(normal, -7, 0.001, is_classic=False)
    assert reading(wide, BOUNDS).slope == SLOPE
    assert reading(narrow, BOUNDS).below + reading(narrow, BOUNDS).above == pytest.approx(
        math.log(2)
    )
    assert reading(native, BOUNDS)[1:] == (0.0, 0.0, 1.0)
    assert reading(narrow_native, BOUNDS).above == pytest.approx(NATIVE_WIDTH / 2)


def test_durations_beyond_all_bounds_tell_nothing() -> None:
    beyond = Cell(1e9, 1e8, 1e10, True)
    low, high = interval(beyond, beyond)
    assert (low, high) == (-math.inf, math.inf)
