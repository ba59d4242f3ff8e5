"""Ranges from Python: ``record_function`` and the per-thread switch ``recording``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from time import perf_counter_ns
from types import TracebackType
from typing import Any, TypeVar

from opscope._native import ffi, lib
from opscope.record.guard import Guard
from opscope.record.scope import PHASES, RecordScope, phase_number
from opscope.record.values import box

F = TypeVar("F", bound=Callable[..., Any])

_USER_SCOPE = RecordScope.USER_SCOPE
_has_callbacks = lib.opscope_has_callbacks

# As in the module inspect, which takes milliseconds to import.
_CO_GENERATOR, _CO_COROUTINE, _CO_ASYNC_GENERATOR = 0x20, 0x80, 0x200

# A scope, with a phase where the range was given one: in one object, as a range is opened often.
_Kind = RecordScope | tuple[RecordScope, int]

_COST_ROUNDS, _COST_CALLS = range(5), range(8)
_extra_ps = 0

# Operators are never freed in C, so neither are these.
_operators: dict[tuple[str, _Kind], Any] = {}


def operator(name: str, kind: _Kind) -> Any:
    """The interned operator; "other" for an empty name, and once 65,536 names are taken.

    Never fails: a range must not raise only because somebody is watching.
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
    """What a recorded range from Python costs beyond one from C: all that is run for it alone here.

    Measured once in a process, as the first one is about to be recorded, on an operator that is
    known already; takes some 40 µs. No callback sees these ranges.
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
        _extra_ps = 1000 * least // len(_COST_CALLS)
    return _extra_ps


def _phase(name: str) -> int:
    """The phase that PyTorch's own names of ranges tell (torch.optim, torch.utils.data)."""
    if name.startswith("Optimizer.step"):
        return int(lib.OPSCOPE_OPTIMIZER)
    if name.startswith("enumerate(DataLoader)"):
        return int(lib.OPSCOPE_DATA)
    return int(lib.OPSCOPE_OTHER)


class _Open:
    """A range that was opened while callbacks were registered, and what C borrows meanwhile."""

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
        self.range = lib.opscope_range_begin(operator(str(name), kind), info)


class record_function:  # noqa: N801 - PyTorch's name
    """A range around a block, or around each call of a decorated function.

    >>> with record_function("tokenize"):
    ...     pass
    >>> @record_function("double")
    ... def double(x):
    ...     return 2 * x

    ``args`` are what callbacks with ``needs_inputs`` see as inputs; what a decorated function
    returns is its output. A block that raises is a failed range.

    ``phase`` is the part of the program's work that the range is counted under: ``forward``,
    ``backward``, ``optimizer``, ``data``, ``comm`` or ``other``. That is the default, but for the
    names that PyTorch gives to steps of optimizers and data loaders. What runs within a range of
    phase backward, optimizer, data or comm, and says forward or other itself, is counted under the
    range's phase. ValueError for an unknown scope or phase.

    A decorated coroutine function or generator function is one range from its first step to its
    end, waiting included; an async generator function cannot be decorated (TypeError). Ranges of
    one thread are expected to end in the order opposite to their starts: where blocks within
    generators or coroutines do otherwise, callbacks see all ends, but the recorder drops the ranges
    that an outer one outran. One instance may be entered again while open, on the same thread.
    """

    __slots__ = ("_args", "_kind", "_name", "_open")

    _is_async = False

    def __init__(
        self,
        name: str,
        *args: object,
        scope: RecordScope | int = RecordScope.USER_SCOPE,
        phase: str | None = None,
    ) -> None:
        if scope is not _USER_SCOPE:
            scope = RecordScope(scope)
        self._name = name
        self._args = args
        self._kind: _Kind = scope if phase is None else (scope, phase_number(phase))
        self._open: list[_Open] | None = None

    def __enter__(self) -> record_function:
        # Also the inner one of two on the same instance, so that each end finds its own start.
        if _has_callbacks() or self._open:
            opened = _Open(self._name, self._args, self._kind, self._is_async)
            self._open = [*(self._open or ()), opened]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
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
        """Tell what the range's operator returned; right before its end."""
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
    """A range within which its thread does other work, and that another thread may end."""

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
    """Turn this thread's switch on or off for a block: off silences all callbacks. Nests.

    >>> with recording(False):
    ...     pass

    In coroutines and generators, the switch is their thread's, not theirs: it holds for whatever
    the thread runs meanwhile. It is as before once all such blocks of the thread have ended.
    """

    __slots__ = ("_enabled",)

    def __init__(self, enabled: bool) -> None:
        super().__init__()
        self._enabled = bool(enabled)

    def _apply(self) -> Callable[[], object]:
        before = lib.opscope_recording_set(self._enabled)
        return functools.partial(lib.opscope_recording_set, before)
