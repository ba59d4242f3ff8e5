"""Numba: two compiled functions over arrays."""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np


def setup() -> Callable[[], None]:
    many = np.random.default_rng(0).standard_normal(1_000_000)

    def running_sum(values: Any, window: int) -> Any:
        sums = np.empty(len(values))
        total = 0.0
        for at in range(len(values)):
            total += values[at]
            if at >= window:
                total -= values[at - window]
            sums[at] = total
        return sums

    compiled = numba.njit(running_sum)
    compiled(many, 10)

    def step() -> None:
        for window in range(10, 60):
            compiled(many, window)

    return step
