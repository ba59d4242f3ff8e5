"""A tensor's memory in Python: `numpy()`, `__array__`, `storage()`.

The extension module implements sharing (buffer protocol, DLPack); NumPy is imported at the first
use only.
"""

from __future__ import annotations

from typing import Any

from opscope._tensor import Tensor, bfloat16


class Storage:
    """The memory that a tensor and its views share."""

    __slots__ = ("_tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor

    def data_ptr(self) -> int:
        """Address of its first byte: equal for all views of one storage."""
        return self._tensor._storage_data_ptr()

    def nbytes(self) -> int:
        """Its size in bytes."""
        return self._tensor._storage_bytes()

    def size(self) -> int:
        """Its size in bytes, as PyTorch's untyped storages have it."""
        return self.nbytes()

    __len__ = nbytes


def storage(self: Tensor) -> Storage:
    """The storage it shares with its views."""
    return Storage(self)


def numpy(self: Tensor) -> Any:
    """An array over the same memory, which keeps it alive; read-only if the tensor is.

    Raises RuntimeError for a tensor that requires grad, TypeError for bfloat16, which NumPy lacks.
    """
    if self.requires_grad:
        raise RuntimeError("numpy(): the tensor requires grad; use tensor.detach().numpy()")
    if self.dtype is bfloat16:
        raise TypeError("numpy(): NumPy has no bfloat16; use tensor.to(float32).numpy()")
    import numpy as np

    return np.asarray(memoryview(self))


def array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    """NumPy's protocol. Shares memory unless `dtype` or `copy` ask for another array."""
    shared = numpy(self)
    if copy:
        return shared.astype(dtype or shared.dtype, copy=True)
    if dtype is None or shared.dtype == dtype:
        return shared
    if copy is False:
        raise ValueError(f"__array__(): {shared.dtype} as {dtype} needs a copy")
    return shared.astype(dtype)


def transposed(self: Tensor) -> Tensor:
    """A view with its dimensions in reverse order."""
    view: Tensor = self.permute(tuple(range(self.ndim))[::-1])
    return view


def matrix_transposed(self: Tensor) -> Tensor:
    """A view with its last two dimensions exchanged."""
    view: Tensor = self.transpose(-2, -1)
    return view


def reverse(self: Tensor) -> Tensor:
    """Its elements in reverse order along the first dimension."""
    if self.ndim == 0:
        return self
    flipped: Tensor = self.flip((0,))
    return flipped


def nbytes(self: Tensor) -> int:
    """Bytes of its elements."""
    return self.numel() * self.itemsize


def cpu(self: Tensor) -> Tensor:
    """The tensor itself: there is no other device."""
    return self


def cuda(self: Tensor, *_: Any, **__: Any) -> Tensor:
    """RuntimeError: tensors are on the cpu."""
    raise RuntimeError("cuda(): tensors here are on the cpu; cuda.is_available() is False")


def is_cuda(self: Tensor) -> bool:
    """False: the tensor is dense, on the cpu."""
    return False


def contains(self: Tensor, value: object) -> bool:
    """Whether an element equals `value`, a number or a tensor that broadcasts."""
    equal = self == value
    if not isinstance(equal, Tensor):
        raise TypeError(f"in: elements are compared with numbers and Tensors, not {type(value)}")
    return bool(equal.any())
