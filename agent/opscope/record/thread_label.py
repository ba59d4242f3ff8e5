"""A label around single calls, for a fraction of the cost of `debug_info`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from opscope._native import ffi, lib
from opscope.errors import check
from opscope.record import texts

R = TypeVar("R")

_GUARD = ffi.typeof("opscope_debug_info_guard *")


class ThreadLabel:
    """The label of calls that return on their thread without switching tasks, and start no
    programs: children and tasks are not followed, as `debug_info` follows them."""

    __slots__ = ("_label",)

    def __init__(self, key: str, value: str) -> None:
        self._label = texts.label(key, value)

    def run(self, function: Callable[..., R], *args: Any) -> R:
        """Calls the function with the label on this thread."""
        if self._label is None:
            return function(*args)
        guard = ffi.new(_GUARD)
        status = lib.opscope_debug_info_push(*self._label, guard)
        if status != lib.OPSCOPE_OK:
            check(status, "a label of a call")
        try:
            return function(*args)
        finally:
            lib.opscope_debug_info_pop(guard)
