"""`Executor`: the queue of one loaded model and the threads that run its batches.

Everything but the runs happens on the event loop's thread: no lock is needed. A run is C without
the GIL, on one of `instances` threads; each waits for its next batch.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from time import monotonic_ns
from typing import Any

from opscope.serving.batcher import Batcher, Queued, QueueFullError
from opscope.serving.faults import Reason, RequestError
from opscope.serving.loaded_model import LoadedModel
from opscope.serving.observed import Observer, QueueRange, is_observed
from opscope.serving.plans import Plan
from opscope.serving.request import InferReply, InferRequest

_log = logging.getLogger("opscope.serving")
Answer = InferReply | RequestError
Done = Callable[[Answer], None]


class Ticket(Queued[InferRequest]):
    """A request that has no answer yet."""

    __slots__ = ("done", "range")

    done: Done | None
    """Called once, on the loop's thread, unless the request is cancelled."""
    range: QueueRange | None


_Batch = list[Any]
"""Of tickets."""


class Executor:
    """Answers the requests for one version of a model. Made and used on the event loop's thread."""

    def __init__(self, model: LoadedModel, clock_ns: Callable[[], int] = monotonic_ns) -> None:
        self.model = model
        self.observer = Observer(model.name, model.version)
        self._clock_ns = clock_ns
        self._loop = asyncio.get_running_loop()
        self.plans: dict[str, dict[bytes, Plan]] = {"http": {}, "grpc": {}}
        """What the last heads of requests meant, by protocol."""
        self.reply_heads: dict[Any, bytes] = {}
        """The heads of the last answers, by what they depend on."""
        self._queue: Batcher[InferRequest] = Batcher(model.config.rule)
        self._batches: SimpleQueue[_Batch | None] = SimpleQueue()
        self._free = model.config.instances
        self._is_pump_due = False
        self._is_observed = False
        self._arrived = 0
        """Requests that `pending` does not count yet."""
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ns = 0
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
        answer: asyncio.Future[InferReply] = self._loop.create_future()
        ticket = self.submit(request, partial(settle, answer))
        try:
            return await answer
        except asyncio.CancelledError:
            self.cancel(ticket)
            raise

    def submit(self, request: InferRequest, done: Done) -> Ticket:
        """Puts a request into the queue; `done` gets its answer later. Raises RequestError if the
        queue is full."""
        now = self._clock_ns()
        ticket = Ticket(
            request,
            request.inputs[0].shape[0] if self.model.config.is_batched else 1,
            request.key,
            request.bytes,
            now,
            None if request.timeout_ns is None else now + request.timeout_ns,
        )
        try:
            self._queue.offer(ticket)
        except QueueFullError as error:
            self.observer.failed(Reason.OVERLOAD)
            raise RequestError(Reason.OVERLOAD, f"model {self.model.name}: {error}") from None
        ticket.done = done
        if not self._is_pump_due:
            self._pump_soon()
            # Calls of C release the GIL: once for all requests that arrive together.
            self._is_observed = is_observed()
        ticket.range = self.observer.queue_range(request.trace) if self._is_observed else None
        self._in_flight += 1
        self._arrived += 1
        self._idle.clear()
        return ticket

    def cancel(self, ticket: Ticket) -> bool:
        """Nobody waits for the answer any more; False if it has been given."""
        if ticket.done is None:
            return False
        if self._queue.remove(ticket):
            self.observer.pending.add(-1)
            _end(ticket, failed=True)
        ticket.done = None
        self.observer.failed(Reason.CANCELED)
        self._leave()
        return True

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
        self._is_pump_due = True
        self._loop.call_soon(self._pump)

    def _pump(self) -> None:
        self._is_pump_due = False
        if self._arrived:
            self.observer.pending.add(self._arrived)
            self._arrived = 0
        while True:
            now = self._clock_ns()
            taken = self._queue.take(now, is_free=self._free > 0)
            for one in taken.expired:
                self.observer.pending.add(-1)
                _end(one, failed=True)
                late = "the request waited longer than its timeout"
                self._answer(one, RequestError(Reason.DEADLINE, late))
            if not taken.batch:
                break
            self._free -= 1
            for one in taken.batch:
                _end(one)
            self._batches.put(taken.batch)
            self.observer.pending.add(-len(taken.batch))
            self.observer.queue_us.add(sum([now - one.arrived_ns for one in taken.batch]) // 1000)
        self._set_timer(taken.wait_until_ns)

    def _set_timer(self, at_ns: int | None) -> None:
        """A timer that is early is left: then nothing goes, and the next one is set."""
        if self._timer is not None:
            if at_ns is not None and self._timer_ns <= at_ns:
                return
            self._timer.cancel()
            self._timer = None
        if at_ns is not None:
            delay_s = max(0, at_ns - self._clock_ns()) / 1e9
            self._timer = self._loop.call_later(delay_s, self._on_timer)
            self._timer_ns = at_ns

    def _on_timer(self) -> None:
        self._timer = None
        self._pump()

    def _finish(self, batch: _Batch, answers: list[Answer]) -> None:
        self._free += 1
        if len(self._queue):
            # Before the answers are sent: the model works meanwhile.
            self._pump()
        now = self._clock_ns()
        waits = [
            now - one.arrived_ns
            for one, answer in zip(batch, answers, strict=True)
            if one.done is not None and not isinstance(answer, RequestError)
        ]
        if waits:
            self.observer.succeeded.add(len(waits))
            self.observer.request_us.add(sum(waits) // 1000)
        for one, answer in zip(batch, answers, strict=True):
            self._answer(one, answer)

    def _answer(self, one: Any, answer: Answer) -> None:
        done, one.done = one.done, None
        if done is None:
            return  # cancelled meanwhile
        if isinstance(answer, RequestError):
            self.observer.failed(answer.reason)
        self._leave()
        try:
            done(answer)
        except Exception:
            # The others of its batch get theirs.
            _log.exception("an answer of the model %s was not sent", self.model.name)

    def _leave(self) -> None:
        self._in_flight -= 1
        if not self._in_flight:
            self._idle.set()

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

    def _run(self, batch: _Batch) -> list[Answer]:
        rows = sum(one.rows for one in batch)
        requests = [one.payload for one in batch]
        trace = next((one.trace for one in requests if one.trace is not None), None)
        start = self._clock_ns()
        with self.observer.batch(rows, trace):
            answers = self.model.run(requests)
        self.observer.infer_us.add((self._clock_ns() - start) * len(batch) // 1000)
        self.observer.batches.add()
        self.observer.rows.add(rows)
        return answers


def _end(ticket: Any, *, failed: bool = False) -> None:
    if ticket.range is not None:
        ticket.range.end(failed=failed)
        ticket.range = None


def settle(future: asyncio.Future[InferReply], answer: Answer) -> None:
    """Makes an answer the result of a future."""
    if future.done():
        return  # cancelled, which is on its way
    if isinstance(answer, RequestError):
        future.set_exception(answer)
    else:
        future.set_result(answer)
