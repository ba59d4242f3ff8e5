"""Gives ``Tensor`` the methods that are written in Python."""

from __future__ import annotations

from opscope._tensor import Tensor
from opscope.tensor import autograd, format, memory

_METHODS = {
    "__repr__": format.tensor_repr,
    "__array__": memory.array,
    "__contains__": memory.contains,
    "T": property(memory.transposed),
    "backward": autograd.backward,
    "numpy": memory.numpy,
    "storage": memory.storage,
}


def install() -> None:
    """Set them; called once, when opscope.tensor is imported."""
    for name, method in _METHODS.items():
        setattr(Tensor, name, method)
