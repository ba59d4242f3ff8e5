"""Guards: blocks that change their thread and put it back, in order whatever order they end in.

Not here: what is changed (``debug_info``, ``recording``).
"""

from __future__ import annotations

from _thread import _local
from collections.abc import Callable


class _Change:
    __slots__ = ("is_over", "stack", "undo")

    def __init__(self, undo: Callable[[], object], stack: list[_Change]) -> None:
        self.undo = undo
        self.stack = stack
        self.is_over = False


class _Thread(_local):
    def __init__(self) -> None:
        self.stack: list[_Change] = []


_thread = _Thread()


def swap_stack(stack: list[_Change]) -> list[_Change]:
    """For whoever enters a captured state: what was changed outside is not to be undone inside."""
    before = _thread.stack
    _thread.stack = stack
    return before


def _unwind(stack: list[_Change]) -> None:
    while stack and stack[-1].is_over:
        stack.pop().undo()


class Guard:
    """Base of the guards. Blocks of coroutines and generators may end out of order: what an outer
    block changed then stays until the blocks entered after it have ended, too. A block left on
    another thread is undone when its own thread next enters or leaves one."""

    __slots__ = ("_entered",)

    def __init__(self) -> None:
        self._entered: list[_Change] = []

    def _apply(self) -> Callable[[], object]:
        """Make the change; returns what undoes it."""
        raise NotImplementedError

    def __enter__(self) -> None:
        stack = _thread.stack
        _unwind(stack)
        change = _Change(self._apply(), stack)
        stack.append(change)
        self._entered.append(change)

    def __exit__(self, *error: object) -> None:
        stack = _thread.stack
        here = (change for change in reversed(self._entered) if change.stack is stack)
        change = next(here, self._entered[-1])
        self._entered.remove(change)
        change.is_over = True
        _unwind(stack)
