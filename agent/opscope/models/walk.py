"""Names of the tensors in containers: "optimizer.state.0.exp_avg"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from opscope._tensor import Tensor
from opscope.models.description import TensorFacts


def tensors_in(obj: Any, name: str = "") -> Iterator[TensorFacts]:
    """The tensors in lists, tuples and dicts, in order. Containers must not contain themselves."""
    if isinstance(obj, TensorFacts):
        yield TensorFacts(name, obj.dtype, obj.shape)
    elif isinstance(obj, Tensor):
        yield TensorFacts(name, obj.dtype.name, obj.shape)
    elif isinstance(obj, dict):
        for key, value in obj.items():
            yield from tensors_in(value, f"{name}.{key}" if name else str(key))
    elif isinstance(obj, list | tuple):
        for index, value in enumerate(obj):
            yield from tensors_in(value, f"{name}.{index}" if name else str(index))
