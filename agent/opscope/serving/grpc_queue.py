"""A gRPC server on the event loop, over grpcio's completion queue: most of its cost is the core's.

grpcio's server for asyncio makes two tasks and several futures for each call, and its thread wakes
the event loop four times. That is five times the cost of a call in grpcio's core, which is of C.
Here the loop itself takes what the core has done from the queue, until the queue is empty. Only
then a thread waits for the next event, and wakes the loop once.

`Server` takes handlers and settings as grpc.aio.Server does, which replaces it where
grpc_call.py finds that it cannot use the queue. grpc_context.py runs handlers that are coroutines.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from opscope.serving.grpc_call import Call, Direct, Queue, core
from opscope.serving.grpc_context import run_handler

_log = logging.getLogger("opscope.serving")
_AWAITED_CALLS = 32
"""New calls that the core may hand over before the loop asks for more."""
_BURST = 256
"""Events in a row before the loop turns to its other work."""


class _Asked(NamedTuple):
    """grpc.HandlerCallDetails."""

    method: str
    invocation_metadata: Any


class Server:
    """Made, started and stopped on a running event loop."""

    def __init__(self, options: Iterable[tuple[str, Any]]) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue = Queue()
        self._server = core.Server(tuple(options), False)
        self._server.register_completion_queue(self._queue.core)
        self._handlers: list[Any] = []
        self._direct: dict[bytes, Direct] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._timeout = core.CompletionType.queue_timeout
        self._shut = core.CompletionType.queue_shutdown
        self._first: Any = None
        """The event that the thread has taken for the loop."""
        self._is_empty = threading.Lock()
        """Released when the loop has taken everything: the thread waits again."""
        self._is_empty.acquire()
        self._is_idle = False
        """Whether the queue was empty when the loop last looked."""
        self._has_ended = False
        self._is_stopped: asyncio.Future[None] = self._loop.create_future()
        self._thread = threading.Thread(target=self._wait, name="grpc", daemon=True)

    # ---- as grpc.aio.Server --------------------------------------------------------------------

    def add_generic_rpc_handlers(self, handlers: Sequence[Any]) -> None:
        self._handlers += handlers

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Any]) -> None:
        """Another way to what the generic ones find."""

    def add_insecure_port(self, address: str) -> int:
        return self._port(address)

    def add_secure_port(self, address: str, credentials: Any) -> int:
        return self._port(address, credentials._credentials)

    def _port(self, address: str, *credentials: Any) -> int:
        found: int = self._server.add_http2_port(address.encode(), *credentials)
        if not found:
            raise RuntimeError(f"cannot listen on {address}")
        return found

    async def start(self) -> None:
        self._server.start()
        for _ in range(_AWAITED_CALLS):
            self._await_call()
        self._thread.start()

    async def stop(self, grace_s: float | None) -> None:
        """Takes no more calls; cancels those that are not answered in time."""
        if not self._thread.is_alive():
            self._server.destroy()
            return
        self._server.shutdown(self._queue.core, self._stopped)
        _, is_late = await asyncio.wait([self._is_stopped], timeout=grace_s or 0)
        if is_late:
            self._server.cancel_all_calls()
            for task in list(self._tasks):
                task.cancel()
            await self._is_stopped
        self._server.destroy()
        self._queue.close()
        await self._loop.run_in_executor(None, self._thread.join)

    # ---- calls ---------------------------------------------------------------------------------

    def add_direct(self, path: str, function: Direct) -> None:
        """Calls of this path get no task: the function is called with each one's message."""
        self._direct[path.encode()] = function

    def _await_call(self) -> None:
        queue = self._queue.core
        self._server.request_call(queue, queue, self._called)

    def _called(self, event: Any) -> None:
        if not event.success:
            return  # the server stops
        self._await_call()
        call = Call(event, self._queue)
        call.watch()
        method = event.call_details.method
        direct = self._direct.get(method)
        if direct is not None:
            call.receive_for(direct)
            return
        asked = _Asked(method.decode(errors="replace"), call.metadata)
        handler = next((found for one in self._handlers if (found := one.service(asked))), None)
        if handler is None:
            call.end("UNIMPLEMENTED", "the server has no such method")
            return
        task = self._loop.create_task(run_handler(handler, call))
        call.on_cancel = task.cancel
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _stopped(self, event: Any) -> None:
        self._is_stopped.set_result(None)

    # ---- events --------------------------------------------------------------------------------

    def _wait(self) -> None:
        """The thread: waits for an event while the loop has none."""
        while not self._has_ended:
            self._first = self._queue.core.poll()
            try:
                self._loop.call_soon_threadsafe(self._take)
            except RuntimeError:
                return  # the loop has ended
            self._is_empty.acquire()

    def _take(self) -> None:
        """Handles all events that are there."""
        event, self._first = self._first, None
        poll, timeout = self._queue.core.poll, self._timeout
        for _ in range(_BURST):
            if event is None:
                event = poll(0)
            if event.completion_type == timeout:
                if self._is_idle:
                    self._is_empty.release()
                else:
                    # What the answers of this burst set off is often there by then.
                    self._is_idle = True
                    self._loop.call_soon(self._take)
                return
            self._is_idle = False
            if event.completion_type == self._shut:
                self._has_ended = True
                self._is_empty.release()
                return
            try:
                event.tag(event)
            except Exception:
                _log.exception("an event of gRPC was not handled")
            # A call lives as long as anything refers to it.
            event = None
        self._loop.call_soon(self._take)
