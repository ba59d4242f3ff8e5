"""What the namespace can do: `__array_namespace_info__` of the array API standard."""

from __future__ import annotations

from typing import Any

from opscope import _tensor
from opscope.tensor.array_api.arrays import _KINDS
from opscope.tensor.places import CPU


class Info:
    """Devices, dtypes and capabilities."""

    def capabilities(self) -> dict[str, Any]:
        """Boolean indexing and shapes that depend on data work; at most 64 axes."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        """The cpu."""
        return CPU

    def devices(self) -> list[Any]:
        """The cpu alone."""
        return [CPU]

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """What functions make without a dtype."""
        return {
            "real floating": _tensor.float32,
            "integral": _tensor.int64,
            "indexing": _tensor.int64,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """The dtypes of a kind, or all, by name."""
        kinds = ("bool", "numeric") if kind is None else kind
        wanted = kinds if isinstance(kinds, tuple) else (kinds,)
        return {each.name: each for name in wanted for each in _KINDS[name]}
