"""Inputs and outputs of ranges: Python objects to ``opscope_value`` and back."""

from __future__ import annotations

from typing import Any

from opscope._native import ffi, lib

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


def unbox(value: Any) -> object:
    """The Python object for one ``opscope_value``; an object that is not Python's as ``None``."""
    union = getattr(value, "as")
    if value.kind == lib.OPSCOPE_VALUE_INT:
        return int(union.integer)
    if value.kind == lib.OPSCOPE_VALUE_BOOL:
        return bool(union.integer)
    if value.kind == lib.OPSCOPE_VALUE_FLOAT:
        return float(union.real)
    if value.kind == lib.OPSCOPE_VALUE_TEXT:
        return ffi.string(union.text).decode(errors="replace")
    if value.kind == lib.OPSCOPE_VALUE_OBJECT and ffi.string(value.type) == b"python":
        return _object_at(int(ffi.cast("uintptr_t", union.object)))
    return None


def _object_at(address: int) -> object:
    # ctypes only where somebody asks for inputs: it takes a millisecond to import.
    import ctypes

    return ctypes.cast(address, ctypes.py_object).value if address else None
