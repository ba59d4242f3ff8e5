"""The table of all translated operators."""

from __future__ import annotations

# In this order: of `neg` and the like, numbers keep what the tensors' translations do with tensors,
# and properties keep what both do.
from opscope.tensor.jit.torchscript import (  # isort: skip
    attention_operators,
    creation_operators,
    network_operators,
    tensor_operators,
    like_operators,
    reduction_operators,
    value_operators,
    property_operators,
)
from opscope.tensor.jit.torchscript.table import TABLE, MissingError, lacks

__all__ = [
    "TABLE",
    "MissingError",
    "attention_operators",
    "creation_operators",
    "lacks",
    "like_operators",
    "network_operators",
    "property_operators",
    "reduction_operators",
    "tensor_operators",
    "value_operators",
]
