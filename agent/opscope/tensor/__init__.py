"""`opscope.tensor`: strided tensors with autograd, every operator a range.

Every operator of the core is a function here and a method of `Tensor`; `operators` is the table of
all operators, by name ("core::add").
"""

from __future__ import annotations

import math
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
from opscope.tensor import blas, composed, forms, methods, places
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
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)
from opscope.tensor.custom import op
from opscope.tensor.library import load_library
from opscope.tensor.places import Size, device

if TYPE_CHECKING:
    from opscope.tensor import backends as backends
    from opscope.tensor import cuda as cuda
    from opscope.tensor import linalg as linalg
    from opscope.tensor import nn as nn
    from opscope.tensor import optim as optim
    from opscope.tensor import utils as utils
    from opscope.tensor._operators import *  # noqa: F403
    from opscope.tensor.archive import load as load
    from opscope.tensor.archive import save as save
    from opscope.tensor.composed.names import *  # noqa: F403
    from opscope.tensor.forms import allclose as allclose
    from opscope.tensor.forms import equal as equal
    from opscope.tensor.forms import max as max
    from opscope.tensor.forms import min as min
    from opscope.tensor.generator import Generator as Generator
    from opscope.tensor.generator import get_rng_state as get_rng_state
    from opscope.tensor.generator import seed as seed
    from opscope.tensor.generator import set_rng_state as set_rng_state
    from opscope.tensor.limits import finfo as finfo
    from opscope.tensor.limits import iinfo as iinfo


_log_api_usage_once("opscope.tensor.import")
register_object("tensor", _from_address)
places.install()
methods.install()
blas.load()
# Names of composed functions come from __getattr__, which imports them at their first use.
globals().update({name: each for name, each in functions.items() if name not in composed.FUNCTIONS})
globals().update(forms.FUNCTIONS)

# PyTorch's other names of dtypes, and numbers.
float = float32
double = float64
half = float16
int = int32
long = int64
inf, nan, pi, e = math.inf, math.nan, math.pi, math.e
newaxis = None

__all__ = [
    "Function",
    "Generator",
    "Node",
    "Operator",
    "Size",
    "Tensor",
    "bfloat16",
    "bool",
    "device",
    "double",
    "dtype",
    "e",
    "enable_grad",
    "finfo",
    "float",
    "float16",
    "float32",
    "float64",
    "from_dlpack",
    "from_numpy",
    "get_allocator",
    "get_rng_state",
    "grad",
    "half",
    "iinfo",
    "inf",
    "inference_mode",
    "int",
    "int32",
    "int64",
    "is_grad_enabled",
    "load",
    "load_library",
    "long",
    "get_num_threads",
    "manual_seed",
    "set_num_threads",
    "max_memory_allocated",
    "memory_allocated",
    "memory_stats",
    "nan",
    "newaxis",
    "no_grad",
    "op",
    "operators",
    "pi",
    "reset_peak_memory_stats",
    "save",
    "seed",
    "set_allocator",
    "set_grad_enabled",
    "set_rng_state",
    "tensor",
    "uint8",
    *functions,
    *forms.FUNCTIONS,
    *composed.FUNCTIONS,
]


# Modules, and names of modules, that most programs do not use: imported at their first use.
_MODULES = {
    name: f"opscope.tensor.{name}"
    for name in ("array_api", "backends", "cuda", "data", "jit", "linalg", "nn", "optim", "utils")
}
_NAMES = {
    "Generator": "generator",
    "finfo": "limits",
    "get_rng_state": "generator",
    "iinfo": "limits",
    "load": "archive",
    "save": "archive",
    "seed": "generator",
    "set_rng_state": "generator",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in _MODULES:
        return import_module(_MODULES[name])
    found: object
    if name in composed.FUNCTIONS:
        found = composed.find(name, composed.FUNCTIONS[name])
    elif name in _NAMES:
        found = getattr(import_module(f"opscope.tensor.{_NAMES[name]}"), name)
    else:
        from opscope.tensor.nearest import missing

        raise missing("opscope.tensor", name, __dir__())
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES, *_NAMES, *composed.FUNCTIONS})
