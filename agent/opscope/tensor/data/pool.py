"""The workers of a DataLoader, seen from the consumer: started, asked, listened to, ended.

A pipe a worker and no thread: the consumer listens to the worker whose batch is next, so nobody
else's fate matters before its turn. A worker that died is an end of file on its pipe.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Any

from opscope.record import children
from opscope.tensor.data.transport import Parcel, receive
from opscope.tensor.data.worker import Plan, work

children.follow()

# How long ending workers may take to finish the batch they are at.
GRACE_S = 5.0


class Workers:
    """``count`` processes that fetch by ``plan``; ended by close(), or with this object."""

    def __init__(
        self,
        plan: Plan,
        count: int,
        seed: int,
        init: Callable[[int], Any] | None,
        context: str | BaseContext | None,
    ) -> None:
        if not isinstance(context, BaseContext):
            context = multiprocessing.get_context(context)
        with _interrupts_noted():
            _start_what_all_share(context)
        self.count = count
        self.epoch = -1
        self._connections: list[Connection] = []
        self._processes: list[BaseProcess] = []
        self._arrived: list[deque[Parcel]] = [deque() for _ in range(count)]
        self._end = weakref.finalize(self, _end, os.getpid(), self._connections, self._processes)
        try:
            for number in range(count):
                self._start(context, plan, (number, count, seed + number), init)
        except BaseException:
            self.close()
            raise

    def _start(
        self,
        context: BaseContext,
        plan: Plan,
        info: tuple[int, int, int],
        init: Callable[[int], Any] | None,
    ) -> None:
        own, theirs = context.Pipe(duplex=True)
        self._connections.append(own)
        # Only a fork has our ends too, and would keep the others' pipes open.
        others = tuple(self._connections) if context.get_start_method() == "fork" else ()
        process: BaseProcess = context.Process(  # type: ignore[attr-defined]
            target=work,
            args=(theirs, others, plan, info, init),
            name=f"DataLoader-{info[0]}",
            daemon=True,
        )
        with _interrupts_noted(), _interrupts_blocked():
            try:
                process.start()
            finally:
                theirs.close()
            self._processes.append(process)

    def ask(self, worker: int, message: Any) -> None:
        """Have a worker fetch. Its answers are taken in first, so that it cannot be waiting to be
        heard while we wait for it to listen."""
        connection = self._connections[worker]
        try:
            while connection.poll():
                self._arrived[worker].append(receive(connection))
            connection.send(message)
        except (EOFError, OSError):
            pass  # told when its answer is waited for

    def answer(self, worker: int, timeout_s: float) -> Parcel:
        """The next answer of a worker. RuntimeError where it died, or (timeout_s not 0) is late."""
        if self._arrived[worker]:
            return self._arrived[worker].popleft()
        connection, process = self._connections[worker], self._processes[worker]
        ready = wait([connection, process.sentinel], timeout_s or None)
        if not ready:
            raise RuntimeError(
                f"DataLoader worker {worker} (pid {process.pid}) has sent no batch for "
                f"{timeout_s:g} s, the loader's timeout"
            )
        try:
            # Dead or not: what it had sent is good.
            if connection in ready or connection.poll():
                return receive(connection)
        except (EOFError, OSError):
            pass
        process.join(GRACE_S)
        raise RuntimeError(
            f"DataLoader worker {worker} (pid {process.pid}) {_fate(process.exitcode)} before it "
            "had sent its batch"
        )

    def close(self, at_once: bool = False) -> None:
        """End the workers, ``at_once`` or when they have finished the batch they are at; repeating
        does nothing."""
        if at_once and self._end.alive:
            for process in self._processes:
                process.terminate()
        self._end()


def _start_what_all_share(context: BaseContext) -> None:
    """The processes that a start method starts by the way, once for the whole program: they keep
    the mask they are started with, and one of them takes SIGINT out of the caller's."""
    method = context.get_start_method()
    if method != "fork":
        resource_tracker.ensure_running()
    if method == "forkserver":
        forkserver.ensure_running()


@contextmanager
def _interrupts_noted() -> Iterator[None]:
    """What SIGINT does in this process waits until the block is left.

    A mask would not do: it holds the signal off one thread, the kernel gives it to another, such as
    BLAS has, and Python interrupts the main thread all the same.
    """
    came: list[tuple[int, FrameType | None]] = []
    handler = signal.getsignal(signal.SIGINT)
    is_noting = False
    if callable(handler):
        with suppress(ValueError):  # not on the main thread: the only one that can be interrupted
            signal.signal(signal.SIGINT, lambda *interrupt: came.append(interrupt))
            is_noting = True
    try:
        yield
    finally:
        if is_noting:
            signal.signal(signal.SIGINT, handler)
        if came and callable(handler):
            handler(*came[-1])


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """SIGINT waits at what is started within: forks and what they execute inherit the mask. Those
    of a fork server have its mask, and can be interrupted until they are at work."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _fate(exitcode: int | None) -> str:
    if exitcode is None:
        return "closed its pipe"
    if exitcode >= 0:
        return f"exited with status {exitcode}"
    name = signal.Signals(-exitcode).name
    hint = ", perhaps by the kernel for want of memory," if name == "SIGKILL" else ""
    return f"was killed by {name}{hint}"


def _end(pid: int, connections: list[Connection], processes: list[BaseProcess]) -> None:
    if os.getpid() != pid:
        return  # a fork of the consumer: the workers are not its own
    for connection in connections:
        connection.close()
    deadline = time.monotonic() + GRACE_S
    for process in processes:
        process.join(max(0.0, deadline - time.monotonic()))
    for stop in (BaseProcess.terminate, BaseProcess.kill):
        for process in processes:
            if process.exitcode is None:
                stop(process)
        for process in processes:
            process.join(1.0)
    for process in processes:
        if process.exitcode is not None:
            process.close()
