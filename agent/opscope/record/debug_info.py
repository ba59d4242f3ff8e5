"""Debug info: labels for everything that a block runs, and their propagation."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar, overload

from opscope._native import ffi, lib
from opscope.errors import check
from opscope.record import children, task_labels, texts
from opscope.record.function import debug_info_dict, links
from opscope.record.guard import Guard

P = ParamSpec("P")
R = TypeVar("R")

ENVIRONMENT = "OPSCOPE_DEBUG_INFO"

_ENVIRONMENT_LIMIT = 8192  # the size of an environment is limited, and the program needs most of it


class debug_info(Guard):  # noqa: N801 - a guard, named as in PyTorch
    """Labels for the ranges of this thread within the block, and for the tasks that it forks.

    >>> with debug_info(model_id="resnet50", **{"service.name": "rank"}):
    ...     get_debug_info("model_id")
    'resnet50'

    Values are stored as `str(value)`, cut at 64 KiB of UTF-8. A label with a longer name is
    dropped; an empty name raises ValueError. An inner block's label shadows an outer one with the
    same key. None masks it: within the block, and wherever its labels propagate, the key has no
    label. Leaving the block restores the previous labels exactly. Line breaks in a value are kept
    for callbacks, and exported as `?`.

    The labels propagate to a child made by `os.fork`, to programs started within the block by
    `subprocess`, and to processes of `multiprocessing` in all its start methods, if it was imported
    before the block; see `child_environment` for other ways to start a program.

    In an event loop (asyncio, uvloop), labels belong to the task: they apply while it runs, also
    after an await, and a new task starts with the labels of its creator. `asyncio.to_thread`
    propagates them, `loop.run_in_executor` does not. In generators, and in coroutines without an
    event loop, labels belong to the thread or task: they apply to everything that it runs
    meanwhile, and the previous labels return after all such blocks have ended.
    """

    __slots__ = ("_labels",)

    _kind = task_labels.KIND

    def __init__(self, **labels: object) -> None:
        super().__init__()
        found = (texts.label(key, value) for key, value in labels.items())
        self._labels = [label for label in found if label is not None]

    def __enter__(self) -> None:
        is_in_task = task_labels.open_change()
        try:
            super().__enter__()
        finally:
            if is_in_task:
                task_labels.close_change()

    def __exit__(self, *error: object) -> None:
        is_in_task = task_labels.open_change()
        try:
            super().__exit__(*error)
        finally:
            if is_in_task:
                task_labels.close_change()

    def _apply(self) -> Callable[[], object]:
        _follow_subprocesses()
        children.follow()
        guards: list[Any] = []

        def undo() -> None:
            while guards:
                lib.opscope_debug_info_pop(guards.pop())

        for key, value in self._labels:
            guard = ffi.new("opscope_debug_info_guard *")
            status = lib.opscope_debug_info_push(key, ffi.NULL if value is None else value, guard)
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
    """The value of `key` on this thread now, or None; without a key, all labels."""
    if key is None:
        return debug_info_dict()
    found = lib.opscope_debug_info_get(texts.c_text(key))
    return ffi.string(found).decode(errors="replace") if found != ffi.NULL else None


def propagate(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap `function` so that it runs with this thread's current state, on whatever thread.

    The state is the labels, the local callbacks and the recording switch.

    >>> executor.submit(propagate(work), 1)  # doctest: +SKIP

    For a coroutine or generator function, the state ends at the first return to the caller.
    """
    out = ffi.new("opscope_state **")
    check(lib.opscope_state_capture(out), "cannot capture the thread's state")
    state = ffi.gc(out[0], lib.opscope_state_release)

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        previous = ffi.new("opscope_state **")
        check(lib.opscope_state_enter(state, previous), "cannot enter the captured state")
        try:
            with task_labels.taken_over():
                return function(*args, **kwargs)
        finally:
            lib.opscope_state_leave(previous[0])

    return run


def child_environment(base: Mapping[str, str] | None = None) -> dict[str, str]:
    """`base` (default: this process's environment) plus this thread's labels.

    It is for programs started with `os.execve`, `os.posix_spawn` and similar functions.

    >>> os.posix_spawn(path, argv, child_environment())  # doctest: +SKIP

    Line breaks in values become spaces. Drops labels whose key contains a line break or `=`, and
    labels beyond 8 KiB in total.
    """
    environment = dict(os.environ if base is None else base)
    labels = links()
    if labels:
        environment.pop(ENVIRONMENT, None)  # the parent's labels, some of which may be masked here
    lines: list[bytes] = []
    room = _ENVIRONMENT_LIMIT
    for key, value in labels.items():
        if value is None:
            continue
        line = f"{key}={value}".replace("\n", " ").encode()
        if "=" not in key and "\n" not in key and len(line) < room:
            lines.append(line)
            room -= len(line) + 1
    if lines:
        # UTF-8 in every locale.
        environment[ENVIRONMENT] = os.fsdecode(b"\n".join(lines))
    return environment


_is_following = False
_POPEN_ENV = 10  # the position of env among subprocess.Popen's arguments, self not counted


def _follow_subprocesses() -> None:
    """Make `subprocess.Popen` propagate the labels of the calling thread.

    The environment of this process does not change: C code may not set variables while other
    threads read them, and labels belong to a thread, not to the process.
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
    labels = links()
    return (_label_whole, (labels,)) if labels else None


def _label_whole(labels: dict[str, str | None]) -> None:
    """Sets labels for the rest of this thread."""
    debug_info(**labels).__enter__()


def _labelled(given: Any) -> Any:
    """A program's environment with the labels; Popen rejects anything but a mapping."""
    return child_environment(given) if given is None or isinstance(given, Mapping) else given
