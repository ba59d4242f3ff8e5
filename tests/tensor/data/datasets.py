"""Datasets that workers of any start method can import."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from opscope import tensor as ot
from opscope.tensor import data
from opscope.tensor.data.worker import work


class Rows(data.Dataset[Any]):
    """A large tensor, a large array, a number and a text for each index; or what `act` does."""

    def __init__(self, size: int = 12, act: str = "", at: int = -1) -> None:
        self.size = size
        self.act = act
        self.at = at

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> Any:
        if index == self.at:
            self.misbehave(index)
        return ot.full((64, 32), float(index)), np.full((32, 64), index), index, f"row {index}"

    def misbehave(self, index: int) -> None:
        if self.act == "raise":
            raise ValueError(f"bad row {index}")
        if self.act == "key":
            raise KeyError("row")
        if self.act == "odd":
            raise OddError(index, "row")
        if self.act == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.act == "exit":
            os._exit(3)
        if self.act == "hang":
            time.sleep(1000)


class OddError(Exception):
    """An error whose constructor needs more than one text."""

    def __init__(self, index: int, what: str) -> None:
        super().__init__(f"{what} {index} is odd")


class Stream(data.IterableDataset[int]):
    """Numbers below `size`, divided among the workers; the first worker has fewer."""

    def __init__(self, size: int = 23) -> None:
        self.size = size

    def __iter__(self) -> Iterator[int]:
        info = data.get_worker_info()
        assert info is not None
        mine = range(info.id, self.size, info.num_workers)
        return iter(mine[:3] if info.id == 0 else mine)


class Facts(data.Dataset[Any]):
    """The state inside the worker that fetches."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Any:
        info = data.get_worker_info()
        assert info is not None
        return {
            "id": info.id,
            "count": info.num_workers,
            "seed": info.seed,
            "own": info.dataset is self,
            "pid": os.getpid(),
            "random": random.random(),
            "numpy": float(np.random.random()),
            "core": ot.rand((1,)).item(),
        }


class Masks(data.Dataset[bool]):
    """Whether Ctrl-C is blocked in the worker that fetches."""

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> bool:
        return interrupts_are_blocked()


class Large(data.Dataset[Any]):
    """Many objects other than tensors: text larger than any pipe holds."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> Any:
        return [str(index) * 400_000]


class Whole(data.Dataset[Any]):
    """A batch as a whole: much text, for any indices."""

    def __getitems__(self, indices: list[int]) -> Any:
        return ["x" * 5_000_000]


def as_is(samples: Any) -> Any:
    return samples


def unpicklable(samples: Any) -> Any:
    return lambda: samples


def fail_first(worker: int) -> None:
    if worker == 0:
        raise RuntimeError("no start for the first")


def interrupted_work(*life: Any) -> None:
    """A worker that Ctrl-C reaches before its first line."""
    os.kill(os.getpid(), signal.SIGINT)
    work(*life)


def interrupts_are_blocked(_: Any = None) -> bool:
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])


class Note:
    """Writes the worker's number to a file."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def __call__(self, worker: int) -> None:
        (self.directory / str(worker)).write_text(str(os.getpid()))
