"""Datasets: samples by index, or in sequence. Names and behaviour are PyTorch's."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Generic, TypeVar

from opscope._tensor import Tensor
from opscope.tensor.composed import sampling

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """Samples by index: subclass and define `__getitem__`, and `__len__` for samplers.

    A dataset that also defines `__getitems__(indices)` is asked for a whole batch at once.
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError(f"{type(self).__name__} defines no __getitem__")

    def __add__(self, other: Dataset[T_co]) -> ConcatDataset[T_co]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co]):
    """Samples in sequence: subclass and define `__iter__`.

    Every worker of a DataLoader iterates over its own copy; `get_worker_info` tells the worker
    which part to yield.
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__} defines no __iter__")

    def __add__(self, other: Dataset[T_co]) -> Any:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Sample `i` is the tuple of `tensor[i]` of each tensor; their first sizes are equal."""

    def __init__(self, *tensors: Tensor) -> None:
        if not tensors or any(len(tensor) != len(tensors[0]) for tensor in tensors):
            shapes = ", ".join(str(tuple(tensor.shape)) for tensor in tensors) or "none"
            raise ValueError(f"TensorDataset(): tensors with the same first size, not {shapes}")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])


class StackDataset(Dataset[Any]):
    """Sample `i` is the tuple of sample `i` of each dataset; or, of named datasets, their dict."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        whole = [*args, *kwargs.values()]
        if not whole or (args and kwargs) or len({len(each) for each in whole}) > 1:
            raise ValueError("StackDataset(): datasets of one length, all by name or none")
        self.datasets: Any = kwargs or args

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: each[index] for name, each in self.datasets.items()}
        return tuple(each[index] for each in self.datasets)

    def __len__(self) -> int:
        datasets = self.datasets
        return len(next(iter(datasets.values())) if isinstance(datasets, dict) else datasets[0])


class ConcatDataset(Dataset[T_co]):
    """Datasets one after another; `a + b` makes one too."""

    def __init__(self, datasets: Iterable[Dataset[T_co]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets or any(isinstance(each, IterableDataset) for each in self.datasets):
            raise ValueError("ConcatDataset(): at least one dataset, each with indices")
        lengths = [len(each) for each in self.datasets]  # type: ignore[arg-type]
        self.cumulative_sizes = list(accumulate(lengths))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: Any) -> T_co:
        if not -len(self) <= index < len(self):
            raise ValueError(f"ConcatDataset: index {index} of {len(self)}")
        index %= len(self)
        which = bisect_right(self.cumulative_sizes, index)
        return self.datasets[which][index - (self.cumulative_sizes[which - 1] if which else 0)]


class ChainDataset(IterableDataset[T_co]):
    """IterableDatasets one after another."""

    def __init__(self, datasets: Iterable[Dataset[T_co]]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[T_co]:
        for each in self.datasets:
            yield from each  # type: ignore[misc]


class Subset(Dataset[T_co]):
    """The samples of a dataset at these indices."""

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[each] for each in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[T_co]:
        own = [self.indices[index] for index in indices]
        many = getattr(self.dataset, "__getitems__", None)
        return many(own) if many else [self.dataset[index] for index in own]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Dataset[T_co], lengths: Sequence[float], generator: Any = None
) -> list[Subset[T_co]]:
    """Random parts of these lengths, or of these shares, which sum to 1; a remainder goes to the
    first parts, one by one. ValueError unless the lengths sum to that of the dataset."""
    size = len(dataset)  # type: ignore[arg-type]
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1 + 1e-9 and size != 1:
        if any(not 0 <= share <= 1 for share in lengths):
            raise ValueError("random_split(): shares are from 0 to 1")
        parts = [math.floor(size * share) for share in lengths]
        for place in range(size - sum(parts)):
            parts[place % len(parts)] += 1
        lengths = parts
    if sum(lengths) != size:
        raise ValueError(f"random_split(): lengths sum to {sum(lengths)}, the dataset has {size}")
    order = sampling.randperm(size, generator=generator).tolist()
    ends = list(accumulate(int(length) for length in lengths))
    starts = [0, *ends[:-1]]
    return [Subset(dataset, order[a:b]) for a, b in zip(starts, ends, strict=True)]
