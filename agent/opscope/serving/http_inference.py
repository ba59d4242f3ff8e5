"""Inference over HTTP: JSON, and Triton's extension for tensors as bytes after the JSON.

Facts: docs/protocol/extension_binary_data.md of Triton's server.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from opscope import tensor as ot
from opscope.errors import OpscopeError
from opscope.serving import datatypes, plans, request, tensors, trace_context
from opscope.serving.executor import Executor
from opscope.serving.faults import Reason, RequestError, bad_request
from opscope.serving.http_connection import (
    HEADER_LENGTH,
    Cancel,
    HttpReply,
    HttpRequest,
    refusal,
)
from opscope.serving.request import InferReply, InferRequest
from opscope.serving.service import Service, checked
from opscope.serving.trace_context import TraceContext
from opscope.serving.wire import Buffer

_log = logging.getLogger("opscope.serving")
_BINARY = "application/octet-stream"
_TO_JSON = json.JSONEncoder(allow_nan=False).encode
_LENGTH_DIGITS = 18
Done = Callable[[HttpReply], None]


class _Detail(NamedTuple):
    """What a request's head says of its answer."""

    identity: str
    wanted: Mapping[str, bool | None]
    all_binary: bool
    sizes: tuple[int, ...] | None
    """Of the tensors after the JSON; None if the JSON has elements of one."""


def begin(service: Service, asked: HttpRequest, name: str, version: str, done: Done) -> Cancel:
    """Puts an inference request into its model's queue. Returns what cancels it; raises
    RequestError."""
    executor = service.repository.find(name, version)
    trace = asked.headers.get(trace_context.HEADER)
    try:
        infer_request, detail = _request(
            executor, asked, trace_context.parse(trace) if trace else None
        )
    except RequestError as fault:
        executor.observer.failed(fault.reason)
        raise

    def finish(answer: InferReply | RequestError) -> None:
        try:
            if isinstance(answer, RequestError):
                raise answer
            reply = _reply(executor, answer, detail)
        except Exception as error:
            reply = failure(asked, error)
        done(reply)

    return service.submit(executor, infer_request, finish)


def _request(
    executor: Executor, asked: HttpRequest, trace: TraceContext | None
) -> tuple[InferRequest, _Detail]:
    head, binary = _split(asked)
    text = None if head is None else bytes(head)
    plan = executor.plans["http"].get(text) if text is not None else None
    if plan is not None and sum(plan.detail.sizes) == len(binary):
        return plan.request(_cut(binary, plan.detail.sizes), plan.timeout_ns, trace), plan.detail
    document = _raw_request(executor, binary) if text is None else json_object(text)
    inputs, sizes = _inputs(document, binary)
    wanted = _wanted(document) if "outputs" in document else {}
    parameters = _parameters(document)
    identity = document.get("id", "")
    if not isinstance(identity, str):
        raise bad_request("id is no string")
    found = checked(executor, inputs, list(wanted), request.timeout_ns(parameters), trace)
    all_binary = parameters.get("binary_data_output", False) is True
    detail = _Detail(identity, wanted, all_binary, sizes)
    if text is not None and sizes is not None:
        names = [name for name, _ in inputs]
        made = plans.plan(executor.model.config, names, found, detail)
        plans.keep(executor.plans["http"], text, made, len(text))
    return found, detail


def _cut(binary: memoryview, sizes: tuple[int, ...]) -> list[memoryview]:
    parts = []
    at = 0
    for size in sizes:
        parts.append(binary[at : at + size])
        at += size
    return parts


def failure(asked: HttpRequest, error: Exception) -> HttpReply:
    """The answer to a request that failed."""
    if isinstance(error, RequestError):
        return refusal(error.reason, str(error))
    if isinstance(error, OpscopeError):
        return refusal(Reason.BAD_REQUEST, str(error))
    _log.error("%s %s failed", asked.method, asked.path, exc_info=error)
    return HttpReply(500, (b'{"error": "the server failed"}',))


def json_object(body: Buffer) -> dict[str, Any]:
    """The object of a body. Raises RequestError."""
    try:
        found = json.loads(str(body, "utf-8"))
    except RecursionError:
        raise bad_request("the JSON is nested too deeply") from None
    except (ValueError, UnicodeDecodeError) as error:
        raise bad_request(f"the body is no JSON: {error}"[:200]) from None
    if not isinstance(found, dict):
        raise bad_request("the body is no JSON object")
    return found


# ---- requests ------------------------------------------------------------------------------------


def _split(asked: HttpRequest) -> tuple[memoryview | None, memoryview]:
    """The JSON and the bytes after it; None for a request of bytes alone."""
    header = asked.headers.get(HEADER_LENGTH)
    if header is None:
        return asked.body, asked.body[len(asked.body) :]
    size = (
        int(header)
        if header.isascii() and header.isdigit() and len(header) < _LENGTH_DIGITS
        else -1
    )
    if not 0 <= size <= len(asked.body):
        raise bad_request(f"{HEADER_LENGTH} is {header[:40]!r}, but the body has {len(asked.body)}")
    return (asked.body[:size] if size else None), asked.body[size:]


def _raw_request(executor: Executor, binary: memoryview) -> dict[str, Any]:
    """The JSON equivalent of a request that consists of bytes alone: a batch of one, for a model
    with one input of known shape. Raises RequestError for other models."""
    specs = executor.model.config.inputs
    first = next(iter(specs))
    is_batched = executor.model.config.is_batched
    shape = [1, *first.shape[1:]] if is_batched else list(first.shape)
    if len(specs) > 1 or -1 in shape:
        raise bad_request("only a model with one input of known shape takes bytes alone")
    return {
        "parameters": {"binary_data_output": True},
        "inputs": [
            {
                "name": first.name,
                "datatype": first.datatype,
                "shape": shape,
                "parameters": {"binary_data_size": len(binary)},
            }
        ],
    }


def _inputs(
    document: Mapping[str, Any], binary: memoryview
) -> tuple[list[tuple[str, ot.Tensor]], tuple[int, ...] | None]:
    """Tensors by name, and the sizes of their bytes; None for those if one is not raw bytes."""
    found = []
    sizes: list[int] | None = []
    for one in _objects_of(document, "inputs"):
        name, shape = one.get("name"), one.get("shape")
        if not isinstance(name, str) or not isinstance(shape, list):
            raise bad_request("an input has no name or no shape")
        datatype = datatypes.named(str(one.get("datatype")))
        shape = tensors.checked_shape(name, shape)
        size = _parameters(one).get("binary_data_size")
        if size is None:
            elements = _flat(one.get("data"))
            found.append((name, tensors.from_elements(name, datatype, shape, elements)))
            sizes = None
            continue
        if type(size) is not int or not 0 <= size <= len(binary):
            raise bad_request(
                f"input {name[:60]!r} has no binary_data_size of bytes that were sent"
            )
        if "data" in one:
            raise bad_request(f"input {name[:60]!r} has both data and binary_data_size")
        found.append((name, tensors.from_raw(name, datatype, shape, binary[:size])))
        binary = binary[size:]
        if sizes is not None:
            sizes.append(size)
    if len(binary):
        raise bad_request(f"{len(binary)} bytes after the JSON belong to no input")
    return found, None if sizes is None else tuple(sizes)


def _flat(data: Any) -> list[Any]:
    """The elements of a list, or of lists within lists, in order."""
    if not isinstance(data, list):
        raise bad_request("the data of an input are a list")
    flat: list[Any] = data
    while any(isinstance(one, list) for one in flat):
        if not all(isinstance(one, list) for one in flat):
            raise bad_request("the data of an input are lists of unequal depths")
        flat = [element for one in flat for element in one]
    return flat


def _wanted(document: Mapping[str, Any]) -> dict[str, bool | None]:
    """The requested outputs, and whether each is wanted as bytes: None: not said."""
    found: dict[str, bool | None] = {}
    for one in _objects_of(document, "outputs"):
        name = one.get("name")
        as_binary = _parameters(one).get("binary_data")
        if not isinstance(name, str) or name in found:
            raise bad_request("an output has no name, or the name of another")
        if as_binary not in (None, True, False):
            raise bad_request("binary_data is no bool")
        found[name] = as_binary
    return found


def _objects_of(document: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    found = document.get(name)
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise bad_request(f"{name} is no list of objects")
    return found


def _parameters(document: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a request, an input or an output; unknown ones mean nothing."""
    found = document.get("parameters", {})
    if not isinstance(found, dict) or not all(
        isinstance(value, (str, int, float)) for value in found.values()
    ):
        raise bad_request("parameters is no object of strings, numbers and booleans")
    return found


# ---- answers -------------------------------------------------------------------------------------


def _reply(executor: Executor, reply: InferReply, detail: _Detail) -> HttpReply:
    outputs = []
    binary: list[Buffer] = []
    shapes = []
    for name, tensor in reply.outputs.items():
        as_binary = detail.wanted.get(name)
        if not (detail.all_binary if as_binary is None else as_binary):
            break
        binary.append(tensors.content(tensor))
        shapes.append((name, tuple(tensor.shape)))
    else:
        # All outputs are bytes: the JSON before them depends on little, and is made once.
        key = "http", detail.identity, *shapes
        head = executor.reply_heads.get(key)
        if head is None:
            head = _head(executor, detail, [_described(*one) for one in reply.outputs.items()])
            plans.keep(executor.reply_heads, key, head, len(head))
        return _with_bytes(head, binary)
    binary.clear()
    for name, tensor in reply.outputs.items():
        one = _described(name, tensor)
        as_binary = detail.wanted.get(name)
        if detail.all_binary if as_binary is None else as_binary:
            binary.append(tensors.content(tensor))
        elif datatypes.of(tensor).format is None:
            raise bad_request(
                f"output {name!r} of {one['datatype']} is sent as bytes: ask for binary_data"
            )
        else:
            del one["parameters"]
            one["data"] = tensors.elements(tensor)
        outputs.append(one)
    head = _head(executor, detail, outputs)
    return _with_bytes(head, binary) if binary else HttpReply(200, (head,))


def _described(name: str, tensor: ot.Tensor) -> dict[str, Any]:
    """An output as bytes after the JSON."""
    return {
        "name": name,
        "datatype": datatypes.of(tensor).name,
        "shape": tuple(tensor.shape),
        "parameters": {"binary_data_size": tensor.numel() * tensor.itemsize},
    }


def _head(executor: Executor, detail: _Detail, outputs: list[dict[str, Any]]) -> bytes:
    document: dict[str, Any] = {
        "model_name": executor.model.name,
        "model_version": executor.model.version,
    }
    if detail.identity:
        document["id"] = detail.identity
    document["outputs"] = outputs
    try:
        return _TO_JSON(document).encode()
    except ValueError:
        raise RequestError(
            Reason.MODEL, "an output has infinities or NaN, which JSON lacks: ask for binary_data"
        ) from None


def _with_bytes(head: bytes, binary: list[Buffer]) -> HttpReply:
    length = ("inference-header-content-length", str(len(head)))
    return HttpReply(200, (head, *binary), _BINARY, (length,))
