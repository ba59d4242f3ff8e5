"""Debug info: labels for everything a block runs, and what carries them elsewhere."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar, overload

from opscope._native import ffi, lib
from opscope.errors import check
from opscope.record.function import debug_info_dict

P = ParamSpec("P")
R = TypeVar("R")

ENVIRONMENT = "OPSCOPE_DEBUG_INFO"


class debug_info:  # noqa: N801 - a guard, named as in PyTorch
    """Labels for the ranges of this thread within the block, and for the tasks it forks.

    >>> with debug_info(model_id="resnet50"):
    ...     pass

    Values are kept as ``str(value)``, at most 64 KiB. Leaving restores exactly the labels that were
    there. A program started within the block by ``subprocess`` inherits the labels.
    """

    __slots__ = ("_guards", "_labels")

    def __init__(self, **labels: object) -> None:
        self._labels = labels
        self._guards: list[Any] = []

    def __enter__(self) -> None:
        _follow_subprocesses()
        for key, value in self._labels.items():
            guard = ffi.new("opscope_debug_info_guard *")
            text = str(value).encode(errors="replace").replace(b"\0", b"")
            status = lib.opscope_debug_info_push(key.encode(), text, guard)
            if status != lib.OPSCOPE_OK:
                self.__exit__()
                check(status, f"debug_info: label {key!r}")
            self._guards.append(guard)

    def __exit__(self, *error: object) -> None:
        while self._guards:
            lib.opscope_debug_info_pop(self._guards.pop())


@overload
def get_debug_info() -> dict[str, str]: ...
@overload
def get_debug_info(key: str) -> str | None: ...
def get_debug_info(key: str | None = None) -> dict[str, str] | str | None:
    """The value of ``key`` in force on this thread, or None; without a key, all labels."""
    if key is None:
        return debug_info_dict()
    found = lib.opscope_debug_info_get(key.encode())
    return ffi.string(found).decode(errors="replace") if found != ffi.NULL else None


def propagate(function: Callable[P, R]) -> Callable[P, R]:
    """``function`` with this thread's state of now: it runs with its labels, local callbacks and
    switch, on whatever thread it is called. For executors and callbacks of other libraries."""
    out = ffi.new("opscope_state **")
    check(lib.opscope_state_capture(out), "cannot capture the thread's state")
    state = ffi.gc(out[0], lib.opscope_state_release)

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        previous = ffi.new("opscope_state **")
        check(lib.opscope_state_enter(state, previous), "cannot enter the captured state")
        try:
            return function(*args, **kwargs)
        finally:
            lib.opscope_state_leave(previous[0])

    return run


def child_environment(base: Mapping[str, str] | None = None) -> dict[str, str]:
    """``base`` (default: this process's environment) with the labels of this thread, for a program
    to be started with ``os.execve`` and the like."""
    environment = dict(os.environ if base is None else base)
    labels = debug_info_dict()
    if labels:
        # Outermost first, as the child pushes them in this order; a line break would end a value.
        lines = [f"{key}={value}".replace("\n", " ") for key, value in reversed(labels.items())]
        environment[ENVIRONMENT] = "\n".join(lines)
    return environment


_is_following = False
_POPEN_ENV = 10  # where subprocess.Popen takes env as a positional argument


def _follow_subprocesses() -> None:
    """Have ``subprocess.Popen`` hand on the labels of the thread that calls it.

    The environment of this process stays as it is: setting variables while other threads read them
    is not safe in C, and labels are a thread's, not a process's.
    """
    global _is_following
    if _is_following:
        return
    _is_following = True
    import subprocess

    original = subprocess.Popen.__init__

    @functools.wraps(original)
    def start(self: Any, *args: Any, **kwargs: Any) -> None:
        if len(args) <= _POPEN_ENV and sys.platform == "linux":
            given = kwargs.get("env")
            if lib.opscope_debug_info_current() != ffi.NULL and (
                given is None or all(isinstance(key, str) for key in given)
            ):
                kwargs["env"] = child_environment(given)
        original(self, *args, **kwargs)

    subprocess.Popen.__init__ = start  # type: ignore[method-assign]
