"""numexpr and Bottleneck: compiled expressions, and statistics of moving windows."""

from collections.abc import Callable

import bottleneck
import numexpr
import numpy as np


def setup() -> Callable[[], None]:
    a, b = np.random.default_rng(0).standard_normal((2, 500_000))

    def step() -> None:
        numexpr.evaluate("sin(a) * exp(-b ** 2) + 2 * a", local_dict={"a": a, "b": b})
        bottleneck.move_mean(a, 50)
        bottleneck.move_median(a, 50)
        bottleneck.nanmedian(a)
        bottleneck.nansum(a)

    return step
