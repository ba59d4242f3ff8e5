"""The fields of a protobuf message, without its schema.

The wire format: https://protobuf.dev/programming-guides/encoding. Only what the descriptions of
models need: varints and byte strings; other fields are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator

_VARINT, _I64, _BYTES, _I32 = 0, 1, 2, 5


def fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """(number, value) of each field, in order. ValueError where the bytes are no message."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        number, kind = tag >> 3, tag & 7
        if number == 0:
            raise ValueError("a field of number 0")
        if kind == _VARINT:
            value, at = _varint(message, at)
            yield number, value
        elif kind == _BYTES:
            length, at = _varint(message, at)
            yield number, _piece(message, at, length)
            at += length
        elif kind in (_I64, _I32):
            length = 8 if kind == _I64 else 4
            _piece(message, at, length)
            at += length
        else:
            raise ValueError(f"a field of unknown kind {kind}")


def numbers(packed: memoryview) -> Iterator[int]:
    """The varints of a repeated field that is written as one piece."""
    at = 0
    while at < len(packed):
        value, at = _varint(packed, at)
        yield value


def _piece(message: memoryview, at: int, length: int) -> memoryview:
    if length > len(message) - at:
        raise ValueError("a field is longer than its message")
    return message[at : at + length]


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        if at == len(message):
            raise ValueError("it ends within a number")
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value & (1 << 64) - 1, at
        shift += 7
    raise ValueError("a number longer than 64 bits")
