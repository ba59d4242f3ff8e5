"""Ranges from Python: ``record_function`` and the per-thread switch ``recording``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from opscope._native import ffi, lib
from opscope.errors import check
from opscope.record.scope import RecordScope

F = TypeVar("F", bound=Callable[..., Any])

_begin = lib.opscope_range_begin
_NULL = ffi.NULL
_CO_COROUTINE = 0x80  # inspect.CO_COROUTINE, without importing inspect

# By (name, scope). Operators are never freed in C, so neither are these.
_operators: dict[tuple[str, int], Any] = {}


def operator(name: str, scope: int) -> Any:
    """The interned operator; once 65,536 names are taken, the operator "other"."""
    found = _operators.get((name, scope))
    if found is not None:
        return found
    out = ffi.new("const opscope_op **")
    status = lib.opscope_op_intern(name.encode(), b"", int(RecordScope(scope)), _phase(name), out)
    if status == lib.OPSCOPE_ERR_FULL:
        return lib.opscope_op_other()
    check(status, f"cannot name a range {name!r}")
    _operators[name, scope] = out[0]
    return out[0]


def _phase(name: str) -> int:
    """The phase that PyTorch's own names of ranges tell (torch.optim, torch.utils.data)."""
    if name.startswith("Optimizer.step"):
        return int(lib.OPSCOPE_OPTIMIZER)
    if name.startswith("enumerate(DataLoader)"):
        return int(lib.OPSCOPE_DATA)
    return int(lib.OPSCOPE_OTHER)


class record_function:  # noqa: N801 - PyTorch's name
    """A range around a block, or around each call of a decorated function.

    >>> with record_function("tokenize"):
    ...     pass

    ``args`` are what callbacks with ``needs_inputs`` see as inputs. A decorated coroutine function
    is one range from its first step to its end.
    """

    __slots__ = ("_args", "_is_async", "_kept", "_name", "_range", "_scope")

    def __init__(self, name: str, *args: object, scope: int = RecordScope.USER_SCOPE) -> None:
        self._name = name
        self._args = args
        self._scope = scope
        self._is_async = False
        self._range = _NULL

    def __enter__(self) -> record_function:
        op = _operators.get((self._name, self._scope))
        if op is None:
            op = operator(self._name, self._scope)
        if self._args or self._is_async:
            self._range = _begin(op, self._info())
        else:
            self._range = _begin(op, _NULL)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        open_range = self._range
        if open_range:
            self._range = _NULL
            if kind is not None:
                lib.opscope_range_fail(open_range)
            lib.opscope_range_end(open_range)

    def _info(self) -> Any:
        info = ffi.new("opscope_range_info *")
        info.sequence_nr = -1
        info.is_async = self._is_async
        if self._args:
            self._kept = ffi.new_handle(self._args)
            info.inputs = lib.opscope_py_box
            info.inputs_arg = self._kept
        return info

    def __call__(self, function: F) -> F:
        name, args, scope = self._name, self._args, self._scope
        code = getattr(function, "__code__", None)
        if code is not None and code.co_flags & _CO_COROUTINE:

            async def run(*call_args: Any, **call_kwargs: Any) -> Any:
                around = record_function(name, *args, scope=scope)
                around._is_async = True
                with around:
                    return await function(*call_args, **call_kwargs)

        else:

            def run(*call_args: Any, **call_kwargs: Any) -> Any:
                with record_function(name, *args, scope=scope):
                    return function(*call_args, **call_kwargs)

        return functools.wraps(function)(run)  # type: ignore[return-value]


class recording:  # noqa: N801 - reads as a verb, like torch.no_grad
    """Turn this thread's switch on or off for a block: off silences all callbacks. Nests."""

    __slots__ = ("_before", "_enabled")

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled

    def __enter__(self) -> None:
        self._before = lib.opscope_recording_set(self._enabled)

    def __exit__(self, *error: object) -> None:
        lib.opscope_recording_set(self._before)
