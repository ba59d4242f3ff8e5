"""Inputs and outputs of ranges: Python objects to ``opscope_value`` and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opscope._native import ffi, lib
from opscope.record import closing as closing

_PYTHON = ffi.new("char[]", b"python")

# Fills in the values of a tuple, given by its handle: what a range takes as inputs or outputs.
box = ffi.addressof(lib, "opscope_py_box_outside")


def _raised(kind: type[BaseException], *_: object) -> None:
    if issubclass(kind, KeyboardInterrupt):
        lib.opscope_py_is_interrupted = 1


@ffi.def_extern(name="opscope_py_box", error=0, onerror=_raised)  # type: ignore[untyped-decorator]
def _box(arg: Any, values: Any, capacity: int) -> int:
    """Borrowed references: whoever opened the range keeps the tuple alive."""
    objects: tuple[object, ...] = ffi.from_handle(arg)
    for value, item in zip(values[0 : min(capacity, len(objects))], objects, strict=False):
        value.kind = lib.OPSCOPE_VALUE_OBJECT
        value.type = _PYTHON
        getattr(value, "as").object = ffi.cast("void *", id(item))
    return len(objects)


# By the type of an OBJECT value: its Python object, from its address.
_objects: dict[bytes, Callable[[int], object]] = {}


def register_object(kind: str, from_address: Callable[[int], object]) -> None:
    """Have values of the type ``kind`` ("tensor") made into Python objects by ``from_address``."""
    _objects[kind.encode()] = from_address


def unbox(value: Any) -> object:
    """The Python object for one ``opscope_value``; ``None`` for an object nobody registered."""
    union = getattr(value, "as")
    if value.kind == lib.OPSCOPE_VALUE_INT:
        return int(union.integer)
    if value.kind == lib.OPSCOPE_VALUE_BOOL:
        return bool(union.integer)
    if value.kind == lib.OPSCOPE_VALUE_FLOAT:
        return float(union.real)
    if value.kind == lib.OPSCOPE_VALUE_TEXT:
        return ffi.string(union.text).decode(errors="replace")
    if value.kind == lib.OPSCOPE_VALUE_OBJECT:
        from_address = _objects.get(ffi.string(value.type))
        return from_address and from_address(int(ffi.cast("uintptr_t", union.object)))
    return None


def _python_object(address: int) -> object:
    # ctypes only where somebody asks for inputs: it takes a millisecond to import.
    import ctypes

    return ctypes.cast(address, ctypes.py_object).value if address else None


register_object("python", _python_object)
