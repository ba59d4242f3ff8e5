"""Run tasks in processes that `multiprocessing` spawns or gets from its fork server.

Such a child inherits no memory; it unpickles its Process object, and the tasks travel as an
attribute of that object. Children of a plain fork need none of this. This module does not import
`multiprocessing`; it hooks into it after the program has imported it.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

Task = tuple[Callable[..., object], tuple[Any, ...]]

# Each is called on the thread that starts a process, and returns the task for the child.
_askers: list[Callable[[], Task | None]] = []
_is_following = False


def take_along(ask: Callable[[], Task | None]) -> None:
    """Call `ask()` at each start of a child; run the task that it returns (function and
    arguments) in the child. None means no task. The task is pickled."""
    if ask not in _askers:
        _askers.append(ask)
    follow()


def leave_behind(ask: Callable[[], Task | None]) -> None:
    """Undo take_along(); a second call does nothing."""
    if ask in _askers:
        _askers.remove(ask)


class _Luggage:
    """Runs the tasks when it is unpickled."""

    def __init__(self, tasks: list[Task]) -> None:
        self.tasks = tasks

    def __reduce__(self) -> tuple[Callable[..., object], tuple[list[Task]]]:
        return _unpack, (self.tasks,)


def _unpack(tasks: list[Task]) -> None:
    for function, args in tasks:
        function(*args)


def follow() -> None:
    """Hook into `multiprocessing` if it has been imported; a second call does nothing."""
    global _is_following
    module: Any = sys.modules.get("multiprocessing.process")
    if _is_following or not hasattr(module, "BaseProcess"):
        return
    _is_following = True
    original = module.BaseProcess.start

    @functools.wraps(original)
    def start(self: Any) -> None:
        tasks = [task for ask in _askers if (task := ask()) is not None]
        if tasks and _children_run_this_python():
            self._opscope_luggage = _Luggage(tasks)
        try:
            original(self)
        finally:
            vars(self).pop("_opscope_luggage", None)

    module.BaseProcess.start = start


def _children_run_this_python() -> bool:
    """False if `multiprocessing.set_executable` set another Python, which may lack opscope."""
    from multiprocessing.spawn import get_executable

    executable = get_executable()
    return executable in (sys.executable, sys.executable.encode())
