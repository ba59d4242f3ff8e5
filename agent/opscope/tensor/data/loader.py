"""DataLoader: batches of a dataset, fetched here or by worker processes. Semantics are PyTorch's.

Each `next` of an iteration is one range `data::next` of phase data: the consumer's waiting time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from multiprocessing.context import BaseContext
from typing import Any, Generic, TypeVar

from opscope.record.ranges import record_function
from opscope.record.usage import log_api_usage_once
from opscope.tensor.data.collate import default_collate, default_convert
from opscope.tensor.data.dataset import Dataset, IterableDataset
from opscope.tensor.data.pool import Workers
from opscope.tensor.data.sampler import (
    BatchSampler,
    Randomness,
    RandomSampler,
    SequentialSampler,
    batch_count,
    seed_from,
)
from opscope.tensor.data.transport import Parcel
from opscope.tensor.data.worker import BATCH, END, FAILED, OVER, Plan, failed

T = TypeVar("T")


class DataLoader(Generic[T]):
    """Iterating over it gives the dataset's batches, each time from the start.

    >>> for inputs, targets in DataLoader(dataset, batch_size=32, shuffle=True, num_workers=2):
    ...     train(inputs, targets)

    `sampler` (indices) or `batch_sampler` (lists of indices) replaces the order; `batch_size` None
    turns batching off: then samples go through `collate_fn` one by one. `generator` is the source
    of orders and seeds; the default follows `opscope.tensor.manual_seed`.

    With `num_workers`, that many processes fetch batches, up to `prefetch_factor` ahead in each;
    the order of batches does not change. Worker `i` has the seed base + i in `random`, in NumPy if
    imported, and in the tensor core; `worker_init_fn(i)` runs in it first. `timeout` is in seconds,
    0 for none. `persistent_workers` keeps the processes for the next iteration. Processes start by
    the default method of `multiprocessing`, or by `multiprocessing_context` ("fork", "spawn",
    "forkserver").

    An exception in a worker is raised here, in the same class, with the worker's number and
    traceback. A worker that dies or exceeds the timeout is a RuntimeError. Raises ValueError for
    options that exclude each other.
    """

    def __init__(
        self,
        dataset: Dataset[T],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: str | BaseContext | None = None,
        generator: Randomness | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory: bool = False,
        pin_memory_device: str = "",
    ) -> None:
        log_api_usage_once("opscope.tensor.DataLoader")
        is_stream = isinstance(dataset, IterableDataset)
        _check(num_workers < 0, "num_workers cannot be negative; 0 fetches in this process")
        _check(timeout < 0, "timeout cannot be negative; 0 is none")
        _check(
            prefetch_factor is not None and (num_workers == 0 or prefetch_factor < 1),
            "prefetch_factor is a positive int, and for workers: set num_workers too",
        )
        _check(
            persistent_workers and num_workers == 0, "persistent_workers needs num_workers above 0"
        )
        _check(
            is_stream and bool(shuffle or sampler is not None or batch_sampler is not None),
            "an IterableDataset has its own order: no shuffle, sampler or batch_sampler",
        )
        _check(sampler is not None and bool(shuffle), "sampler and shuffle exclude each other")
        _check(
            batch_sampler is not None
            and (batch_size != 1 or bool(shuffle) or sampler is not None or drop_last),
            "batch_sampler excludes batch_size, shuffle, sampler and drop_last",
        )
        _check(batch_size is None and drop_last, "drop_last is for batches; batch_size is None")
        if sampler is None and not is_stream:
            if shuffle:
                sampler = RandomSampler(dataset, generator=generator)  # type: ignore[arg-type]
            else:
                sampler = SequentialSampler(dataset)  # type: ignore[arg-type]
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler or (), batch_size, drop_last)
        elif batch_sampler is not None:
            batch_size = None
        self.dataset = dataset
        self.batch_size = batch_size
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.num_workers = num_workers
        self.drop_last = drop_last
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.generator = generator
        self.prefetch_factor = prefetch_factor or 2
        self.persistent_workers = persistent_workers
        is_batched = batch_sampler is not None
        self.collate_fn = collate_fn or (default_collate if is_batched else default_convert)
        self._plan = Plan(dataset, self.collate_fn, batch_size, drop_last, is_batched)
        self._workers: Workers | None = None

    @property
    def pin_memory(self) -> bool:
        """False: memory is pinned for devices, and there is none. The argument changes nothing."""
        return False

    def __len__(self) -> int:
        """Batches of one iteration; TypeError if the dataset or sampler has no length."""
        if isinstance(self.dataset, IterableDataset):
            samples: int = len(self.dataset)  # type: ignore[arg-type]
            if self.batch_size is None:
                return samples
            return batch_count(samples, self.batch_size, self.drop_last)
        return len(self._wanted())  # type: ignore[arg-type]

    def _wanted(self) -> Iterable[Any]:
        if isinstance(self.dataset, IterableDataset):
            return repeat(None)
        wanted = self.batch_sampler if self.batch_sampler is not None else self.sampler
        assert wanted is not None
        return wanted

    def __iter__(self) -> Iterator[Any]:
        if self.num_workers == 0:
            return _Here(self._plan, iter(self._wanted()))
        workers = self._workers
        if workers is None:
            seed = seed_from(self.generator)
            workers = Workers(
                self._plan,
                self.num_workers,
                seed,
                self.worker_init_fn,
                self.multiprocessing_context,
            )
            if self.persistent_workers:
                self._workers = workers
        return _Elsewhere(self, workers, iter(self._wanted()))

    def _forget(self, workers: Workers) -> None:
        """Those have ended."""
        if self._workers is workers:
            self._workers = None


def _check(wrong: bool, text: str) -> None:
    if wrong:
        raise ValueError(f"DataLoader(): {text}")


class _Iteration:
    """Makes one range for each `next`, with or without workers."""

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        with record_function("data::next", phase="data"):
            batch = self._next()
        if batch is END:
            raise StopIteration
        return batch

    def _next(self) -> Any:
        """A batch, or END."""
        raise NotImplementedError


class _Here(_Iteration):
    """Batches fetched in the consumer's own process, on request."""

    def __init__(self, plan: Plan, wanted: Iterator[Any]) -> None:
        self._wanted = wanted
        self._fetch = plan.fetcher()

    def _next(self) -> Any:
        for wanted in self._wanted:
            return self._fetch(wanted)
        return END


class _Elsewhere(_Iteration):
    """Batches that workers fetch ahead of time.

    Tasks are numbered in the order of the sampler and go to the workers in turn; answers are taken
    in that order, so the order of batches depends only on the sampler.
    """

    def __init__(self, loader: DataLoader[Any], workers: Workers, wanted: Iterator[Any]) -> None:
        self._loader = loader
        self._workers = workers
        self._wanted = wanted
        workers.epoch += 1
        self._epoch = workers.epoch
        self._working = [True] * workers.count
        self._turn = 0
        self._owners: dict[int, int] = {}
        self._asked = self._taken = 0
        for _ in range(loader.prefetch_factor * workers.count):
            self._ask()

    def _ask(self) -> None:
        """Give the next task to the next worker that has samples left."""
        if not any(self._working):
            return
        for wanted in self._wanted:
            while not self._working[self._turn]:
                self._turn = (self._turn + 1) % self._workers.count
            self._owners[self._asked] = self._turn
            self._workers.ask(self._turn, (self._epoch, self._asked, wanted))
            self._asked += 1
            self._turn = (self._turn + 1) % self._workers.count
            return

    def _next(self) -> Any:
        if self._epoch != self._workers.epoch:
            raise RuntimeError(
                "a newer iteration over this DataLoader has taken its persistent workers"
            )
        while self._taken < self._asked:
            task = self._taken
            self._taken += 1
            owner = self._owners.pop(task)
            if not self._working[owner]:
                continue  # requested before the worker ran out of samples
            parcel = self._answer(owner, task)
            kind = parcel.head[2]
            if kind == OVER:
                self._working[owner] = False
            self._ask()
            if kind == FAILED:
                raise failed(owner, parcel.open())
            if kind == BATCH:
                return parcel.open()
        if not self._loader.persistent_workers:
            self._workers.close()
        return END

    def _answer(self, owner: int, task: int) -> Parcel:
        try:
            while True:
                parcel = self._workers.answer(owner, self._loader.timeout)
                if parcel.head[:2] == (self._epoch, task):
                    return parcel
        except BaseException:
            # Dead, late, or interrupted in the middle of an answer: the workers are unusable.
            self._taken = self._asked
            self._workers.close(at_once=True)
            self._loader._forget(self._workers)
            raise
