"""Messages of ModelInfer without copies of their tensors.

protobuf's own classes copy a field of bytes twice or thrice. So the field of tensors is cut out of
the message's bytes here, and the rest, some hundred bytes, is left to protobuf. Facts of the
encoding: https://protobuf.dev/programming-guides/encoding
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_VARINT_LIMIT = 10
_RAW_INPUTS = 7 << 3 | _BYTES
_RAW_OUTPUTS = bytes((6 << 3 | _BYTES,))

Buffer = bytes | bytearray | memoryview


def split_request(message: bytes) -> tuple[bytes, list[memoryview]]:
    """The message without `raw_input_contents`, and views of that field's values in `message`.

    Raises ValueError if the message is damaged at its outermost level.
    """
    view = memoryview(message)
    kept: list[memoryview] = []
    raw: list[memoryview] = []
    at = since = 0
    end = len(message)
    while at < end:
        start = at
        tag, at = _varint(message, at)
        kind = tag & 7
        if kind == _BYTES:
            size, at = _varint(message, at)
            if size > end - at:
                raise ValueError("the message ends within a field")
            if tag == _RAW_INPUTS:
                kept.append(view[since:start])
                raw.append(view[at : at + size])
                since = at + size
            at += size
        elif kind == _VARINT:
            _, at = _varint(message, at)
        elif kind in (_FIXED64, _FIXED32):
            at += 8 if kind == _FIXED64 else 4
            if at > end:
                raise ValueError("the message ends within a field")
        else:
            raise ValueError(f"the message has a field of kind {kind}")
    if not raw:
        return message, raw
    kept.append(view[since:])
    return b"".join(kept), raw


def join_reply(head: bytes, tensors: Iterable[Buffer]) -> bytes:
    """The message `head` with `raw_output_contents`; copies each tensor once, into the result."""
    parts: list[Buffer] = [head]
    for tensor in tensors:
        parts += (_RAW_OUTPUTS + _to_varint(memoryview(tensor).nbytes), tensor)
    return b"".join(parts)


def _varint(data: Sequence[int], at: int) -> tuple[int, int]:
    """The number at a position, and the position after it."""
    value = shift = 0
    for place in range(at, min(at + _VARINT_LIMIT, len(data))):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place + 1
        shift += 7
    raise ValueError("the message ends within a number, or a number is too long")


def _to_varint(value: int) -> bytes:
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)
