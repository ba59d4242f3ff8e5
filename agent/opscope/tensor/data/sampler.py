"""Samplers: the order in which a dataset's samples are visited, and their division into batches."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import islice
from typing import Any

from opscope import _tensor
from opscope._tensor import draw_seed
from opscope.tensor.composed import sampling
from opscope.tensor.generator import Generator

Randomness = random.Random | Generator
"""What `generator=` may be."""


def seed_from(generator: Randomness | None) -> int:
    """63 bits of a generator, or of the process's sequence."""
    if generator is None:
        return draw_seed() >> 1
    if isinstance(generator, Generator):
        return generator.draw_seed() >> 1
    return generator.getrandbits(63)


class Sampler:
    """The order of samples: subclass and define `__iter__`, and `__len__` if it is known."""

    def __init__(self, data_source: Any = None) -> None:
        pass

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} defines no __iter__")


class SequentialSampler(Sampler):
    """0, 1, 2, ..."""

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """Every index once, in a new random order at each iteration; or `num_samples` of them, drawn
    again and again with `replacement`.

    Without a `generator` the order follows from `opscope.tensor.manual_seed`.
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Randomness | None = None,
    ) -> None:
        if num_samples is not None and (type(num_samples) is not int or num_samples <= 0):
            raise ValueError(f"num_samples must be a positive int, not {num_samples!r}")
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator

    @property
    def num_samples(self) -> int:
        """The number of indices of one iteration."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        generator = random.Random(seed_from(self.generator))
        size, wanted = len(self.data_source), self.num_samples
        if self.replacement:
            for _ in range(wanted):
                yield generator.randrange(size)
            return
        order = list(range(size))
        while wanted > 0:
            generator.shuffle(order)
            yield from order[:wanted]
            wanted -= size

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """Each of these indices once, in a new random order at each iteration."""

    def __init__(self, indices: Sequence[int], generator: Randomness | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        order = list(self.indices)
        random.Random(seed_from(self.generator)).shuffle(order)
        return iter(order)

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """`num_samples` indices drawn with these weights, again and again unless `replacement` is
    False."""

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        self.weights = _tensor.tensor(weights, dtype=_tensor.float64)
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = sampling.multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )
        return iter(drawn.tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler):
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
