"""Callbacks in Python: add and remove them; C calls them through the entry points here."""

from __future__ import annotations

import atexit
import warnings
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any

from opscope._native import ffi, lib
from opscope.errors import CallbackError, check
from opscope.record import closing as closing
from opscope.record import interrupts
from opscope.record.function import RecordFunction
from opscope.record.scope import RecordScope, scope_bits

Start = Callable[[RecordFunction], object]
End = Callable[[RecordFunction, Any], object]


class _Callback:
    """A registered pair of start and end. C holds a handle to it until it drops it."""

    __slots__ = ("contexts", "end", "handle", "is_reported", "number", "start")

    def __init__(self, start: Start | None, end: End | None) -> None:
        self.start = start
        self.end = end
        self.number = 0
        self.is_reported = False
        # Results of start, by the address of the handle that C passes to end.
        self.contexts: dict[int, tuple[Any, object]] = {}
        self.handle: Any = ffi.new_handle(self)
        _alive.add(self)


_alive: set[_Callback] = set()
_warned_of_handle = False


def _raised(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> int | None:
    """cffi calls this for an exception in `_start` or `_end`; C counts it if it is theirs."""
    if interrupts.pass_on(error, traceback):
        return 0
    assert traceback is not None
    frame = traceback.tb_frame.f_locals
    callback: _Callback = ffi.from_handle(frame["user"])
    if not callback.is_reported:
        callback.is_reported = True
        import logging

        logging.getLogger("opscope").warning(
            "a callback raised an error in the range %r; opscope continues to call it, and only "
            "counts its further errors",
            ffi.string(frame["fn"].op.name).decode(errors="replace"),
            exc_info=(kind, error, traceback),
        )
    return None


@ffi.def_extern(name="opscope_py_start", error=-13, onerror=_raised)  # type: ignore[untyped-decorator]
def _start(fn: Any, user: Any, context: Any) -> int:
    callback: _Callback = ffi.from_handle(user)
    if callback.start is None:
        return 0
    function = RecordFunction(fn)
    try:
        result = callback.start(function)
    finally:
        function._range = None
    if result is not None:
        handle = ffi.new_handle(result)
        callback.contexts[int(ffi.cast("uintptr_t", handle))] = (handle, result)
        context[0] = handle
    return 0


@ffi.def_extern(name="opscope_py_end", error=-13, onerror=_raised)  # type: ignore[untyped-decorator]
def _end(fn: Any, user: Any, context: Any) -> int:
    callback: _Callback = ffi.from_handle(user)
    result = None
    if context:
        _, result = callback.contexts.pop(int(ffi.cast("uintptr_t", context)))
    if callback.end is None:
        return 0
    function = RecordFunction(fn)
    try:
        callback.end(function, result)
    finally:
        function._range = None
    return 0


def _raised_in_drop(
    _: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    interrupts.pass_on(error, traceback)  # drop raises nothing else


@ffi.def_extern(name="opscope_py_drop", onerror=_raised_in_drop)  # type: ignore[untyped-decorator]
def _drop(user: Any) -> None:
    callback: _Callback = ffi.from_handle(user)
    callback.handle = None  # breaks a cycle: the handle refers to the callback
    _alive.discard(callback)


def _add(
    add: Callable[[Any, Any], int],
    start: Start | None,
    end: End | None,
    sampling_prob: float,
    needs_inputs: bool,
    needs_outputs: bool,
    needs_ids: bool,
    scopes: Iterable[RecordScope | int],
) -> int:
    probability = float(sampling_prob)
    if not 0.0 <= probability <= 1.0:
        raise ValueError(f"sampling_prob must be within [0, 1], not {sampling_prob!r}")
    for name, function in (("start", start), ("end", end)):
        if function is not None and not callable(function):
            raise TypeError(f"{name} must be callable or None, not {function!r}")
    callback = _Callback(start, end)
    spec = ffi.new("opscope_callback *")
    spec.start = ffi.addressof(lib, "opscope_py_start_outside")
    spec.end = ffi.addressof(lib, "opscope_py_end_outside")
    spec.drop = ffi.addressof(lib, "opscope_py_drop_outside")
    spec.user = callback.handle
    spec.sampling_prob = probability
    spec.scopes = scope_bits(scopes)
    spec.needs_inputs = needs_inputs
    spec.needs_outputs = needs_outputs
    spec.needs_ids = needs_ids
    handle = ffi.new("opscope_handle *")
    status = add(spec, handle)
    if status != lib.OPSCOPE_OK:
        callback.handle = None
        _alive.discard(callback)
        check(status, "cannot add a callback (at most 64 at a time)", CallbackError)
    callback.number = int(handle[0])
    return callback.number


def add_global_callback(
    start: Start | None = None,
    end: End | None = None,
    *,
    sampling_prob: float = 1.0,
    needs_inputs: bool = False,
    needs_outputs: bool = False,
    needs_ids: bool = False,
    scopes: Iterable[RecordScope | int] = (),
) -> int:
    """Call `start(fn) -> context` and `end(fn, context)` around the ranges of all threads.

    Returns a handle for `remove_callback`.

    >>> handle = add_global_callback(lambda fn: print(fn.name))
    >>> with opscope.record_function("tokenize"):
    ...     pass
    tokenize
    >>> remove_callback(handle)

    `fn` is a `RecordFunction`; `needs_inputs`, `needs_outputs` and `needs_ids` fill in its
    `inputs`, `outputs` and `handle`. `sampling_prob` in [0, 1] is the probability of each range
    (otherwise ValueError). `scopes` selects the scopes; empty selects all. Raises CallbackError for
    more than 64 callbacks.

    Callbacks run in the order of registration, global ones first; ends run in the same order as
    starts. No callback sees ranges opened by a callback. An exception in a callback is contained:
    logged once for each callback (to the logger "opscope", with the name of the range) and counted
    (`callback_errors`). After a start that raised, its end is called with the context None. An
    exception from a signal handler belongs to the program, and is raised there after the callback
    has returned; so is a KeyboardInterrupt, from any thread.
    """
    return _add(
        lib.opscope_add_global_callback,
        start,
        end,
        sampling_prob,
        needs_inputs,
        needs_outputs,
        needs_ids,
        scopes,
    )


def add_thread_local_callback(
    start: Start | None = None,
    end: End | None = None,
    *,
    sampling_prob: float = 1.0,
    needs_inputs: bool = False,
    needs_outputs: bool = False,
    needs_ids: bool = False,
    scopes: Iterable[RecordScope | int] = (),
) -> int:
    """Like `add_global_callback`, but for ranges of the calling thread and of the tasks that it
    forks."""
    return _add(
        lib.opscope_add_thread_local_callback,
        start,
        end,
        sampling_prob,
        needs_inputs,
        needs_outputs,
        needs_ids,
        scopes,
    )


def _ask(change: Callable[..., int], handle: int, *args: object) -> None:
    global _warned_of_handle
    known = 0 < handle < 1 << 64
    status = change(handle, *args) if known else lib.OPSCOPE_ERR_NOT_FOUND
    if status != lib.OPSCOPE_ERR_NOT_FOUND:
        check(status, f"callback {handle}", CallbackError)
    elif not _warned_of_handle:
        _warned_of_handle = True
        warnings.warn(
            f"no callback has the handle {handle}; further unknown handles are ignored silently",
            RuntimeWarning,
            stacklevel=3,
        )


def remove_callback(handle: int, *, wait: bool = False) -> None:
    """Remove a callback: one of this thread's own, or else a global one.

    An unknown handle causes a RuntimeWarning, once in the process. A range that has called the
    callback's start still calls its end. With `wait`, returns when no such range is open on any
    thread; raises CallbackError if the caller is inside one (the callback is removed anyway).
    """
    _ask(lib.opscope_remove_callback, handle, wait)


def disable_callback(handle: int) -> None:
    """Stop calling a callback until `enable_callback`; a second call does nothing.

    Treats unknown handles like `remove_callback`.
    """
    _ask(lib.opscope_disable_callback, handle)


def enable_callback(handle: int) -> None:
    """Undo `disable_callback`; a second call does nothing."""
    _ask(lib.opscope_enable_callback, handle)


def clear_callbacks() -> None:
    """Remove all global callbacks, including the recorder's, and this thread's local ones."""
    lib.opscope_clear_callbacks()


def has_callbacks() -> bool:
    """Whether any callback could see a range opened on this thread now."""
    return bool(lib.opscope_has_callbacks())


def callback_errors() -> int:
    """The number of exceptions from callbacks in this process, including callbacks in C."""
    return int(lib.opscope_callback_errors())


@atexit.register
def _remove_all() -> None:
    """Removes all callbacks when the interpreter ends."""
    for callback in _alive.copy():  # in one step, while other threads add some
        lib.opscope_remove_callback(callback.number, False)
