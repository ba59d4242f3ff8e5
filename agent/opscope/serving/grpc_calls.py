"""The calls of gRPC: messages to requests, answers to messages."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from opscope import tensor as ot
from opscope.errors import OpscopeError
from opscope.serving import datatypes, plans, request, tensors, trace_context, wire
from opscope.serving.access import Access
from opscope.serving.executor import Answer, Executor
from opscope.serving.faults import Reason, RequestError, bad_request
from opscope.serving.grpc_call import Call
from opscope.serving.protocol import EXTENSIONS, REPLIES, REQUESTS
from opscope.serving.request import InferReply, InferRequest
from opscope.serving.service import NAME, VERSION, Service, checked

_log = logging.getLogger("opscope.serving")
_Context = Any  # grpc.aio.ServicerContext
_Metadata = Iterable[tuple[str, Any]]
_Call = Callable[[bytes, _Context], Awaitable[bytes]]
_MILLION = 1_000_000_000


class Calls:
    """One method for each call of the service, from a message's bytes to the answer's."""

    def __init__(self, service: Service, access: Access) -> None:
        self._service = service
        self._repository = service.repository
        self._access = access
        self._prefixes = wire.Prefixes()
        self._names: dict[bytes, tuple[str, str]] = {}
        """The model and version that the last heads named."""

    def handlers(self) -> dict[str, Any]:
        """As grpc.method_handlers_generic_handler takes them; messages stay bytes."""
        return {
            name: grpc.unary_unary_rpc_method_handler(self._answering(name)) for name in REQUESTS
        }

    def _answering(self, name: str) -> _Call:
        call: _Call = getattr(self, name)

        async def answer(message: bytes, context: _Context) -> bytes:
            try:
                self._check_access(context.invocation_metadata())
                return await call(message, context)
            except Exception as error:
                status, text = _fault(name, error)
            await context.abort(grpc.StatusCode[status], text)
            raise AssertionError  # abort raises

        return answer

    def _check_access(self, metadata: _Metadata | None) -> None:
        if self._access.tokens and not self._access.allows(
            dict(metadata or ()).get("authorization")
        ):
            raise RequestError(Reason.UNAUTHENTICATED, "the token is missing or wrong")

    # ---- health and metadata -------------------------------------------------------------------

    async def ServerLive(self, message: bytes, context: _Context) -> bytes:  # noqa: N802
        return _serialized("ServerLive", live=True)

    async def ServerReady(self, message: bytes, context: _Context) -> bytes:  # noqa: N802
        return _serialized("ServerReady", ready=self._repository.is_ready())

    async def ModelReady(self, message: bytes, context: _Context) -> bytes:  # noqa: N802
        asked = REQUESTS["ModelReady"].FromString(message)
        try:
            self._repository.find(asked.name, asked.version)
            is_ready = True
        except RequestError:
            is_ready = False
        return _serialized("ModelReady", ready=is_ready)

    async def ServerMetadata(self, message: bytes, context: _Context) -> bytes:  # noqa: N802
        return _serialized("ServerMetadata", name=NAME, version=VERSION, extensions=EXTENSIONS)

    async def ModelMetadata(self, message: bytes, context: _Context) -> bytes:  # noqa: N802
        asked = REQUESTS["ModelMetadata"].FromString(message)
        model = self._repository.find(asked.name, asked.version).model
        reply = REPLIES["ModelMetadata"](
            name=model.name,
            versions=self._repository.versions(model.name),
            platform=model.config.platform,
        )
        for specs, into in (
            (model.config.inputs, reply.inputs),
            (model.config.outputs, reply.outputs),
        ):
            for spec in specs:
                into.add(name=spec.name, datatype=spec.datatype, shape=spec.shape)
        return bytes(reply.SerializeToString())

    # ---- inference -----------------------------------------------------------------------------

    async def ModelInfer(self, message: bytes, context: _Context) -> bytes:  # noqa: N802
        remaining_s = context.time_remaining()
        executor, identity, asked = self._asked(message, context.invocation_metadata(), remaining_s)
        return _reply(executor, identity, await self._service.infer(executor, asked))

    def infer(self, call: Call, message: bytes) -> None:
        """ModelInfer without a task: the answer is sent where the batch ends."""
        try:
            metadata = call.metadata
            self._check_access(metadata)
            executor, identity, asked = self._asked(message, metadata, call.time_remaining())
            done = partial(_send, call, executor, identity)
            call.on_cancel = self._service.submit(executor, asked, done)
        except Exception as error:
            call.end(*_fault("ModelInfer", error))

    def _asked(
        self, message: bytes, metadata: _Metadata | None, remaining_s: float | None
    ) -> tuple[Executor, str, InferRequest]:
        """What a message asks which model for, and the identifier of its answer."""
        try:
            head, raw = self._prefixes.split(message)
        except ValueError as error:
            raise bad_request(str(error)) from None
        timeout_ns = None
        if remaining_s is not None:
            timeout_ns = max(1, int(remaining_s * _MILLION))
        trace = _trace(metadata)
        asked = None
        names = self._names.get(head)
        if names is None:
            asked = REQUESTS["ModelInfer"].FromString(head)
            names = asked.model_name, asked.model_version
        executor = self._repository.find(*names)
        try:
            plan = executor.plans["grpc"].get(head) if asked is None else None
            if plan is not None and len(raw) == len(plan.inputs):
                infer_request = plan.request(raw, _earlier(timeout_ns, plan.timeout_ns), trace)
                identity = plan.detail
            else:
                asked = asked or REQUESTS["ModelInfer"].FromString(head)
                identity = asked.id
                infer_request = _request(executor, asked, raw, timeout_ns, trace)
                if raw:
                    self._keep(executor, head, asked, infer_request)
        except RequestError as fault:
            executor.observer.failed(fault.reason)
            raise
        return executor, identity, infer_request

    def _keep(self, executor: Executor, head: bytes, asked: Any, found: InferRequest) -> None:
        """What the head means, without the deadline, which is the call's."""
        plans.keep(self._names, head, (asked.model_name, asked.model_version), len(head))
        names = [one.name for one in asked.inputs]
        made = plans.plan(executor.model.config, names, found, asked.id)
        own = request.timeout_ns(_parameters(asked))
        plans.keep(executor.plans["grpc"], head, made._replace(timeout_ns=own), len(head))

    # ---- Triton's repository -------------------------------------------------------------------

    async def RepositoryIndex(self, message: bytes, context: _Context) -> bytes:  # noqa: N802
        asked = REQUESTS["RepositoryIndex"].FromString(message)
        reply = REPLIES["RepositoryIndex"]()
        for one in self._repository.index(only_ready=asked.ready):
            reply.models.add(name=one.name, version=one.version, state=one.state, reason=one.reason)
        return bytes(reply.SerializeToString())

    async def RepositoryModelLoad(self, message: bytes, context: _Context) -> bytes:  # noqa: N802
        asked = REQUESTS["RepositoryModelLoad"].FromString(message)
        for name in asked.parameters:
            if name != "config":
                raise bad_request(f"the parameter {name[:60]!r} is unknown")
        config = asked.parameters["config"].string_param if asked.parameters else None
        await self._repository.load(asked.model_name, config)
        return b""

    async def RepositoryModelUnload(self, message: bytes, context: _Context) -> bytes:  # noqa: N802
        asked = REQUESTS["RepositoryModelUnload"].FromString(message)
        await self._repository.unload(asked.model_name)
        return b""


def _serialized(name: str, /, **fields: Any) -> bytes:
    return bytes(REPLIES[name](**fields).SerializeToString())


def _fault(name: str, error: Exception) -> tuple[str, str]:
    """The status and the text with which a call ends."""
    if isinstance(error, RequestError):
        return error.reason.grpc_status, str(error)
    if isinstance(error, (DecodeError, UnicodeDecodeError)):
        return "INVALID_ARGUMENT", f"the message is no {name}Request"
    if isinstance(error, OpscopeError):
        return "INVALID_ARGUMENT", str(error)
    _log.error("the call %s failed", name, exc_info=error)
    return "INTERNAL", "the server failed"


def _send(call: Call, executor: Executor, identity: str, answer: Answer) -> None:
    try:
        if isinstance(answer, RequestError):
            call.end(*_fault("ModelInfer", answer))
        else:
            call.answer(_reply(executor, identity, answer))
    except Exception as error:
        call.end(*_fault("ModelInfer", error))


def _trace(metadata: _Metadata | None) -> trace_context.TraceContext | None:
    for key, value in metadata or ():
        if key == trace_context.HEADER and isinstance(value, str):
            return trace_context.parse(value)
    return None


def _earlier(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return one or other
    return min(one, other)


def _parameters(asked: Any) -> dict[str, Any]:
    return {
        name: getattr(value, value.WhichOneof("parameter_choice") or "", None)
        for name, value in asked.parameters.items()
    }


def _request(
    executor: Executor,
    asked: Any,
    raw: list[memoryview],
    timeout_ns: int | None,
    trace: trace_context.TraceContext | None,
) -> InferRequest:
    timeout_ns = _earlier(timeout_ns, request.timeout_ns(_parameters(asked)))
    outputs = [one.name for one in asked.outputs]
    return checked(executor, _inputs(asked, raw), outputs, timeout_ns, trace)


def _reply(executor: Executor, identity: str, reply: InferReply) -> bytes:
    model = executor.model
    contents = [tensors.content(tensor) for tensor in reply.outputs.values()]
    key = identity, *[(name, tuple(tensor.shape)) for name, tensor in reply.outputs.items()]
    head = executor.reply_heads.get(("grpc", key))
    if head is None:
        made = REPLIES["ModelInfer"](
            model_name=model.name, model_version=model.version, id=identity
        )
        for name, tensor in reply.outputs.items():
            made.outputs.add(name=name, datatype=datatypes.of(tensor).name, shape=tensor.shape)
        head = made.SerializeToString()
        plans.keep(executor.reply_heads, ("grpc", key), head, len(head))
    return wire.join_reply(head, contents)


def _inputs(asked: Any, raw: list[memoryview]) -> list[tuple[str, ot.Tensor]]:
    """All inputs by name. Raises RequestError for those that are damaged."""
    if raw and any(one.HasField("contents") for one in asked.inputs):
        raise bad_request("a request has either raw_input_contents or contents, not both")
    if raw and len(raw) != len(asked.inputs):
        raise bad_request(f"{len(raw)} raw_input_contents are not one for each of the inputs")
    found = []
    for number, one in enumerate(asked.inputs):
        datatype = datatypes.named(one.datatype)
        shape = tensors.checked_shape(one.name, one.shape)
        if raw:
            found.append((one.name, tensors.from_raw(one.name, datatype, shape, raw[number])))
            continue
        filled = [field.name for field, _ in one.contents.ListFields()]
        if datatype.contents is None:
            raise bad_request(
                f"input {one.name[:60]!r} of {datatype.name} is sent as raw bytes only"
            )
        if filled not in ([], [datatype.contents]):
            raise bad_request(
                f"the elements of input {one.name[:60]!r} belong in {datatype.contents}"
            )
        elements = getattr(one.contents, datatype.contents)
        found.append((one.name, tensors.from_elements(one.name, datatype, shape, elements)))
    return found
