"""Tensors as views of storages: what is written of each storage, and what is mapped.

Of a storage, the archive has the span that the saved tensors use, from a multiple of 64 bytes on,
so that elements stay aligned. Tensors that share a storage share it when loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from opscope._tensor import Tensor, as_bytes, dtype, strided
from opscope.tensor.archive.containers import dtype_of
from opscope.tensor.archive.files import MODEL, Archive

_ALIGNMENT = 64
_LIMIT = 1 << 62


@dataclass
class _Span:
    """The used part of one storage, in bytes from its start."""

    keeper: Tensor
    first: int
    end: int
    users: list[int] = field(default_factory=list)


class Writer:
    """Collects the tensors of one file, and gives each its number."""

    def __init__(self) -> None:
        self._tensors: list[Tensor] = []
        self._numbers: dict[int, int] = {}
        self._spans: dict[int, _Span] = {}

    def add(self, tensor: Tensor) -> int:
        known = self._numbers.get(id(tensor))
        if known is not None:
            return known
        number = self._numbers[id(tensor)] = len(self._tensors)
        self._tensors.append(tensor)
        first, end = _extent(tensor)
        storage = tensor._storage_data_ptr() if end > first else -1 - number
        span = self._spans.setdefault(storage, _Span(tensor, first, end))
        span.first, span.end = min(span.first, first), max(span.end, end)
        span.users.append(number)
        return number

    def described(self) -> list[dict[str, Any]]:
        """Each tensor by its number; offsets and strides are in elements."""
        found: dict[int, dict[str, Any]] = {}
        for index, span in enumerate(self._spans.values()):
            for number in span.users:
                tensor = self._tensors[number]
                start = tensor.storage_offset() * tensor.dtype.itemsize - _floor(span.first)
                found[number] = {
                    "storage": index,
                    "dtype": tensor.dtype.name,
                    "sizes": list(tensor.shape),
                    "strides": list(tensor.strides),
                    "offset": start // tensor.dtype.itemsize if span.end > span.first else 0,
                    "requires_grad": tensor.requires_grad,
                }
        return [found[number] for number in range(len(self._tensors))]

    def contents(self) -> Iterator[tuple[str, Any]]:
        """(entry, bytes) of each storage; the bytes are the tensors' own memory."""
        for index, span in enumerate(self._spans.values()):
            yield f"tensors/{index}", _bytes_of(span)


def _extent(tensor: Tensor) -> tuple[int, int]:
    """The first byte of a tensor in its storage, and the one after its last; equal if empty."""
    item = tensor.dtype.itemsize
    if 0 in tensor.shape:
        return 0, 0
    offset = tensor.storage_offset()
    reach = [(size - 1) * step for size, step in zip(tensor.shape, tensor.strides, strict=True)]
    first = offset + sum(step for step in reach if step < 0)
    last = offset + sum(step for step in reach if step > 0)
    return first * item, (last + 1) * item


def _floor(byte: int) -> int:
    return byte - byte % _ALIGNMENT


def _bytes_of(span: _Span) -> Any:
    if span.end <= span.first:
        return b""
    item = span.keeper.dtype.itemsize
    first = _floor(span.first) // item
    # An end within an element comes from a tensor of a smaller dtype over the same storage.
    count = -(-span.end // item) - first
    flat = strided(span.keeper.data, (count,), (1,), first)
    return memoryview(as_bytes(flat))[: span.end - first * item]


class Reader:
    """The tensors of one file, over its mapping, each made once."""

    def __init__(self, archive: Archive, described: Any) -> None:
        self._archive = archive
        self._fault = archive.fault_in(MODEL)
        if not isinstance(described, list):
            raise self._fault("'tensors' is not a list")
        self._described = described
        self._made: dict[int, Tensor] = {}
        self._storages: dict[tuple[int, dtype], Tensor] = {}

    def tensor(self, number: Any) -> Tensor:
        if type(number) is not int or not 0 <= number < len(self._described):
            raise self._fault(f"there is no tensor {str(number)[:40]!r}")
        if number not in self._made:
            self._made[number] = self._make(number)
        return self._made[number]

    def _make(self, number: int) -> Tensor:
        about = self._described[number]
        if not isinstance(about, dict):
            raise self._fault(f"tensor {number} is not described by an object")

        def whole(key: str) -> int:
            value = about.get(key)
            if type(value) is not int or not -_LIMIT < value < _LIMIT:
                raise self._fault(f"tensor {number}: {key!r} is not an integer in range")
            return value

        def wholes(key: str) -> tuple[int, ...]:
            values = about.get(key)
            if not isinstance(values, list) or not all(
                type(value) is int and -_LIMIT < value < _LIMIT for value in values
            ):
                raise self._fault(f"tensor {number}: {key!r} is not a list of integers")
            return tuple(values)

        base = self._storage(whole("storage"), dtype_of(about.get("dtype"), self._fault))
        sizes, strides, offset = wholes("sizes"), wholes("strides"), whole("offset")
        try:
            made = strided(base, sizes, strides, offset)
        except (ValueError, MemoryError) as error:
            raise self._fault(f"tensor {number}: {error}") from None
        if about.get("requires_grad") is True:
            if not made.is_floating_point():
                raise self._fault(f"tensor {number}: {made.dtype.name} cannot require grad")
            made.requires_grad = True
        return made

    def _storage(self, index: int, dtype: dtype) -> Tensor:
        key = index, dtype
        if key not in self._storages:
            self._storages[key] = self._archive.tensor(f"tensors/{index}", dtype)
        return self._storages[key]
