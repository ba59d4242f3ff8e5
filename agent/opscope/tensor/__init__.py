"""``opscope.tensor``: strided tensors with autograd, every operator a range.

Every operator of the core is a function here and a method of :class:`Tensor`; ``operators`` is the
table they come from, by name ("core::add").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opscope._tensor import (
    Node,
    Operator,
    Tensor,
    bfloat16,
    bool,
    dtype,
    float16,
    float32,
    float64,
    from_address,
    from_dlpack,
    from_numpy,
    functions,
    int32,
    int64,
    manual_seed,
    operators,
    tensor,
    uint8,
)
from opscope.record.values import register_object
from opscope.tensor import blas, methods
from opscope.tensor.autograd import Function, enable_grad, grad, is_grad_enabled, no_grad
from opscope.tensor.custom import op

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


register_object("tensor", from_address)
methods.install()
blas.load()
globals().update(functions)

__all__ = [
    "Function",
    "Node",
    "Operator",
    "Tensor",
    "bfloat16",
    "bool",
    "dtype",
    "enable_grad",
    "float16",
    "float32",
    "float64",
    "from_dlpack",
    "from_numpy",
    "grad",
    "int32",
    "int64",
    "is_grad_enabled",
    "manual_seed",
    "no_grad",
    "op",
    "operators",
    "tensor",
    "uint8",
    *functions,
]
