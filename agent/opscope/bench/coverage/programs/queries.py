"""Polars: groups, joins and sorting, lazily."""

from collections.abc import Callable

import numpy as np
import polars


def setup() -> Callable[[], None]:
    generator = np.random.default_rng(0)
    frame = polars.DataFrame(
        {"key": generator.integers(0, 500, 300_000), "value": generator.random(300_000)}
    )
    other = polars.DataFrame({"key": np.arange(500), "rate": generator.random(500)})

    def step() -> None:
        for _ in range(5):
            lazy = frame.lazy().join(other.lazy(), on="key")
            lazy.group_by("key").agg(polars.col("value").mean()).sort("value").collect()
            frame.sort("value")

    return step
