"""Ranges from Python: `record_function` and the per-thread switch `recording`."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Mapping
from time import perf_counter_ns
from typing import Any, TypeVar

from opscope._native import ffi, lib
from opscope.record.guard import Guard
from opscope.record.scope import PHASES, RecordScope, phase_number
from opscope.record.texts import text_of
from opscope.record.values import box

F = TypeVar("F", bound=Callable[..., Any])

_USER_SCOPE = RecordScope.USER_SCOPE
_USER_NUMBER = int(_USER_SCOPE)
_has_callbacks_of = lib.opscope_has_callbacks_of

# Copied from the module inspect, whose import takes milliseconds.
_CO_GENERATOR, _CO_COROUTINE, _CO_ASYNC_GENERATOR = 0x20, 0x80, 0x200

# A scope and an optional phase, in one object for speed: ranges are opened often.
_Kind = RecordScope | tuple[RecordScope, int]

_COST_ROUNDS, _COST_CALLS = range(5), range(8)
_MOST_PS = 10**9  # a millisecond
_extra_ps = 0

# Phase by prefix of a range's name. These are the names in torch.optim and torch.utils.data.
_phases = {
    "Optimizer.step": phase_number("optimizer"),
    "enumerate(DataLoader)": phase_number("data"),
}

# C never frees operators, so this table never shrinks either.
_operators: dict[tuple[str, _Kind], Any] = {}


def _new_table() -> None:
    global _operators
    _operators = {}


# Without the GIL a dict has a lock. Another thread may hold it at a fork; in the child, for ever.
if "t" in sys.abiflags:
    os.register_at_fork(after_in_child=_new_table)


def operator(name: str, kind: _Kind) -> Any:
    """The interned operator; "other" for an empty name, and beyond 65,536 names.

    Never fails: a range must not raise because it is observed.
    """
    found = _operators.get((name, kind))
    if found is None:
        scope, phase = kind if isinstance(kind, tuple) else (kind, _phase(name))
        out = ffi.new("const opscope_op **")
        text = name.encode(errors="replace").replace(b"\0", b"")
        if lib.opscope_op_intern(text, b"", int(scope), phase, out) != lib.OPSCOPE_OK:
            return lib.opscope_op_other()
        found = _operators[name, kind] = out[0]
        lib.opscope_recorder_extra_cost(found.id, _extra_cost_ps(name, kind))
    return found


def _extra_cost_ps(name: str, kind: _Kind) -> int:
    """The extra cost in ps of a recorded range from Python over one from C.

    Measured once in a process, when the first range is about to be recorded, on an operator that is
    already known; takes about 40 µs. No callback sees these ranges. The clock may be one that a
    library fakes: it may stop, or run backwards.
    """
    global _extra_ps
    if _extra_ps == 0:
        around, least = record_function(name), 1 << 62
        before = lib.opscope_recording_set(False)
        try:
            for _ in _COST_ROUNDS:
                start = perf_counter_ns()
                for _ in _COST_CALLS:
                    around._open = [*(around._open or ()), _Open(name, (), kind, False)]
                    around._end(None)
                least = min(least, perf_counter_ns() - start)
        finally:
            lib.opscope_recording_set(before)
        _extra_ps = min(max(1, 1000 * least // len(_COST_CALLS)), _MOST_PS)
    return _extra_ps


def name_phases(phases: Mapping[str, str]) -> None:
    """Sets the default phases of ranges, by prefixes of their names.

    Applies to operators that have not run yet. Raises ValueError for an unknown phase.
    """
    global _phases
    # A new table: other threads may be reading the old one.
    _phases = _phases | {beginning: phase_number(phase) for beginning, phase in phases.items()}


def _phase(name: str) -> int:
    for beginning, phase in _phases.items():
        if name.startswith(beginning):
            return phase
    return int(lib.OPSCOPE_OTHER)


class _Open:
    """An open range that callbacks see, and the objects that C borrows from it."""

    __slots__ = ("inputs", "outputs", "range")

    def __init__(self, name: str, args: tuple[object, ...], kind: _Kind, is_async: bool):
        info = ffi.NULL
        self.inputs = self.outputs = None
        if args or is_async:
            info = ffi.new("opscope_range_info *")
            info.sequence_nr = -1
            info.is_async = is_async
        if args:
            self.inputs = info.inputs_arg = ffi.new_handle(args)
            info.inputs = box
        self.range = lib.opscope_range_begin(operator(text_of(name), kind), info)


class record_function:  # noqa: N801 - PyTorch's name
    """A range around a block, or around each call of a decorated function.

    >>> with record_function("tokenize"):
    ...     pass
    >>> @record_function("double")
    ... def double(x):
    ...     return 2 * x

    Callbacks see `name` as given. Everywhere else (pages, exporters, `opscope top`), line breaks
    and other control characters in it become `?`; names that are then equal are one.

    `args` are the inputs that callbacks with `needs_inputs` see; the result of a decorated function
    is its output. A block that raises is a failed range.

    `phase` is the part of the program's work under which the range is counted: `forward`,
    `backward`, `optimizer`, `data`, `comm` or `other`. The default is `other`, except for PyTorch's
    names of optimizer steps and data loaders. Inside a range of phase backward, optimizer, data or
    comm, ranges of phase forward or other count under the outer range's phase. Raises ValueError
    for an unknown scope or phase.

    A decorated coroutine or generator function is one range from its first step to its end,
    including waits; an async generator function cannot be decorated (TypeError). Ranges of one
    thread are expected to end in the reverse order of their starts. If blocks in generators or
    coroutines end otherwise, callbacks see all ends, but the recorder drops ranges that outlast
    their outer range, or that another thread ends. An instance may be entered again while it is
    open, on the same thread.
    """

    __slots__ = ("_args", "_kind", "_name", "_open", "_scope")

    _is_async = False

    def __init__(
        self,
        name: str,
        *args: object,
        scope: RecordScope | int = RecordScope.USER_SCOPE,
        phase: str | None = None,
    ) -> None:
        if scope is _USER_SCOPE:
            self._scope = _USER_NUMBER
        else:
            scope = RecordScope(scope)
            self._scope = int(scope)
        self._name = name
        self._args = args
        self._kind: _Kind = scope if phase is None else (scope, phase_number(phase))
        self._open: list[_Open] | None = None

    def __enter__(self) -> record_function:
        # For two nested ranges of one instance too, so that each end finds its own start.
        if _has_callbacks_of(self._scope) or self._open:
            opened = _Open(self._name, self._args, self._kind, self._is_async)
            self._open = [*(self._open or ()), opened]
        return self

    # Named parameters: *_ would make a tuple in each call.
    def __exit__(
        self, kind: type[BaseException] | None, error: object = None, traceback: object = None
    ) -> None:
        if self._open:
            self._end(kind)

    def _end(self, kind: type[BaseException] | None) -> None:
        assert self._open is not None
        opened = self._open.pop()
        if opened.range:
            # A generator that is closed early has not failed.
            if kind is not None and kind is not GeneratorExit:
                lib.opscope_range_fail(opened.range)
            lib.opscope_range_end(opened.range)

    def _returns(self, result: object) -> None:
        """Sets the output of the range's operator; called right before its end."""
        if self._open and self._open[-1].range:
            opened = self._open[-1]
            opened.outputs = ffi.new_handle((result,))
            lib.opscope_range_outputs(opened.range, box, opened.outputs)

    def __call__(self, function: F) -> F:
        code = getattr(function, "__code__", None)
        flags = code.co_flags if code is not None else 0
        if flags & _CO_ASYNC_GENERATOR:
            raise TypeError(
                f"record_function({self._name!r}) cannot decorate an async generator function: "
                "use `with record_function(...)` within it"
            )
        kind = _async_range if flags & (_CO_COROUTINE | _CO_GENERATOR) else record_function
        new = functools.partial(kind, self._name, *self._args)
        if isinstance(self._kind, tuple):
            new = functools.partial(new, scope=self._kind[0], phase=PHASES[self._kind[1]])
        else:
            new = functools.partial(new, scope=self._kind)
        if flags & _CO_COROUTINE:
            run = _around_coroutine(function, new)
        elif flags & _CO_GENERATOR:
            run = _around_generator(function, new)
        else:
            run = _around_call(function, new)
        return functools.wraps(function)(run)  # type: ignore[return-value]


class _async_range(record_function):  # noqa: N801
    """A range during which its thread does other work, and which another thread may end."""

    __slots__ = ()

    _is_async = True


_New = Callable[[], record_function]


def _around_call(function: Callable[..., Any], new: _New) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        with new() as around:
            result = function(*args, **kwargs)
            around._returns(result)
            return result

    return run


def _around_coroutine(function: Callable[..., Any], new: _New) -> Callable[..., Any]:
    async def run(*args: Any, **kwargs: Any) -> Any:
        with new() as around:
            result = await function(*args, **kwargs)
            around._returns(result)
            return result

    return run


def _around_generator(function: Callable[..., Any], new: _New) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        with new():
            return (yield from function(*args, **kwargs))

    return run


class recording(Guard):  # noqa: N801 - reads as a verb, like torch.no_grad
    """Turn recording on this thread on or off for a block; off silences all callbacks. Nests.

    >>> with recording(False):
    ...     pass

    In coroutines and generators, the switch belongs to the thread: it applies to everything that
    the thread runs meanwhile. The previous state returns after all such blocks have ended.
    """

    __slots__ = ("_enabled",)

    _kind = "recording"

    def __init__(self, enabled: bool) -> None:
        super().__init__()
        self._enabled = bool(enabled)

    def _apply(self) -> Callable[[], object]:
        before = lib.opscope_recording_set(self._enabled)
        return functools.partial(lib.opscope_recording_set, before)
