"""Callbacks from Python: adding, removing, and the entry points through which C calls them."""

from __future__ import annotations

import _thread
import atexit
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from opscope._native import ffi, lib
from opscope.errors import CallbackError, check
from opscope.record.function import RecordFunction
from opscope.record.scope import RecordScope, scope_bits

Start = Callable[[RecordFunction], object]
End = Callable[[RecordFunction, Any], object]


class _Callback:
    """A registered pair. C holds a handle to it until it drops it."""

    __slots__ = ("contexts", "end", "handle", "is_reported", "start")

    def __init__(self, start: Start | None, end: End | None) -> None:
        self.start = start
        self.end = end
        self.is_reported = False
        # What start returned, by the address of the handle that C carries to end.
        self.contexts: dict[int, tuple[Any, object]] = {}
        self.handle = ffi.new_handle(self)
        _alive.add(self)

    def report(self) -> None:
        """Say once that this callback raises; the rest is in ``callback_errors``."""
        if self.is_reported:
            return
        self.is_reported = True
        import logging

        logging.getLogger("opscope").warning(
            "a callback raised; it goes on being called, further errors are only counted",
            exc_info=True,
        )


_alive: set[_Callback] = set()
_warned_of_handle = False


@ffi.def_extern(name="opscope_py_start", error=-13)  # type: ignore[untyped-decorator]
def _start(fn: Any, user: Any, context: Any) -> int:
    callback: _Callback = ffi.from_handle(user)
    if callback.start is None:
        return 0
    function = RecordFunction(fn)
    try:
        result = callback.start(function)
        if result is not None:
            handle = ffi.new_handle(result)
            callback.contexts[int(ffi.cast("uintptr_t", handle))] = (handle, result)
            context[0] = handle
    except KeyboardInterrupt:
        _thread.interrupt_main()  # the user's Ctrl-C is the program's, not ours
    except BaseException:
        callback.report()
        return int(lib.OPSCOPE_ERR_CALLBACK)
    finally:
        function._range = None
    return 0


@ffi.def_extern(name="opscope_py_end", error=-13)  # type: ignore[untyped-decorator]
def _end(fn: Any, user: Any, context: Any) -> int:
    callback: _Callback = ffi.from_handle(user)
    kept = callback.contexts.pop(int(ffi.cast("uintptr_t", context)), (None, None))
    if callback.end is None:
        return 0
    function = RecordFunction(fn)
    try:
        callback.end(function, kept[1])
    except KeyboardInterrupt:
        _thread.interrupt_main()
    except BaseException:
        callback.report()
        return int(lib.OPSCOPE_ERR_CALLBACK)
    finally:
        function._range = None
    return 0


@ffi.def_extern(name="opscope_py_drop")  # type: ignore[untyped-decorator]
def _drop(user: Any) -> None:
    _alive.discard(ffi.from_handle(user))


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
    spec.start = lib.opscope_py_start
    spec.end = lib.opscope_py_end
    spec.drop = lib.opscope_py_drop
    spec.user = callback.handle
    spec.sampling_prob = probability
    spec.scopes = scope_bits(scopes)
    spec.needs_inputs = needs_inputs
    spec.needs_outputs = needs_outputs
    spec.needs_ids = needs_ids
    handle = ffi.new("opscope_handle *")
    status = add(spec, handle)
    if status != lib.OPSCOPE_OK:
        _alive.discard(callback)
        check(status, "cannot add a callback (at most 64 at a time)", CallbackError)
    return int(handle[0])


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

    ``sampling_prob`` within [0, 1] is the probability of each range (ValueError else); ``scopes``
    the scopes wanted, none meaning all. Exceptions are contained: reported once, counted.
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


def _find(status: int, handle: int) -> None:
    global _warned_of_handle
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
    """Remove a callback; an unknown handle is a warning, once.

    A range that saw it start still calls its end. With ``wait``, returns when no such range is
    open on any thread; CallbackError where the caller itself is inside one.
    """
    _find(lib.opscope_remove_callback(handle, wait), handle)


def disable_callback(handle: int) -> None:
    """Stop calling a callback until :func:`enable_callback`; doing it twice does nothing."""
    _find(lib.opscope_disable_callback(handle), handle)


def enable_callback(handle: int) -> None:
    """Undo :func:`disable_callback`."""
    _find(lib.opscope_enable_callback(handle), handle)


def clear_callbacks() -> None:
    """Remove all global callbacks and the local ones of this thread, the recorder's too."""
    lib.opscope_clear_callbacks()


def has_callbacks() -> bool:
    """Whether a range opened on this thread now could be seen by a callback."""
    return bool(lib.opscope_has_callbacks())


def callback_errors() -> int:
    """How often callbacks of this process have raised."""
    return int(lib.opscope_callback_errors())


@atexit.register
def _forget_python_callbacks() -> None:
    # Threads that outlive the interpreter must not call into it.
    for callback in _alive:
        callback.start = callback.end = None
