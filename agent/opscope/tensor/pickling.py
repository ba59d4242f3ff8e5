"""Copies and pickles of tensors: `copy`, `deepcopy`, pickle in every protocol.

With protocol 5 and a `buffer_callback`, elements are passed out of band, without a copy. A pickle
has whole storages, each once: tensors that share one share it afterwards, as in PyTorch. Batches of
workers are pickled alone instead, each tensor with its own elements. Opens no range.
"""

from __future__ import annotations

import pickle
import weakref
from typing import Any

from opscope._tensor import Tensor, as_bytes, dtype, over_bytes, strided, tensor


def rebuild(
    kind: type[Tensor], buffer: Any, dtype: dtype, shape: tuple[int, ...], requires_grad: bool
) -> Tensor:
    """The unpickled tensor, over the memory that it arrived in."""
    if isinstance(buffer, bytes):
        buffer = bytearray(buffer)  # a writable tensor stays writable
    made = over_bytes(buffer, dtype, shape)
    if kind is not Tensor:
        made = kind.__new__(kind, made)
    if requires_grad:
        made.requires_grad = True
    return made


class Memory:
    """A storage in a pickle: all its elements, in one dimension."""

    __slots__ = ("__weakref__", "whole")

    def __init__(self, whole: Tensor) -> None:
        self.whole = whole

    def __reduce_ex__(self, protocol: Any) -> Any:
        elements = as_bytes(self.whole)
        buffer: Any = (
            pickle.PickleBuffer(elements) if protocol >= 5 else bytes(memoryview(elements))
        )
        return rebuild_memory, (buffer, self.whole.dtype, self.whole.numel())


# A pickler knows an object again by its identity: one Memory for each storage while one is in use.
_MEMORIES: weakref.WeakValueDictionary[tuple[int, int, dtype], Memory] = (
    weakref.WeakValueDictionary()
)


def _memory_of(self: Tensor) -> Memory:
    key = self._storage_data_ptr(), self._storage_bytes(), self.dtype
    found = _MEMORIES.get(key)
    if found is None:
        count = self._storage_bytes() // self.itemsize
        found = _MEMORIES[key] = Memory(strided(self.data, (count,), (1,), 0))
    return found


def rebuild_memory(buffer: Any, dtype: dtype, count: int) -> Memory:
    """The unpickled storage, over the memory that it arrived in."""
    if isinstance(buffer, bytes):
        buffer = bytearray(buffer)  # a writable tensor stays writable
    return Memory(over_bytes(buffer, dtype, (count,)))


def rebuild_view(
    kind: type[Tensor],
    memory: Memory,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    offset: int,
    requires_grad: bool,
) -> Tensor:
    """The unpickled tensor: a view of its storage."""
    made = strided(memory.whole, tuple(shape), strides, offset)
    if kind is not Tensor:
        made = kind.__new__(kind, made)
    if requires_grad:
        made.requires_grad = True
    return made


def reduce(self: Tensor, protocol: Any = 2) -> Any:
    """The result for pickle. The result of an operator becomes a leaf."""
    place = tuple(self.shape), self.strides, self.storage_offset()
    args = (type(self), _memory_of(self), *place, self.requires_grad)
    return rebuild_view, args, getattr(self, "__dict__", None) or None


def reduce_alone(self: Tensor, protocol: Any = 5) -> Any:
    """The result for pickle with the tensor's own elements, without the rest of its storage."""
    source = self.data if self.is_contiguous() else tensor(self.data)
    elements = as_bytes(source)
    buffer: Any = pickle.PickleBuffer(elements) if protocol >= 5 else bytes(memoryview(elements))
    args = (type(self), buffer, self.dtype, tuple(self.shape), self.requires_grad)
    return rebuild, args, getattr(self, "__dict__", None) or None


def _like(self: Tensor, data: Tensor) -> Tensor:
    """`data` as a tensor with the class and the attributes of `self`."""
    made = data if type(self) is Tensor else type(self).__new__(type(self), data)
    if self.requires_grad:
        made.requires_grad = True
    return made


def copy(self: Tensor) -> Tensor:
    """Another Tensor over the same memory, without the tape."""
    made = _like(self, self.data)
    if hasattr(self, "__dict__"):
        vars(made).update(vars(self))
    return made


def deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """A leaf with copies of memory and grad. RuntimeError for the result of an operator."""
    if id(self) in memo:
        return memo[id(self)]  # type: ignore[no-any-return]
    if not self.is_leaf:
        raise RuntimeError(
            f"deepcopy(): {self.grad_fn!r} computed this tensor of shape {tuple(self.shape)}, and "
            "a copy would not be on the tape; use tensor.clone() or tensor.detach()"
        )
    made = memo[id(self)] = _like(self, tensor(self.data))
    if self.grad is not None:
        made.grad = tensor(self.grad)
    if hasattr(self, "__dict__"):
        from copy import deepcopy as deeply

        vars(made).update(deeply(vars(self), memo))
    return made
