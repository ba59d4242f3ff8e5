"""Datasets: samples by index, or in sequence. Names and behaviour are PyTorch's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from opscope._tensor import Tensor

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """Samples by index: subclass and define `__getitem__`, and `__len__` for samplers.

    A dataset that also defines `__getitems__(indices)` is asked for a whole batch at once.
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError(f"{type(self).__name__} defines no __getitem__")


class IterableDataset(Dataset[T_co]):
    """Samples in sequence: subclass and define `__iter__`.

    Every worker of a DataLoader iterates over its own copy; `get_worker_info` tells the worker
    which part to yield.
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__} defines no __iter__")


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Sample `i` is the tuple of `tensor[i]` of each tensor; their first sizes are equal."""

    def __init__(self, *tensors: Tensor) -> None:
        if not tensors or any(len(tensor) != len(tensors[0]) for tensor in tensors):
            shapes = ", ".join(str(tensor.shape) for tensor in tensors) or "none"
            raise ValueError(f"TensorDataset(): tensors with the same first size, not {shapes}")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])
