"""`RecordFunction`, the argument `fn` of callbacks: the range that they are called for."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from opscope._native import ffi, lib
from opscope.record.scope import RecordScope
from opscope.record.values import unbox

# By the operator's address; operators live as long as the process.
_names: dict[int, tuple[str, str, RecordScope]] = {}


def _new_table() -> None:
    global _names
    _names = {}


# Without the GIL another thread may hold the dict's lock at a fork, as in ranges.py.
if "t" in sys.abiflags:
    os.register_at_fork(after_in_child=_new_table)


def _describe(op: Any) -> tuple[str, str, RecordScope]:
    name = ffi.string(op.name).decode(errors="replace")
    overload = ffi.string(op.overload_name).decode(errors="replace")
    return name, overload, RecordScope(op.scope)


class RecordFunction:
    """A range as its callbacks see it.

    `inputs`, `outputs`, `debug_info` and `failed` are readable during the callback only
    (RuntimeError later). `name`, `overload_name`, `scope`, `thread_id` (dense from 1), `is_async`,
    `handle`, `sequence_nr` and `forward_thread_id` stay readable. `handle` is unique in the
    process, and 0 unless the callback was added with `needs_ids`. Without a sequence number,
    `sequence_nr` is -1; without a forward thread, `forward_thread_id` is 0.
    """

    __slots__ = (
        "_range",
        "forward_thread_id",
        "handle",
        "is_async",
        "name",
        "overload_name",
        "scope",
        "sequence_nr",
        "thread_id",
    )

    def __init__(self, fn: Any) -> None:
        op = fn.op
        address = int(ffi.cast("uintptr_t", op))
        known = _names.get(address)
        if known is None:
            known = _names[address] = _describe(op)
        self.name, self.overload_name, self.scope = known
        self.handle: int = lib.opscope_fn_handle(fn)
        self.thread_id: int = lib.opscope_fn_thread_id(fn)
        info = fn.info
        if info == ffi.NULL:
            self.sequence_nr = -1
            self.forward_thread_id = 0
            self.is_async = False
        else:
            self.sequence_nr = info.sequence_nr
            self.forward_thread_id = info.forward_thread_id
            self.is_async = info.is_async
        self._range: Any = fn

    def _current(self) -> Any:
        if self._range is None:
            raise RuntimeError(
                f"{self.name}: inputs, outputs, debug_info and failed can only be read during "
                "the callback"
            )
        return self._range

    @property
    def inputs(self) -> tuple[object, ...]:
        """The operator's inputs, if the callback was added with `needs_inputs`; else ().

        Lists of native operators (sizes, dims, the tensors of a `cat`) are
        `opscope.record.values.ListValue`: their first 64 items, and their length.
        """
        return self._read(lib.opscope_fn_inputs)

    @property
    def outputs(self) -> tuple[object, ...]:
        """At the end, with `needs_outputs`: the operator's results; else (). An operator that
        returns a list (`split`) has one output, a ListValue."""
        return self._read(lib.opscope_fn_outputs)

    def whole_inputs(self) -> tuple[object, ...]:
        """`inputs` with all items of lists."""
        return self._read(lib.opscope_fn_inputs, whole=True)

    def whole_outputs(self) -> tuple[object, ...]:
        """`outputs` with all items of lists."""
        return self._read(lib.opscope_fn_outputs, whole=True)

    def _read(self, read: Callable[[Any, Any], Any], whole: bool = False) -> tuple[object, ...]:
        count = ffi.new("size_t *")
        values = read(self._current(), count)
        return tuple(unbox(values[i], whole) for i in range(count[0]))

    @property
    def debug_info(self) -> dict[str, str]:
        """The labels of this thread."""
        self._current()
        return debug_info_dict()

    @property
    def failed(self) -> bool:
        """At the end: whether the operator raised."""
        return bool(lib.opscope_range_failed(self._current()))

    def __repr__(self) -> str:
        return f"<RecordFunction {self.name!r} scope={self.scope.name} thread={self.thread_id}>"


def debug_info_dict() -> dict[str, str]:
    """The labels of this thread; an inner label shadows an outer one with the same key."""
    return {key: value for key, value in links().items() if value is not None}


def links() -> dict[str, str | None]:
    """The same, with masked keys as None."""
    labels: dict[str, str | None] = {}
    link = lib.opscope_debug_info_current()
    while link != ffi.NULL:
        key, value = ffi.string(link.key), link.value
        labels.setdefault(
            key.decode(errors="replace"),
            ffi.string(value).decode(errors="replace") if value != ffi.NULL else None,
        )
        link = link.parent
    return labels
