"""Debug info: labels for everything a block runs, and what carries them elsewhere."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar, overload

from opscope._native import ffi, lib
from opscope.errors import check
from opscope.record import children
from opscope.record.function import debug_info_dict
from opscope.record.guard import Guard, swap_stack

P = ParamSpec("P")
R = TypeVar("R")

ENVIRONMENT = "OPSCOPE_DEBUG_INFO"

_TEXT_LIMIT = 65536  # of native/record/debug_info.c: bytes with the final NUL
_ENVIRONMENT_LIMIT = 8192  # what a program can be started with is limited, and not ours to fill


def _c_text(text: str) -> bytes:
    return text.encode(errors="replace").replace(b"\0", b"")


class debug_info(Guard):  # noqa: N801 - a guard, named as in PyTorch
    """Labels for the ranges of this thread within the block, and for the tasks it forks.

    >>> with debug_info(model_id="resnet50", **{"service.name": "rank"}):
    ...     get_debug_info("model_id")
    'resnet50'

    Values are kept as ``str(value)``, less than 64 KiB of UTF-8 (ValueError). An inner block's
    label shadows an outer one of its key. Leaving restores exactly the labels that were there.

    A child made by ``os.fork`` inherits the labels, and so does a program started within the block
    by ``subprocess``, and a process by ``multiprocessing`` in any of its ways, where that was
    imported before the block; see :func:`child_environment` for other ways to start a program.

    In coroutines and generators, the labels are their thread's, not theirs: they hold for whatever
    the thread runs meanwhile. They are as before once all such blocks of the thread have ended.
    """

    __slots__ = ("_labels",)

    def __init__(self, **labels: object) -> None:
        super().__init__()
        self._labels = [(_c_text(key), _c_text(str(value))) for key, value in labels.items()]
        for key, value in self._labels:
            if not key or len(key) >= _TEXT_LIMIT or len(value) >= _TEXT_LIMIT:
                raise ValueError(
                    f"debug_info: label {key[:80].decode(errors='replace')!r} must have a name, "
                    "and a value of less than 64 KiB"
                )

    def _apply(self) -> Callable[[], object]:
        _follow_subprocesses()
        children.follow()
        guards: list[Any] = []

        def undo() -> None:
            while guards:
                lib.opscope_debug_info_pop(guards.pop())

        for key, value in self._labels:
            guard = ffi.new("opscope_debug_info_guard *")
            status = lib.opscope_debug_info_push(key, value, guard)
            if status != lib.OPSCOPE_OK:
                undo()
                check(status, f"debug_info: label {key!r}")
            guards.append(guard)
        return undo


@overload
def get_debug_info() -> dict[str, str]: ...
@overload
def get_debug_info(key: str) -> str | None: ...
def get_debug_info(key: str | None = None) -> dict[str, str] | str | None:
    """The value of ``key`` in force on this thread, or None; without a key, all labels."""
    if key is None:
        return debug_info_dict()
    found = lib.opscope_debug_info_get(_c_text(key))
    return ffi.string(found).decode(errors="replace") if found != ffi.NULL else None


def propagate(function: Callable[P, R]) -> Callable[P, R]:
    """``function`` with this thread's state of now: on whatever thread it is called, it runs with
    the labels, the local callbacks and the recording switch that were in force at ``propagate``.

    >>> executor.submit(propagate(work), 1)  # doctest: +SKIP

    What a coroutine or generator function does after its first return to the caller is outside.
    """
    out = ffi.new("opscope_state **")
    check(lib.opscope_state_capture(out), "cannot capture the thread's state")
    state = ffi.gc(out[0], lib.opscope_state_release)

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        previous = ffi.new("opscope_state **")
        check(lib.opscope_state_enter(state, previous), "cannot enter the captured state")
        stack = swap_stack([])
        try:
            return function(*args, **kwargs)
        finally:
            swap_stack(stack)
            lib.opscope_state_leave(previous[0])

    return run


def child_environment(base: Mapping[str, str] | None = None) -> dict[str, str]:
    """``base`` (default: this process's environment) with the labels of this thread, for a program
    to be started with ``os.execve``, ``os.posix_spawn`` and the like.

    >>> os.posix_spawn(path, argv, child_environment())  # doctest: +SKIP

    Line breaks in values become spaces. Labels whose key has a line break or ``=`` in it, and those
    beyond 8 KiB in all, are not handed on.
    """
    environment = dict(os.environ if base is None else base)
    lines: list[bytes] = []
    room = _ENVIRONMENT_LIMIT
    for key, value in debug_info_dict().items():
        line = f"{key}={value}".replace("\n", " ").encode()
        if "=" not in key and "\n" not in key and len(line) < room:
            lines.append(line)
            room -= len(line) + 1
    if lines:
        # UTF-8 whatever the locale is.
        environment[ENVIRONMENT] = os.fsdecode(b"\n".join(lines))
    return environment


_is_following = False
_POPEN_ENV = 10  # where subprocess.Popen takes env as a positional argument, self not counted


def _follow_subprocesses() -> None:
    """Have ``subprocess.Popen`` hand on the labels of the thread that calls it.

    The environment of this process stays as it is: setting variables while other threads read them
    is not safe in C, and labels are a thread's, not a process's.
    """
    global _is_following
    if _is_following:
        return
    _is_following = True
    children.take_along(_labels_for_child)
    import subprocess

    original = subprocess.Popen.__init__

    @functools.wraps(original)
    def start(self: Any, *args: Any, **kwargs: Any) -> None:
        if lib.opscope_debug_info_current() != ffi.NULL:
            if len(args) > _POPEN_ENV:
                args = (*args[:_POPEN_ENV], _labelled(args[_POPEN_ENV]), *args[_POPEN_ENV + 1 :])
            else:
                kwargs["env"] = _labelled(kwargs.get("env"))
        original(self, *args, **kwargs)

    subprocess.Popen.__init__ = start  # type: ignore[method-assign]


def _labels_for_child() -> children.Task | None:
    labels = debug_info_dict()
    return (_label_whole, (labels,)) if labels else None


def _label_whole(labels: dict[str, str]) -> None:
    """Labels for the rest of this thread."""
    debug_info(**labels).__enter__()


def _labelled(given: Any) -> Any:
    """A program's environment with our labels; what is no mapping stays Popen's to refuse."""
    return child_environment(given) if given is None or isinstance(given, Mapping) else given
