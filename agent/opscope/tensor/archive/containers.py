"""Containers of tensors as JSON values, and back.

None, bool, int, str, finite floats and lists are JSON's own. Everything else is an object with one
key, the kind: `{"tensor": 3}`, `{"parameter": 3}`, `{"tuple": [...]}`, `{"dict": [[key, value],
...]}`, `{"ordered_dict": [...]}`, `{"bytes": base64}`, `{"float": "nan"}`, `{"dtype": "float32"}`.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from opscope import _tensor
from opscope._tensor import Tensor, dtype
from opscope.tensor.nn.module import Parameter

DEPTH_LIMIT = 100

_CAN = (
    "tensors, None, bool, int, float, str, bytes, dtypes, and lists, tuples, dicts and "
    "OrderedDicts of these can be saved"
)
DTYPES = {value.name: value for value in vars(_tensor).values() if isinstance(value, dtype)}
_ODD_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def to_tree(obj: Any, add_tensor: Callable[[Tensor], int]) -> Any:
    """`obj` as JSON values. `add_tensor` gives each tensor its number."""
    return _to_tree(obj, add_tensor, "object", frozenset())


def _to_tree(
    obj: Any, add_tensor: Callable[[Tensor], int], place: str, outer: frozenset[int]
) -> Any:
    if obj is None or isinstance(obj, bool | str) or type(obj) is int:
        return obj
    if type(obj) is float:
        return obj if math.isfinite(obj) else {"float": str(obj)}
    if isinstance(obj, Tensor):
        return {"parameter" if isinstance(obj, Parameter) else "tensor": add_tensor(obj)}
    if isinstance(obj, bytes):
        return {"bytes": base64.b64encode(obj).decode()}
    if isinstance(obj, dtype):
        return {"dtype": obj.name}
    if type(obj) not in (list, tuple, dict, OrderedDict):
        raise TypeError(f"{place} is a {type(obj).__qualname__}: only {_CAN}")
    if id(obj) in outer:
        raise ValueError(f"{place} contains itself")
    if len(outer) == DEPTH_LIMIT:
        raise ValueError(f"{place} is nested more than {DEPTH_LIMIT} deep")
    outer |= {id(obj)}
    if isinstance(obj, list | tuple):
        items = [
            _to_tree(item, add_tensor, f"{place}[{index}]", outer) for index, item in enumerate(obj)
        ]
        return items if isinstance(obj, list) else {"tuple": items}
    pairs = [
        [
            _to_tree(key, add_tensor, f"a key of {place}", outer),
            _to_tree(value, add_tensor, f"{place}[{key!r}]", outer),
        ]
        for key, value in obj.items()
    ]
    return {"ordered_dict" if isinstance(obj, OrderedDict) else "dict": pairs}


def from_tree(
    tree: Any, tensor: Callable[[Any], Tensor], fault: Callable[[str], ValueError]
) -> Any:
    """The object of such a tree. `fault` makes the error for a tree that `to_tree` never gives."""
    return _from_tree(tree, tensor, fault, 0)


def _from_tree(
    tree: Any, tensor: Callable[[Any], Tensor], fault: Callable[[str], ValueError], depth: int
) -> Any:
    if depth > DEPTH_LIMIT:
        raise fault("its containers are nested too deep")

    def inner(below: Any) -> Any:
        return _from_tree(below, tensor, fault, depth + 1)

    if isinstance(tree, list):
        return [inner(item) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if len(tree) != 1:
        raise fault(f"an object of {len(tree)} keys, where one key tells the kind")
    ((kind, value),) = tree.items()
    if kind == "tensor":
        return tensor(value)
    if kind == "parameter":
        loaded = tensor(value)
        return Parameter(loaded, loaded.requires_grad)
    if kind == "tuple" and isinstance(value, list):
        return tuple(inner(item) for item in value)
    if kind in ("dict", "ordered_dict") and isinstance(value, list):
        return _mapping(OrderedDict() if kind == "ordered_dict" else {}, value, inner, fault)
    if kind == "bytes" and isinstance(value, str):
        try:
            return base64.b64decode(value, validate=True)
        except binascii.Error:
            raise fault("bytes that are not base64") from None
    if kind == "float" and value in _ODD_FLOATS:
        return _ODD_FLOATS[value]
    if kind == "dtype" and value in DTYPES:
        return DTYPES[value]
    raise fault(f"an object of unknown kind {kind[:40]!r}")


def _mapping(
    made: dict[Any, Any],
    pairs: list[Any],
    inner: Callable[[Any], Any],
    fault: Callable[[str], ValueError],
) -> dict[Any, Any]:
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2:
            raise fault("an entry of a dict is not a pair")
        key = inner(pair[0])
        try:
            made[key] = inner(pair[1])
        except TypeError:
            raise fault(f"a {type(key).__name__} cannot be a key") from None
    return made


def dtype_of(name: Any, fault: Callable[[str], ValueError]) -> dtype:
    if not isinstance(name, str) or name not in DTYPES:
        raise fault(f"unknown dtype {str(name)[:40]!r}")
    return DTYPES[name]
