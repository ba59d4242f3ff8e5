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
_RAW_TAG = bytes((_RAW_INPUTS,))
_RAW_OUTPUTS = bytes((6 << 3 | _BYTES,))
_LONGEST_HEAD = 2048
_KEPT = 256

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


class Prefixes:
    """Messages like the last ones: known bytes, then one tensor up to the end.

    Beginning and length of a message with one value of `raw_input_contents`, which is its last
    field, decide where all fields lie. So a message that has both in common with one that was split
    before is split by comparing its beginning.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[bytes, bytes]] = {}
        """By the message's length: its beginning, and what it is without the tensor."""

    def split(self, message: bytes) -> tuple[bytes, list[memoryview]]:
        """As split_request."""
        known = self._known.get(len(message))
        if known is not None and message.startswith(known[0]):
            return known[1], [memoryview(message)[len(known[0]) :]]
        head, raw = split_request(message)
        if len(raw) == 1 and len(head) <= _LONGEST_HEAD:
            start = len(message) - raw[0].nbytes
            tag = _RAW_TAG + _to_varint(raw[0].nbytes)
            if message[:start] == head + tag:
                if len(self._known) >= _KEPT:
                    self._known.clear()
                self._known[len(message)] = message[:start], head
        return head, raw


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
