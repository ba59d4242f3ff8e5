"""Add the methods written in Python to `Tensor`."""

from __future__ import annotations

from opscope._tensor import Tensor
from opscope.tensor import autograd, composed, format, forms, memory, namespace, pickling

_METHODS = {
    **forms.METHODS,
    **composed.methods(),
    "__array_priority__": 1000,  # NumPy's scalars leave `scalar + tensor` to the tensor
    "__repr__": format.tensor_repr,
    "__format__": format.tensor_format,
    "__array__": memory.array,
    "__contains__": memory.contains,
    "__copy__": pickling.copy,
    "__deepcopy__": pickling.deepcopy,
    "__reduce_ex__": pickling.reduce,
    "__reversed__": memory.reverse,
    "T": property(memory.transposed),
    "mT": property(memory.matrix_transposed),
    "nbytes": property(memory.nbytes),
    "cpu": memory.cpu,
    "backward": autograd.backward,
    "numpy": memory.numpy,
    "storage": memory.storage,
    "cuda": memory.cuda,
    "__array_namespace__": namespace.array_namespace,
    "to_device": namespace.to_device,
    "pin_memory": memory.cpu,
    "untyped_storage": memory.storage,
    "is_cuda": property(memory.is_cuda),
    "is_sparse": property(memory.is_cuda),
    "share_memory_": memory.cpu,
}


def install() -> None:
    """Adds them; called once, when opscope.tensor is imported."""
    for name, method in _METHODS.items():
        setattr(Tensor, name, method)
