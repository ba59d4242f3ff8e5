"""Combine samples into batches: `default_collate`; or `default_convert` without batches.

This does not import NumPy: if a sample is a NumPy object, NumPy is imported already.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from opscope._tensor import Tensor, float64, from_numpy, functions, tensor


def default_convert(data: Any) -> Any:
    """`data` with its arrays and NumPy numbers, also in containers, converted to tensors."""
    if _is_numpy(data):
        return data if _is_text(data) else _from_numpy(data)
    if isinstance(data, Mapping):
        return _mapping_like(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(part) for part in data))
    if isinstance(data, tuple):
        return [default_convert(part) for part in data]
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        return _sequence_like(data, [default_convert(part) for part in data])
    return data


def default_collate(batch: Sequence[Any]) -> Any:
    """One batch of a list of samples, all of the first one's form.

    Tensors and arrays are stacked along a new first dimension; numbers become a tensor (floats
    float64, ints int64); text stays a list; mappings, named tuples and sequences are collated part
    by part. TypeError for anything else, RuntimeError for parts of unequal length.
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return functions["stack"](list(batch), 0)
    if _is_numpy(first):
        if _is_text(first):
            raise TypeError(f"default_collate(): arrays of {first.dtype} cannot become tensors")
        return functions["stack"]([_from_numpy(part) for part in batch], 0)
    if isinstance(first, float):
        return tensor(batch, dtype=float64)
    if isinstance(first, int):
        return tensor(batch)
    if isinstance(first, str | bytes):
        return batch
    if isinstance(first, Mapping):
        return _mapping_like(
            first, {key: default_collate([part[key] for part in batch]) for key in first}
        )
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(default_collate(part) for part in zip(*batch, strict=True)))
    if isinstance(first, Sequence):
        if any(len(part) != len(first) for part in batch):
            lengths = sorted({len(part) for part in batch})
            raise RuntimeError(f"default_collate(): the samples have unequal lengths: {lengths}")
        parts = [default_collate(part) for part in zip(*batch, strict=True)]
        return parts if isinstance(first, tuple) else _sequence_like(first, parts)
    raise TypeError(
        "default_collate(): samples are made of tensors, arrays, numbers, text, mappings and "
        f"sequences, not {type(first).__name__}; give the DataLoader a collate_fn"
    )


def _is_numpy(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray | numpy.generic)


def _is_text(value: Any) -> bool:
    return value.dtype.kind in "SUO"


def _from_numpy(value: Any) -> Tensor:
    numpy = sys.modules["numpy"]
    return from_numpy(numpy.asarray(value))


def _mapping_like(source: Mapping[Any, Any], made: dict[Any, Any]) -> Any:
    return _like(source, dict, made)


def _sequence_like(source: Sequence[Any], made: list[Any]) -> Any:
    return made if isinstance(source, range) else _like(source, list, made)


def _like(source: Any, plain: type, made: Any) -> Any:
    """`made` in the type of `source`, if that type accepts it."""
    kind: Callable[[Any], Any] = type(source)
    if kind is plain:
        return made
    try:
        return kind(made)
    except TypeError:
        return made
