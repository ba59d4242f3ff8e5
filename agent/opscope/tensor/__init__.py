"""`opscope.tensor`: strided tensors with autograd, every operator a range.

Every operator of the core is a function here and a method of `Tensor`; `operators` is the table of
all operators, by name ("core::add").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    from_dlpack,
    from_numpy,
    functions,
    get_num_threads,
    int32,
    int64,
    manual_seed,
    operators,
    set_num_threads,
    tensor,
    uint8,
)
from opscope._tensor import from_address as _from_address
from opscope.record.usage import log_api_usage_once as _log_api_usage_once
from opscope.record.values import register_object
from opscope.tensor import blas, forms, methods
from opscope.tensor.allocator import (
    get_allocator,
    max_memory_allocated,
    memory_allocated,
    memory_stats,
    reset_peak_memory_stats,
    set_allocator,
)
from opscope.tensor.autograd import (
    Function,
    enable_grad,
    grad,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)
from opscope.tensor.custom import op
from opscope.tensor.library import load_library

if TYPE_CHECKING:
    from opscope.tensor._operators import *  # noqa: F403
    from opscope.tensor.archive import load as load
    from opscope.tensor.archive import save as save
    from opscope.tensor.forms import allclose as allclose
    from opscope.tensor.forms import equal as equal
    from opscope.tensor.forms import max as max
    from opscope.tensor.forms import min as min


_log_api_usage_once("opscope.tensor.import")
register_object("tensor", _from_address)
methods.install()
blas.load()
globals().update(functions)
globals().update(forms.FUNCTIONS)

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
    "get_allocator",
    "grad",
    "int32",
    "int64",
    "is_grad_enabled",
    "load",
    "load_library",
    "get_num_threads",
    "manual_seed",
    "set_num_threads",
    "max_memory_allocated",
    "memory_allocated",
    "memory_stats",
    "no_grad",
    "op",
    "operators",
    "reset_peak_memory_stats",
    "save",
    "set_allocator",
    "set_grad_enabled",
    "tensor",
    "uint8",
    *functions,
    *forms.FUNCTIONS,
]


def __getattr__(name: str) -> object:
    # Imported at their first use: most programs save and load nothing.
    if name in ("load", "save"):
        from opscope.tensor import archive

        return getattr(archive, name)
    raise AttributeError(f"module 'opscope.tensor' has no attribute {name!r}")
