"""Pass exceptions of signal handlers from a callback on to the program.

Python runs signal handlers between any two steps of Python code on the main thread, and so within a
callback, from which no exception may enter C. This module keeps such an exception until C has left
the callback; native/python/outside.c then makes the interpreter raise it in the program's own code.
Exceptions of the callback itself are contained (callbacks.py).
"""

from __future__ import annotations

import sys
from _thread import get_ident, get_native_id
from collections.abc import Iterator
from os import getpid
from types import CodeType, TracebackType

from opscope._native import lib

raised: list[BaseException] = []
"""Exceptions to raise in the program, in this order. C empties it."""


def pass_on(error: BaseException, traceback: TracebackType | None) -> bool:
    """Keeps the exception for the program if it is the program's; whether it is.

    `traceback` is the one that cffi reports: where no `try` was entered on the way, the exception
    does not have it yet, and its handler would not be recognized.
    """
    error.__traceback__ = traceback
    if not is_of_signal(error):
        return False
    raised.append(error)
    lib.opscope_py_has_raised = 1
    return True


def is_of_signal(error: BaseException) -> bool:
    """Whether a signal handler raised it. A KeyboardInterrupt counts as such on any thread.

    A handler in Python is recognized by its frame: one argument is the interrupted frame. A handler
    in C has no frame; if such a handler is registered, every exception that is no subclass of
    Exception may be its own.
    """
    if isinstance(error, KeyboardInterrupt):
        return True
    if not _is_main_thread():
        return False
    link = error.__traceback__
    while link is not None and link.tb_next is not None:
        if _was_called_with_frame(link.tb_next, link):
            return True
        link = link.tb_next
    codes = list(_handlers())
    if not isinstance(error, Exception) and None in codes:
        return True
    link = error.__traceback__
    while link is not None:
        if link.tb_frame.f_code in codes:
            return True
        link = link.tb_next
    return False


def _is_main_thread() -> bool:
    threading = sys.modules.get("threading")
    if threading is not None:
        return bool(threading.main_thread().ident == get_ident())
    return get_native_id() == getpid()


def _was_called_with_frame(link: TracebackType, caller: TracebackType) -> bool:
    """Whether the frame of `link` has its caller's frame as an argument, as a handler has."""
    frame, code = link.tb_frame, link.tb_frame.f_code
    count = code.co_argcount
    if code.co_flags & 0x04:  # *args
        count += code.co_kwonlyargcount + 1
    values = frame.f_locals
    for name in code.co_varnames[:count]:
        value = values.get(name)
        if value is caller.tb_frame or (type(value) is tuple and caller.tb_frame in value):
            return True
    return False


def _handlers() -> Iterator[CodeType | None]:
    """The code of each registered handler; None for a handler in C."""
    import signal

    for number in signal.valid_signals():
        handler = signal.getsignal(number)
        if not callable(handler) or handler is signal.default_int_handler:
            continue
        handler = getattr(handler, "func", handler)  # of a partial
        handler = getattr(handler, "__func__", handler)  # of a method
        if not hasattr(handler, "__code__"):
            handler = getattr(type(handler).__call__, "__code__", handler)
        yield getattr(handler, "__code__", handler if isinstance(handler, CodeType) else None)
