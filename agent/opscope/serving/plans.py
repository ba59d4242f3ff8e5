"""What requests with the same head have in common: it is read and checked once.

A client that sends many requests mostly sends one head, in JSON or protobuf, before ever different
bytes of tensors. A model keeps what the last heads meant, so that such a request costs a look into
a table. Only heads whose tensors are all raw bytes are kept, and only those that were right.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple, TypeVar

from opscope.serving import datatypes, tensors
from opscope.serving.datatypes import Datatype
from opscope.serving.model_config import ModelConfig
from opscope.serving.request import InferRequest
from opscope.serving.trace_context import TraceContext
from opscope.serving.wire import Buffer

_KEPT = 256
_LARGEST_HEAD = 2048

T = TypeVar("T")


class _Input(NamedTuple):
    number: int
    """Of its bytes among those of the request."""
    name: str
    datatype: Datatype
    shape: tuple[int, ...]


class Plan(NamedTuple):
    """A head."""

    inputs: tuple[_Input, ...]
    """In the order of the model."""
    outputs: Sequence[str]
    timeout_ns: int | None
    key: Hashable
    bytes: int
    detail: Any
    """What the protocol needs for the answer."""

    def request(
        self, raw: Sequence[Buffer], timeout_ns: int | None, trace: TraceContext | None
    ) -> InferRequest:
        """The request of this head and these bytes. Raises RequestError if they are too few or too
        many, or no values of their datatype."""
        inputs = [
            tensors.from_raw(one.name, one.datatype, one.shape, raw[one.number])
            for one in self.inputs
        ]
        return InferRequest(inputs, self.outputs, timeout_ns, trace, self.key, self.bytes)


def plan(config: ModelConfig, names: Sequence[str], request: InferRequest, detail: Any) -> Plan:
    """What the head of a request meant, whose raw inputs have these names, in their order."""
    inputs = tuple(
        _Input(names.index(spec.name), spec.name, datatypes.of(tensor), tuple(tensor.shape))
        for spec, tensor in zip(config.inputs, request.inputs, strict=True)
    )
    return Plan(inputs, request.outputs, request.timeout_ns, request.key, request.bytes, detail)


def keep(table: dict[Any, T], key: Hashable, value: T, size: int) -> None:
    """Keeps a value in a table of bounded size, unless the head, of so many bytes, is large."""
    if size > _LARGEST_HEAD:
        return
    if len(table) >= _KEPT:
        table.clear()
    table[key] = value
