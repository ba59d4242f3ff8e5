"""The workers of a DataLoader on the consumer's side: start, send tasks, receive answers, end.

Each worker has one pipe, and the consumer no thread: it listens only to the worker whose batch is
next. A worker that died shows as end of file on its pipe.
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

# Seconds that ending workers may take to finish their current batch.
GRACE_S = 5.0


class Workers:
    """`count` processes that fetch by `plan`; ended by close(), or with this object."""

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
        # Only a fork inherits the consumer's ends too, and would keep other pipes open.
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
        """Send a task to a worker. Reads its pending answers first: otherwise both sides could wait
        for each other."""
        connection = self._connections[worker]
        try:
            while connection.poll():
                self._arrived[worker].append(receive(connection))
            connection.send(message)
        except (EOFError, OSError):
            pass  # reported when its answer is awaited

    def answer(self, worker: int, timeout_s: float) -> Parcel:
        """The next answer of a worker. RuntimeError if it died or exceeded a nonzero timeout."""
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
            # Dead or not, the answers that it sent are valid.
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
        """End the workers, `at_once` or after their current batch; a second call does nothing."""
        if at_once and self._end.alive:
            for process in self._processes:
                process.terminate()
        self._end()


def _start_what_all_share(context: BaseContext) -> None:
    """Start the helper processes of a start method, once for the whole program: they keep the
    signal mask of their start, and starting one of them unblocks SIGINT in the caller."""
    method = context.get_start_method()
    if method != "fork":
        resource_tracker.ensure_running()
    if method == "forkserver":
        forkserver.ensure_running()


@contextmanager
def _interrupts_noted() -> Iterator[None]:
    """Delays SIGINT's effect in this process until the end of the block.

    A signal mask does not suffice: it blocks one thread, but the kernel delivers the signal to
    another, such as a BLAS thread, and Python then interrupts the main thread.
    """
    came: list[tuple[int, FrameType | None]] = []
    handler = signal.getsignal(signal.SIGINT)
    is_noting = False
    if callable(handler):
        with suppress(ValueError):  # not on the main thread, which alone can be interrupted
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
    """Blocks SIGINT in processes started within the block, which inherit the mask. Processes of a
    fork server have the server's mask, and can be interrupted until they are at work."""
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
        return  # in a fork of the consumer: the workers do not belong to it
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
