"""Tensors over the bytes of requests, and the bytes of tensors for replies: without copies.

`Copies` counts the bytes that had to be copied all the same, which tests read.
"""

from __future__ import annotations

import ctypes
import sys
from array import array
from collections.abc import Sequence
from math import prod
from typing import Any

from opscope import tensor as ot
from opscope._tensor import over_bytes
from opscope.serving.datatypes import Datatype
from opscope.serving.faults import bad_request
from opscope.serving.wire import Buffer

if sys.byteorder != "little":
    raise ImportError("opscope.serving needs a little-endian machine, as the protocol's bytes are")

_SIZE_LIMIT = 1 << 62


class Copies:
    """Bytes that this process copied on behalf of requests, by cause."""

    to_batch = 0
    """Into the input of a batch of several requests."""
    to_align = 0
    """From an address that is no multiple of the element's size, where gRPC had put it."""
    from_spread = 0
    """Outputs whose elements do not lie in order."""


def checked_shape(name: str, shape: Sequence[Any]) -> tuple[int, ...]:
    """The shape of a request's tensor. Raises RequestError for what is none."""
    if not all(type(size) is int and 0 <= size < _SIZE_LIMIT for size in shape):
        raise bad_request(f"input {name[:60]!r} has no shape of sizes from 0 on")
    return tuple(shape)


def from_raw(name: str, datatype: Datatype, shape: tuple[int, ...], raw: Buffer) -> ot.Tensor:
    """A tensor over the bytes, copied only if they are not aligned. Raises RequestError if there
    are more or less of them than the shape needs, or if a BOOL is neither 0 nor 1."""
    needed = prod(shape) * datatype.dtype.itemsize
    given = memoryview(raw).nbytes
    if needed != given:
        raise bad_request(
            f"input {name[:60]!r} of shape {list(shape)} has {needed} bytes as {datatype.name}, "
            f"but {given} were sent"
        )
    if needed == 0:
        return ot.empty(shape, dtype=datatype.dtype)
    if datatype.dtype is ot.bool and max(raw) > 1:
        raise bad_request(f"input {name[:60]!r} of BOOL has bytes other than 0 and 1")
    try:
        return over_bytes(raw, datatype.dtype, shape)
    except ValueError:
        Copies.to_align += needed
        return over_bytes(bytearray(raw), datatype.dtype, shape)


def from_elements(
    name: str, datatype: Datatype, shape: tuple[int, ...], elements: Sequence[Any]
) -> ot.Tensor:
    """A tensor of Python numbers. Raises RequestError if they do not fit shape and datatype."""
    if len(elements) != prod(shape):
        raise bad_request(
            f"input {name[:60]!r} of shape {list(shape)} needs {prod(shape)} elements, "
            f"but {len(elements)} were sent"
        )
    if datatype.format is None:
        raise bad_request(f"input {name[:60]!r} of {datatype.name} is sent as raw bytes only")
    try:
        if datatype.dtype is ot.bool:
            if not all(type(one) is bool for one in elements):
                raise TypeError("an element is no bool")
        elif any(type(one) is bool for one in elements):
            raise TypeError("an element is a bool")
        return from_raw(name, datatype, shape, memoryview(array(datatype.format, elements)))
    except (TypeError, OverflowError, ValueError) as error:
        raise bad_request(f"input {name[:60]!r} of {datatype.name}: {error}") from None


def own(tensor: ot.Tensor) -> ot.Tensor:
    """A copy, for a model that writes into its inputs."""
    copied: ot.Tensor = tensor.clone()
    return copied


def batch(parts: Sequence[ot.Tensor]) -> ot.Tensor:
    """One tensor of several, joined along their first dimension: the one copy of batching."""
    rows = sum(part.shape[0] for part in parts)
    made: ot.Tensor = ot.empty((rows, *parts[0].shape[1:]), dtype=parts[0].dtype)
    into = content(made)
    at = 0
    for part in parts:
        source = content(part)
        into[at : at + source.nbytes] = source
        at += source.nbytes
    Copies.to_batch += at
    return made


def rows(tensor: ot.Tensor, first: int, count: int) -> ot.Tensor:
    """A view of rows of a tensor."""
    view: ot.Tensor = tensor[first : first + count]
    return view


def in_order(tensor: ot.Tensor) -> ot.Tensor:
    """The tensor, copied only if its elements do not lie in order."""
    if tensor.is_contiguous():
        return tensor
    Copies.from_spread += tensor.numel() * tensor.itemsize
    found: ot.Tensor = tensor.contiguous()
    return found


def content(tensor: ot.Tensor) -> memoryview:
    """The bytes of a tensor whose elements lie in order, shared with it."""
    if tensor.numel() == 0:
        return memoryview(b"")
    if tensor.dtype is ot.bfloat16:
        # Python's views have no format for it.
        size = tensor.numel() * tensor.itemsize
        block: Any = (ctypes.c_ubyte * size).from_address(tensor.data_ptr())
        block.owner = tensor
        tensor = over_bytes(block, ot.uint8, (len(block),))
    return memoryview(tensor).cast("B")


def elements(tensor: ot.Tensor) -> list[Any]:
    """The numbers of a tensor, in order, for JSON."""
    found: list[Any] = tensor.reshape(-1).tolist()
    return found
