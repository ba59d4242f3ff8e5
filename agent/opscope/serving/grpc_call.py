"""`Call`: a call of gRPC by the operations of grpcio's completion queue.

The queue is grpcio's own layer between Python and C, which both of its servers use, but it is no
public interface: `is_usable` says whether this version of grpcio has it as it is used here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from importlib import import_module
from time import time
from typing import Any

core: Any
try:
    core = import_module("grpc._cython.cygrpc")
except ImportError:
    core = None

_NO_FLAGS = 0
_USED = {
    "CompletionQueue": ("poll", "shutdown"),
    "CompletionType": ("queue_shutdown", "queue_timeout"),
    "Server": (
        "add_http2_port",
        "cancel_all_calls",
        "destroy",
        "register_completion_queue",
        "request_call",
        "shutdown",
        "start",
    ),
}
_FAR_S = 1e12
"""A deadline beyond it is none."""

Direct = Callable[["Call", bytes], None]
"""Gets a call and its message; answers now or later."""


def is_usable() -> bool:
    """Whether this version of grpcio has the queue as this module and grpc_queue.py know it."""
    try:
        core.ReceiveCloseOnServerOperation(_NO_FLAGS)
        core.ReceiveMessageOperation(_NO_FLAGS)
        core.SendInitialMetadataOperation(None, _NO_FLAGS)
        core.SendMessageOperation(b"", _NO_FLAGS)
        core.SendStatusFromServerOperation(None, core.StatusCode.ok, b"", _NO_FLAGS)
    except (AttributeError, TypeError):
        return False
    return all(
        hasattr(getattr(core, kind, None), name) for kind, names in _USED.items() for name in names
    )


class Queue:
    """grpcio's queue of what the core has done, and whether operations may still begin on it."""

    __slots__ = ("core", "is_open")

    def __init__(self) -> None:
        self.core = core.CompletionQueue()
        self.is_open = True

    def close(self) -> None:
        """Then it ends when all operations have; the core aborts the process if one begins."""
        self.is_open = False
        self.core.shutdown()


class Call:
    """A call of a client. Used on the loop's thread, as everything here."""

    __slots__ = (
        "_call",
        "_deadline_s",
        "_direct",
        "_has_begun",
        "_queue",
        "is_over",
        "metadata",
        "on_cancel",
    )

    def __init__(self, event: Any, queue: Queue) -> None:
        self._call = event.call
        self._queue = queue
        self._deadline_s: float = event.call_details.deadline
        self._direct: Direct | None = None
        self._has_begun = False
        """Whether an answer has."""
        self.is_over = False
        """No answer can be sent any more: one has been, or the client has gone."""
        self.metadata: Sequence[tuple[str, str | bytes]] = event.invocation_metadata
        self.on_cancel: Callable[[], object] | None = None
        """Called once if the client goes before the answer."""

    def time_remaining(self) -> float | None:
        """Seconds until the client's deadline, if it has one."""
        if self._deadline_s > _FAR_S:
            return None
        return max(0.0, self._deadline_s - time())

    def answer(self, message: bytes) -> None:
        """Sends the one answer, and that all is well."""
        if not self.is_over:
            self._finish(
                *self._begun(),
                core.SendMessageOperation(message, _NO_FLAGS),
                core.SendStatusFromServerOperation(None, core.StatusCode.ok, b"", _NO_FLAGS),
            )

    def end(self, status: str, text: str) -> None:
        """Ends the call with a status by the name that grpc.StatusCode has for it."""
        if not self.is_over:
            code = getattr(core.StatusCode, status.lower())
            self._finish(
                *self._begun(),
                core.SendStatusFromServerOperation(None, code, text.encode(), _NO_FLAGS),
            )

    async def receive(self) -> bytes | None:
        """The next message of the client; None after the last one, or if it has gone."""
        event = await self._done(core.ReceiveMessageOperation(_NO_FLAGS))
        message: bytes | None = event.batch_operations[0].message()
        return message

    async def send(self, message: bytes) -> None:
        """Sends one of several answers."""
        if not self.is_over:
            await self._done(*self._begun(), core.SendMessageOperation(message, _NO_FLAGS))

    def receive_for(self, direct: Direct) -> None:
        """Calls the function with the one message of the client."""
        self._direct = direct
        self._start((core.ReceiveMessageOperation(_NO_FLAGS),), self._received)

    def watch(self) -> None:
        """Notices if the client goes."""
        self._start((core.ReceiveCloseOnServerOperation(_NO_FLAGS),), self._closed)

    def _received(self, event: Any) -> None:
        message = event.batch_operations[0].message()
        direct, self._direct = self._direct, None
        if message is None:
            self.end("UNIMPLEMENTED", "the call takes one message")
        elif direct is not None and not self.is_over:
            direct(self, message)

    def _closed(self, event: Any) -> None:
        if event.batch_operations[0].cancelled() and not self.is_over:
            self.is_over = True
            cancel, self.on_cancel = self.on_cancel, None
            if cancel is not None:
                cancel()

    def _begun(self) -> tuple[Any, ...]:
        if self._has_begun:
            return ()
        self._has_begun = True
        return (core.SendInitialMetadataOperation(None, _NO_FLAGS),)

    def _finish(self, *operations: Any) -> None:
        self.is_over = True
        self.on_cancel = None
        self._start(operations, _nothing)

    def _start(self, operations: tuple[Any, ...], then: Callable[[Any], None]) -> None:
        if self._queue.is_open:
            self._call.start_server_batch(operations, then)

    async def _done(self, *operations: Any) -> Any:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def settle(event: Any) -> None:
            if not future.done():
                future.set_result(event)

        if self._queue.is_open:
            self._start(operations, settle)
        else:
            future.cancel()
        return await future


def _nothing(event: Any) -> None:
    """What follows an answer."""
