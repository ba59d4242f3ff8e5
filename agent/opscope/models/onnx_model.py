"""ONNX models. Field numbers are those of onnx/onnx.proto, IR version 10."""

from __future__ import annotations

import mmap
from collections import Counter
from typing import Any

from opscope.models.description import Description, TensorFacts
from opscope.models.protobuf import fields, numbers
from opscope.models.source import PRODUCER, Source, producer_of

FORMAT = "ONNX"

_DTYPES = {
    1: "float32",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    9: "bool",
    10: "float16",
    11: "float64",
    12: "uint32",
    13: "uint64",
    14: "complex64",
    15: "complex128",
    16: "bfloat16",
}
"""TensorProto.DataType."""

# Fields of ModelProto.
_IR_VERSION, _PRODUCER_NAME, _PRODUCER_VERSION, _GRAPH, _METADATA = 1, 2, 3, 7, 14
_NODE, _INITIALIZER = 1, 5  # of GraphProto
_OP_TYPE, _DOMAIN, _ATTRIBUTE = 4, 7, 5  # of NodeProto
_ATTRIBUTE_GRAPH = 6  # of AttributeProto
_DIMS, _DATA_TYPE, _NAME = 1, 2, 8  # of TensorProto
_DEPTH_LIMIT = 20


def is_one(source: Source) -> bool:
    """ONNX has no magic number: its first field is the IR version, a small number."""
    return (
        source.start[:1] == b"\x08"
        and 1 <= source.start[1] <= 100
        and (source.start[2:3] in (b"\x12", b"\x3a", b"\x42", b"\x1a"))
    )


def describe(source: Source) -> Description:
    with open(source.path, "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        made = _model(memoryview(mapped))
    made.bytes = source.bytes
    return made


def _model(message: memoryview) -> Description:
    made = Description(FORMAT, 0)
    texts: dict[str, bytes] = {}
    for number, value in fields(message):
        if number == _IR_VERSION:
            made.facts["ir_version"] = str(value)
        elif number == _PRODUCER_NAME:
            made.producer["name"] = _text(value)
        elif number == _PRODUCER_VERSION:
            made.producer["version"] = _text(value)
        elif number == _GRAPH:
            _graph(_message(value), made, 0)
        elif number == _METADATA:
            pair = dict(fields(_message(value)))
            texts[_text(pair.get(1, b""))] = _text(pair.get(2, b"")).encode()
    made.producer |= producer_of(texts.get(PRODUCER))
    made.extra = texts
    return made


def _graph(message: memoryview, made: Description, depth: int) -> None:
    if depth == _DEPTH_LIMIT:
        raise ValueError(f"graphs within graphs, more than {_DEPTH_LIMIT} deep")
    for number, value in fields(message):
        if number == _NODE:
            _node(_message(value), made, depth)
        elif number == _INITIALIZER:
            made.tensors.append(_tensor(_message(value)))


def _node(message: memoryview, made: Description, depth: int) -> None:
    kind, domain = "", ""
    for number, value in fields(message):
        if number == _OP_TYPE:
            kind = _text(value)
        elif number == _DOMAIN:
            domain = _text(value)
        elif number == _ATTRIBUTE:
            for inner, graph in fields(_message(value)):
                if inner == _ATTRIBUTE_GRAPH:
                    _graph(_message(graph), made, depth + 1)
    made.operators += Counter([f"{domain or 'onnx'}::{kind}"])


def _tensor(message: memoryview) -> TensorFacts:
    shape: list[int] = []
    name, dtype = "", ""
    for number, value in fields(message):
        if number == _DIMS:
            shape += [value] if isinstance(value, int) else numbers(value)
        elif number == _DATA_TYPE:
            dtype = _DTYPES.get(int(value) if isinstance(value, int) else 0, "unknown")
        elif number == _NAME:
            name = _text(value)
    return TensorFacts(name, dtype, tuple(shape))


def _message(value: Any) -> memoryview:
    if not isinstance(value, memoryview):
        raise ValueError("a number where a message belongs")
    return value


def _text(value: Any) -> str:
    return bytes(value).decode(errors="replace") if not isinstance(value, int) else str(value)
