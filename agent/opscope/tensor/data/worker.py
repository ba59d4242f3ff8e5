"""A worker process: fetches the requested batches and sends them back.

It ends when the pipe to its consumer closes, for whatever reason. The consumer handles Ctrl-C: a
worker begins with SIGINT blocked (pool.py) and ignores it from its first line on. Each batch that
it fetches is one range `data::fetch` of phase data, in a segment of its own.
"""

from __future__ import annotations

import os
import pickle
import random
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import Connection
from typing import Any

from opscope._tensor import manual_seed
from opscope.record.ranges import record_function
from opscope.tensor.data.dataset import Dataset, IterableDataset
from opscope.tensor.data.transport import pack, send

# Seconds between checks of the parent, since a surviving fork of the consumer keeps the pipe open.
CHECK_S = 5.0

# The kinds of answers.
BATCH, OVER, FAILED = "batch", "over", "failed"

END = object()
"""Returned in place of a batch at the end."""


@dataclass(frozen=True)
class WorkerInfo:
    """The number of this worker process, and the number of all workers."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    """This process's copy."""


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Identifies this worker process; None outside of a DataLoader's workers."""
    return _info


@dataclass(frozen=True)
class Plan:
    """The dataset and fetch options, equal in the consumer's own process and in workers."""

    dataset: Dataset[Any]
    collate: Callable[[Any], Any]
    batch_size: int | None
    """Batch size of an IterableDataset; None: single samples."""
    drop_last: bool
    is_batched: bool

    def fetcher(self) -> Callable[[Any], Any]:
        """A function that maps the sampler's output to a batch, or END."""
        if isinstance(self.dataset, IterableDataset):
            return _Stream(self, iter(self.dataset))
        return self._fetch

    def _fetch(self, wanted: Any) -> Any:
        if not self.is_batched:
            return self.collate(self.dataset[wanted])
        whole = getattr(self.dataset, "__getitems__", None)
        samples = whole(wanted) if whole else [self.dataset[index] for index in wanted]
        return self.collate(samples)


class _Stream:
    """Batches of an IterableDataset."""

    def __init__(self, plan: Plan, samples: Iterator[Any]) -> None:
        self._plan = plan
        self._samples = samples
        self._is_over = False

    def __call__(self, _: Any) -> Any:
        plan = self._plan
        if self._is_over:
            return END
        if plan.batch_size is None:
            for sample in self._samples:
                return plan.collate(sample)
            return self._end()
        batch = list(islice(self._samples, plan.batch_size))
        if len(batch) < plan.batch_size:
            self._end()
        if not batch or (len(batch) < plan.batch_size and plan.drop_last):
            return END
        return plan.collate(batch)

    def _end(self) -> object:
        self._is_over = True
        return END


def work(
    connection: Connection,
    others: Iterable[Connection],
    plan: Plan,
    info: tuple[int, int, int],
    init: Callable[[int], Any] | None,
) -> None:
    """The main function of a worker. `others` are the consumer's ends that a fork inherited."""
    # In this order, so that a signal that arrives in between is dropped.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    for other in others:
        other.close()
    _begin(WorkerInfo(*info, plan.dataset))
    parent = os.getppid()
    failure: tuple[bytes, list[Any]] | None = None
    try:
        if init is not None:
            init(info[0])
    except Exception as error:
        failure = _describe(error)
    epoch, fetch = -1, None
    while True:
        try:
            while not connection.poll(CHECK_S):
                if os.getppid() != parent:
                    return
            asked_epoch, task, wanted = connection.recv()
        except (EOFError, OSError):
            return
        if failure is None and asked_epoch != epoch:
            epoch, fetch = asked_epoch, None
        kind, body = FAILED, failure
        if body is None:
            try:
                with record_function("data::fetch", phase="data"):
                    fetch = fetch or plan.fetcher()
                    batch = fetch(wanted)
                    kind, body = (OVER, pack(None)) if batch is END else (BATCH, pack(batch))
            except Exception as error:
                kind, body = FAILED, _describe(error)
            batch = None
        try:
            send(connection, (asked_epoch, task, kind), body)
        except OSError as error:
            if isinstance(error, BrokenPipeError | ConnectionResetError):
                return
            # No memory for the batch: report it in a few bytes.
            send(connection, (asked_epoch, task, FAILED), _describe(error))


def _begin(info: WorkerInfo) -> None:
    global _info
    _info = info
    random.seed(info.seed)
    manual_seed(info.seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed([info.seed >> 32, info.seed & 0xFFFFFFFF])


def _describe(error: BaseException) -> tuple[bytes, list[Any]]:
    """The exception's class and its traceback, if the class can be pickled by name."""
    text = "".join(traceback.format_exception(error))
    try:
        return pickle.dumps((type(error), text)), []
    except Exception:
        return pickle.dumps((RuntimeError, text)), []


class _Text(str):
    """A string whose repr keeps its line breaks, since KeyError shows its argument's repr."""

    def __repr__(self) -> str:
        return str(self)


def failed(worker: int, described: tuple[type[BaseException], str]) -> BaseException:
    """The exception to raise for a worker's exception: same class, with its traceback as text."""
    kind, text = described
    message = f"in DataLoader worker {worker}:\n{text.rstrip()}"
    try:
        return kind(_Text(message) if issubclass(kind, KeyError) else message)
    except Exception:
        return RuntimeError(message)
