"""Convert inputs and outputs of ranges between Python objects and `opscope_value`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any

from opscope._native import ffi, lib
from opscope.record import closing as closing
from opscope.record import interrupts

_PYTHON = ffi.new("char[]", b"python")

# Fills in the values of a tuple, given by its handle: the inputs or outputs of a range.
box = ffi.addressof(lib, "opscope_py_box_outside")


def _raised(_: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    interrupts.pass_on(error, traceback)


@ffi.def_extern(name="opscope_py_box", error=0, onerror=_raised)  # type: ignore[untyped-decorator]
def _box(arg: Any, values: Any, capacity: int) -> int:
    """References are borrowed: the opener of the range keeps the tuple alive."""
    objects: tuple[object, ...] = ffi.from_handle(arg)
    for value, item in zip(values[0 : min(capacity, len(objects))], objects, strict=False):
        value.kind = lib.OPSCOPE_VALUE_OBJECT
        value.type = _PYTHON
        getattr(value, "as").object = ffi.cast("void *", id(item))
    return len(objects)


_ITEMS_SHOWN = 64


class ListValue(list[object]):
    """A list among an operator's inputs or outputs: a copy of its first 64 items.

    >>> fn.inputs[0]  # doctest: +SKIP
    [2, 3]

    It equals a plain list of these items. `length` is the number of items in the operator's list.
    """

    __slots__ = ("length",)

    def __init__(self, items: Iterable[object] = (), length: int | None = None) -> None:
        super().__init__(items)
        self.length = len(self) if length is None else length


# By the type name of an OBJECT value: the function that makes its Python object from its address.
_objects: dict[bytes, Callable[[int], object]] = {}


def register_object(kind: str, from_address: Callable[[int], object]) -> None:
    """Convert values of the type `kind` ("tensor") to Python objects by `from_address`."""
    _objects[kind.encode()] = from_address


def unbox(value: Any, whole: bool = False) -> object:
    """The Python object for one `opscope_value`: a ListValue for a list, None for an object of an
    unregistered type. `whole` lists have all their items."""
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
    if value.kind == lib.OPSCOPE_VALUE_LIST:
        return _unbox_list(ffi.addressof(value), whole)
    return None


def _unbox_list(value: Any, whole: bool) -> ListValue:
    capacity = _ITEMS_SHOWN
    items = ffi.new("opscope_value[]", capacity)
    length = lib.opscope_value_items(value, items, capacity)
    if whole and length > capacity:
        capacity = length
        items = ffi.new("opscope_value[]", capacity)
        lib.opscope_value_items(value, items, capacity)
    shown = items[0 : min(length, capacity)]
    return ListValue((unbox(item, whole) for item in shown), length)


def _python_object(address: int) -> object:
    # ctypes is imported only when a callback asks for inputs: the import takes a millisecond.
    import ctypes

    return ctypes.cast(address, ctypes.py_object).value if address else None


register_object("python", _python_object)
