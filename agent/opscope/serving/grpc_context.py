"""Runs handlers of gRPC that are coroutines or asynchronous generators, as grpc.aio does."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Any, NoReturn

import grpc

from opscope.serving.grpc_call import Call

_log = logging.getLogger("opscope.serving")


class AbortError(Exception):
    """A handler ended its call."""

    def __init__(self, status: str, text: str) -> None:
        super().__init__(text)
        self.status = status


class Context:
    """What handlers here and grpcio's health and reflection use of grpc.aio.ServicerContext."""

    def __init__(self, call: Call, serialize: Any) -> None:
        self._call = call
        self._serialize = serialize

    def invocation_metadata(self) -> Any:
        return self._call.metadata

    def time_remaining(self) -> float | None:
        return self._call.time_remaining()

    async def write(self, reply: Any) -> None:
        await self._call.send(self._serialize(reply))

    async def abort(self, code: grpc.StatusCode, details: str = "") -> NoReturn:
        raise AbortError(code.name, details)


async def run_handler(handler: Any, call: Call) -> None:
    """Answers a call by a handler of grpc.*_rpc_method_handler. Never raises, unless cancelled."""
    serialize = handler.response_serializer or bytes
    context = Context(call, serialize)
    try:
        asked: Any
        if handler.request_streaming:
            asked = _messages(call, handler)
        else:
            message = await call.receive()
            if message is None:
                call.end("UNIMPLEMENTED", "the call takes one message")
                return
            asked = _read(handler, message)
        if handler.response_streaming:
            given = (handler.stream_stream or handler.unary_stream)(asked, context)
            if hasattr(given, "__aiter__"):
                async for one in given:
                    await context.write(one)
            else:
                await given
            call.end("OK", "")
        else:
            reply = await (handler.stream_unary or handler.unary_unary)(asked, context)
            call.answer(serialize(reply))
    except AbortError as end:
        call.end(end.status, str(end))
    except Exception:
        _log.exception("a call of gRPC failed")
        call.end("UNKNOWN", "the server failed")


async def _messages(call: Call, handler: Any) -> AsyncIterator[Any]:
    while (message := await call.receive()) is not None:
        yield _read(handler, message)


def _read(handler: Any, message: bytes) -> Any:
    if handler.request_deserializer is None:
        return message
    try:
        return handler.request_deserializer(message)
    except Exception:
        raise AbortError("INTERNAL", "the message cannot be read") from None
