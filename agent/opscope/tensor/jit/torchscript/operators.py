"""All operators that have a translation."""

from __future__ import annotations

# Numbers last: of `neg` and the like they keep what these do with tensors.
from opscope.tensor.jit.torchscript import (  # isort: skip
    network_operators,
    tensor_operators,
    value_operators,
)
from opscope.tensor.jit.torchscript.table import TABLE, MissingError

__all__ = ["TABLE", "MissingError", "network_operators", "tensor_operators", "value_operators"]
