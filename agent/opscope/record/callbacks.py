"""Callbacks from Python: adding, removing, and the entry points through which C calls them."""

from __future__ import annotations

import atexit
import warnings
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any

from opscope._native import ffi, lib
from opscope.errors import CallbackError, check
from opscope.record import closing as closing
from opscope.record.function import RecordFunction
from opscope.record.scope import RecordScope, scope_bits

Start = Callable[[RecordFunction], object]
End = Callable[[RecordFunction, Any], object]


class _Callback:
    """A registered pair. C holds a handle to it until it drops it."""

    __slots__ = ("contexts", "end", "handle", "is_reported", "number", "start")

    def __init__(self, start: Start | None, end: End | None) -> None:
        self.start = start
        self.end = end
        self.number = 0
        self.is_reported = False
        # What start returned, by the address of the handle that C carries to end.
        self.contexts: dict[int, tuple[Any, object]] = {}
        self.handle: Any = ffi.new_handle(self)
        _alive.add(self)


_alive: set[_Callback] = set()
_warned_of_handle = False


def _raised(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    """What cffi calls for an exception of ``_start`` or ``_end``; C counts it."""
    if issubclass(kind, KeyboardInterrupt):
        lib.opscope_py_is_interrupted = 1  # raised in the program once C has left the callback
        return
    assert traceback is not None
    callback: _Callback = ffi.from_handle(traceback.tb_frame.f_locals["user"])
    if not callback.is_reported:
        callback.is_reported = True
        import logging

        logging.getLogger("opscope").warning(
            "a callback raised; it goes on being called, further errors are only counted",
            exc_info=(kind, error, traceback),
        )


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


@ffi.def_extern(name="opscope_py_drop")  # type: ignore[untyped-decorator]
def _drop(user: Any) -> None:
    callback: _Callback = ffi.from_handle(user)
    callback.handle = None  # it refers to the callback
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
    """Have ``start(fn) -> context`` and ``end(fn, context)`` called around the ranges of all
    threads; returns a handle for :func:`remove_callback`.

    >>> handle = add_global_callback(lambda fn: print(fn.name))
    >>> with opscope.record_function("tokenize"):
    ...     pass
    tokenize
    >>> remove_callback(handle)

    ``fn`` is a :class:`RecordFunction`; ``needs_inputs``, ``needs_outputs`` and ``needs_ids`` make
    its ``inputs``, ``outputs`` and ``handle`` there. ``sampling_prob`` within [0, 1] is the
    probability of each range (ValueError else); ``scopes`` the scopes wanted, none meaning all.
    CallbackError for more than 64 callbacks.

    Callbacks run in the order of registration, global ones first, ends in the same order as starts;
    ranges opened by a callback are seen by none. What a callback raises is contained: logged (to
    the logger "opscope") once for each callback, and counted (:func:`callback_errors`). After a
    start that raised, its end is called with the context None. A KeyboardInterrupt goes on to the
    main thread.
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
    """As :func:`add_global_callback`, for the ranges of the calling thread and of the tasks it
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
    """Remove a callback: one of this thread's own, else a global one.

    An unknown handle is a RuntimeWarning, once in the process. A range that saw the callback's
    start still calls its end. With ``wait``, returns when no such range is open on any thread;
    CallbackError where the caller itself is inside one (the callback is removed all the same).
    """
    _ask(lib.opscope_remove_callback, handle, wait)


def disable_callback(handle: int) -> None:
    """Stop calling a callback until :func:`enable_callback`; doing it twice does nothing.

    Unknown handles are treated as by :func:`remove_callback`.
    """
    _ask(lib.opscope_disable_callback, handle)


def enable_callback(handle: int) -> None:
    """Undo :func:`disable_callback`; doing it twice does nothing."""
    _ask(lib.opscope_enable_callback, handle)


def clear_callbacks() -> None:
    """Remove all global callbacks and the local ones of this thread, the recorder's too."""
    lib.opscope_clear_callbacks()


def has_callbacks() -> bool:
    """Whether a range opened on this thread now could be seen by a callback."""
    return bool(lib.opscope_has_callbacks())


def callback_errors() -> int:
    """How often callbacks have raised in this process, those written in C included."""
    return int(lib.opscope_callback_errors())


@atexit.register
def _remove_all() -> None:
    """As the interpreter ends, what was registered is gone."""
    for callback in tuple(_alive):
        lib.opscope_remove_callback(callback.number, False)
