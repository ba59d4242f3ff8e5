"""Samplers: the order in which a dataset's samples are visited, and their division into batches."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sized
from itertools import islice
from typing import Any

from opscope._tensor import draw_seed


class SequentialSampler:
    """0, 1, 2, ..."""

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler:
    """Every index once, in a new random order at each iteration.

    Without a `generator` the order follows from `opscope.tensor.manual_seed`.
    """

    def __init__(self, data_source: Sized, *, generator: random.Random | None = None) -> None:
        self.data_source = data_source
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        order = list(range(len(self.data_source)))
        generator = self.generator
        if generator is None:
            generator = random.Random(draw_seed())
        generator.shuffle(order)
        return iter(order)

    def __len__(self) -> int:
        return len(self.data_source)


class BatchSampler:
    """Lists of `batch_size` indices of another sampler; the last may be shorter."""

    def __init__(self, sampler: Iterable[Any], batch_size: int, drop_last: bool = False) -> None:
        if type(batch_size) is not int or batch_size <= 0:
            raise ValueError(f"batch_size must be a positive int, not {batch_size!r}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[Any]]:
        indices = iter(self.sampler)
        while batch := list(islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        return batch_count(len(self.sampler), self.batch_size, self.drop_last)  # type: ignore[arg-type]


def batch_count(samples: int, batch_size: int, drop_last: bool) -> int:
    """The number of batches for that many samples."""
    return samples // batch_size if drop_last else -(-samples // batch_size)
