"""`Executor`: the queue of one loaded model and the threads that run its batches.

Everything but the runs happens on the event loop's thread: no lock is needed. A run is C without
the GIL, on one of `instances` threads; each waits for its next batch.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from time import monotonic_ns

from opscope.serving.batcher import Batcher, Queued, QueueFullError
from opscope.serving.faults import Reason, RequestError
from opscope.serving.loaded_model import LoadedModel
from opscope.serving.observed import Observer, QueueRange
from opscope.serving.request import InferReply, InferRequest

_Answer = InferReply | RequestError


class _Waiting:
    """What the queue keeps of a request."""

    __slots__ = ("answer", "range", "request")

    def __init__(self, request: InferRequest, answer: asyncio.Future[InferReply]) -> None:
        self.request = request
        self.answer = answer
        self.range: QueueRange | None = None


_Batch = list[Queued[_Waiting]]


class Executor:
    """Answers the requests for one version of a model. Made and used on the event loop's thread."""

    def __init__(self, model: LoadedModel, clock_ns: Callable[[], int] = monotonic_ns) -> None:
        self.model = model
        self.observer = Observer(model.name, model.version)
        self._clock_ns = clock_ns
        self._loop = asyncio.get_running_loop()
        self._queue: Batcher[_Waiting] = Batcher(model.config.rule)
        self._batches: SimpleQueue[_Batch | None] = SimpleQueue()
        self._free = model.config.instances
        self._is_pump_due = False
        self._timer: asyncio.TimerHandle | None = None
        self._in_flight = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._threads = [
            threading.Thread(
                target=self._run_batches, name=f"{model.name}/{model.version}", daemon=True
            )
            for _ in range(model.config.instances)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def in_flight(self) -> int:
        """Requests that wait or run."""
        return self._in_flight

    async def infer(self, request: InferRequest) -> InferReply:
        """The answer, or RequestError. A request whose caller is cancelled leaves the queue."""
        now = self._clock_ns()
        waiting = _Waiting(request, self._loop.create_future())
        queued = Queued(
            waiting,
            rows=request.inputs[0].shape[0] if self.model.config.is_batched else 1,
            shape=tuple(one.shape[1:] for one in request.inputs),
            bytes=request.bytes,
            arrived_ns=now,
            deadline_ns=None if request.timeout_ns is None else now + request.timeout_ns,
        )
        try:
            self._queue.offer(queued)
        except QueueFullError as error:
            self.observer.failed(Reason.OVERLOAD)
            raise RequestError(Reason.OVERLOAD, f"model {self.model.name}: {error}") from None
        waiting.range = self.observer.queue_range(request.trace)
        self._in_flight += 1
        self._idle.clear()
        self.observer.pending.add(1)
        self._pump_soon()
        try:
            reply = await waiting.answer
        except asyncio.CancelledError:
            if self._queue.remove(queued):
                self.observer.pending.add(-1)
                _end(waiting, failed=True)
            self.observer.failed(Reason.CANCELED)
            raise
        except RequestError as fault:
            self.observer.failed(fault.reason)
            raise
        finally:
            self._in_flight -= 1
            if not self._in_flight:
                self._idle.set()
        self.observer.succeeded.add()
        self.observer.request_us.add((self._clock_ns() - now) // 1000)
        return reply

    async def close(self) -> None:
        """Waits for all requests' answers, then ends the threads."""
        await self._idle.wait()
        if self._timer is not None:
            self._timer.cancel()
        for _ in self._threads:
            self._batches.put(None)

    # ---- the event loop's side -----------------------------------------------------------------

    def _pump_soon(self) -> None:
        """After what is ready now: requests that arrived together share a batch."""
        if not self._is_pump_due:
            self._is_pump_due = True
            self._loop.call_soon(self._pump)

    def _pump(self) -> None:
        self._is_pump_due = False
        while True:
            now = self._clock_ns()
            taken = self._queue.take(now, is_free=self._free > 0)
            for one in taken.expired:
                self.observer.pending.add(-1)
                _end(one.payload, failed=True)
                _answer(
                    one, RequestError(Reason.DEADLINE, "the request waited longer than its timeout")
                )
            if not taken.batch:
                break
            self._free -= 1
            self.observer.pending.add(-len(taken.batch))
            self.observer.queue_us.add(sum(now - one.arrived_ns for one in taken.batch) // 1000)
            for one in taken.batch:
                _end(one.payload)
            self._batches.put(taken.batch)
        self._set_timer(taken.wait_until_ns)

    def _set_timer(self, at_ns: int | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if at_ns is not None:
            delay_s = max(0, at_ns - self._clock_ns()) / 1e9
            self._timer = self._loop.call_later(delay_s, self._pump)

    def _finish(self, batch: _Batch, answers: list[_Answer]) -> None:
        self._free += 1
        for one, answer in zip(batch, answers, strict=True):
            _answer(one, answer)
        if len(self._queue):
            self._pump_soon()

    # ---- the threads' side ---------------------------------------------------------------------

    def _run_batches(self) -> None:
        while (batch := self._batches.get()) is not None:
            answers = self._run(batch)
            try:
                self._loop.call_soon_threadsafe(self._finish, batch, answers)
            except RuntimeError:
                return  # the loop has ended: nobody waits for answers
            # Tensors are freed before the next batch is there, not after.
            del batch, answers

    def _run(self, batch: _Batch) -> list[_Answer]:
        rows = sum(one.rows for one in batch)
        requests = [one.payload.request for one in batch]
        trace = next((one.trace for one in requests if one.trace is not None), None)
        start = self._clock_ns()
        with self.observer.batch(rows, trace):
            answers = self.model.run(requests)
        self.observer.infer_us.add((self._clock_ns() - start) * len(batch) // 1000)
        self.observer.batches.add()
        self.observer.rows.add(rows)
        return answers


def _end(waiting: _Waiting, *, failed: bool = False) -> None:
    if waiting.range is not None:
        waiting.range.end(failed=failed)
        waiting.range = None


def _answer(one: Queued[_Waiting], answer: _Answer) -> None:
    future = one.payload.answer
    if future.done():
        return  # cancelled meanwhile
    if isinstance(answer, RequestError):
        future.set_exception(answer)
    else:
        future.set_result(answer)
