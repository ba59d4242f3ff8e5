"""Datatypes of the protocol, and the dtypes and Python formats that are their elements here."""

from __future__ import annotations

from typing import NamedTuple

from opscope import tensor as ot
from opscope.serving.faults import RequestError, bad_request


class Datatype(NamedTuple):
    name: str
    dtype: ot.dtype
    format: str | None
    """As in the module `array`; None if Python has no such numbers."""
    contents: str | None
    """The field of InferTensorContents; None: raw only."""


_ALL = (
    Datatype("BOOL", ot.bool, "B", "bool_contents"),
    Datatype("UINT8", ot.uint8, "B", "uint_contents"),
    Datatype("INT32", ot.int32, "i", "int_contents"),
    Datatype("INT64", ot.int64, "q", "int64_contents"),
    Datatype("FP16", ot.float16, None, None),
    Datatype("BF16", ot.bfloat16, None, None),
    Datatype("FP32", ot.float32, "f", "fp32_contents"),
    Datatype("FP64", ot.float64, "d", "fp64_contents"),
)
_BY_NAME = {one.name: one for one in _ALL}
_BY_DTYPE = {one.dtype.name: one for one in _ALL}
# Of the protocol, but models of the tensor core cannot take them.
_OTHERS = {"UINT16", "UINT32", "UINT64", "INT8", "INT16", "BYTES"}


def named(name: str) -> Datatype:
    """The datatype of that name. Raises RequestError for one that models cannot take."""
    found = _BY_NAME.get(name)
    if found is None:
        raise unsupported(name)
    return found


def unsupported(name: str) -> RequestError:
    if name in _OTHERS:
        return bad_request(f"no model here takes the datatype {name}")
    return bad_request(f"{name[:40]!r} is no datatype: use one of {', '.join(_BY_NAME)}")


def of(tensor: ot.Tensor) -> Datatype:
    """The datatype of a tensor's elements."""
    return _BY_DTYPE[tensor.dtype.name]
