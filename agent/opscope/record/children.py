"""What processes that ``multiprocessing`` spawns take along, or gets from its fork server.

Such a child inherits no memory; it unpickles its Process object. What is to be done in it travels
as an attribute of that object. Children of a plain fork need none of this. ``multiprocessing`` is
not imported here: it is followed once it is there.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

Task = tuple[Callable[..., object], tuple[Any, ...]]

# Each is called where a process is started, on the thread that does: what to call in the child.
_askers: list[Callable[[], Task | None]] = []
_is_following = False


def take_along(ask: Callable[[], Task | None]) -> None:
    """Have ``ask()`` say what to call, with which arguments, in each child from here on; None for
    nothing. Both are pickled."""
    if ask not in _askers:
        _askers.append(ask)
    follow()


def leave_behind(ask: Callable[[], Task | None]) -> None:
    """Undo take_along(); repeating does nothing."""
    if ask in _askers:
        _askers.remove(ask)


class _Luggage:
    """Unpacked by being unpickled."""

    def __init__(self, tasks: list[Task]) -> None:
        self.tasks = tasks

    def __reduce__(self) -> tuple[Callable[..., object], tuple[list[Task]]]:
        return _unpack, (self.tasks,)


def _unpack(tasks: list[Task]) -> None:
    for function, args in tasks:
        function(*args)


def follow() -> None:
    """Follow ``multiprocessing`` if it has been imported; repeating does nothing."""
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
    """Another one, set by ``multiprocessing.set_executable``, may have no opscope."""
    from multiprocessing.spawn import get_executable

    executable = get_executable()
    return executable in (sys.executable, sys.executable.encode())
