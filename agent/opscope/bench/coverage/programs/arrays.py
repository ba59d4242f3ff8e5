"""NumPy: random numbers, arithmetic, sorting, linear algebra, FFT, indexing and creation."""

from collections.abc import Callable

import numpy as np


def setup() -> Callable[[], None]:
    generator = np.random.default_rng(0)
    square = generator.standard_normal((300, 300))
    many = generator.standard_normal(200_000)

    def step() -> None:
        drawn = generator.standard_normal(200_000)
        drawn = drawn * generator.random(200_000) + generator.normal(0.0, 2.0, 200_000)
        np.random.standard_normal(50_000)
        kinds = generator.integers(0, 50, 200_000)
        generator.shuffle(kinds)
        np.exp(-(drawn**2)).sum()
        np.sort(drawn)
        np.unique(kinds, return_counts=True)
        many[kinds].mean()
        np.where(many > 0.0, many, -many).cumsum()
        np.linalg.svd(square @ square.T)
        np.fft.rfft(many)
        np.einsum("ij,jk->ik", square, square)
        block = np.zeros((1000, 1000))
        block += np.ones((1000, 1000))
        np.ascontiguousarray(block.T)
        np.arange(1_000_000).reshape(1000, 1000).sum(axis=0)
        np.array(many, copy=True)
        np.histogram(many, bins=100)
        np.percentile(many, [5, 50, 95])
        for _ in range(500):
            np.add(drawn[:10], 1.0)

    return step
