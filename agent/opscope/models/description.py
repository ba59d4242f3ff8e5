"""The description of a model file."""

from __future__ import annotations

import builtins
import math
from collections import Counter
from dataclasses import dataclass, field

ITEM_BYTES = {
    "float64": 8,
    "int64": 8,
    "uint64": 8,
    "complex64": 8,
    "complex128": 16,
    "float32": 4,
    "int32": 4,
    "uint32": 4,
    "float16": 2,
    "bfloat16": 2,
    "int16": 2,
    "uint16": 2,
}
"""Bytes of an element by dtype, where that is more than one."""


@dataclass(frozen=True)
class TensorFacts:
    name: str
    dtype: str
    """PyTorch's name, without "torch."."""
    shape: tuple[int, ...]

    @property
    def count(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """Bytes of all elements; those of one view of a shared storage count for each view."""
        return self.count * ITEM_BYTES.get(self.dtype, 1)


@dataclass
class Description:
    format: str
    bytes: int
    """Of the file."""
    facts: dict[str, str] = field(default_factory=dict)
    """Versions and the like, as the file has them."""
    producer: dict[str, str] = field(default_factory=dict)
    """Who saved it: `producer_info.json`, or what the format has for it."""
    operators: Counter[str] = field(default_factory=Counter)
    """How often the program calls each operator, as written: a call in a loop counts once."""
    tensors: list[TensorFacts] = field(default_factory=list)
    extra: dict[str, builtins.bytes] = field(default_factory=dict)
    """Extra files by name."""
    functions: list[str] = field(default_factory=list)
    """Of a compiled model."""
    notes: list[str] = field(default_factory=list)
    """What could not be read, and why."""
