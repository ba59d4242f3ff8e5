"""Guards: blocks that change a property of their thread and restore it, in whatever order they end.

`debug_info` and `recording` define the properties.
"""

from __future__ import annotations

from _thread import _local
from collections.abc import Callable
from typing import ClassVar


class Change:
    """A block's change, on the stack where the block was entered."""

    __slots__ = ("is_over", "stack", "undo")

    def __init__(self, undo: Callable[[], object], stack: Stack) -> None:
        self.undo = undo
        self.stack = stack
        self.is_over = False


Stack = list[Change]
"""The open blocks of one kind, the innermost last."""


class _Thread(_local):
    def __init__(self) -> None:
        self.stacks: dict[str, Stack] = {}


_thread = _Thread()


def swap_stacks(stacks: dict[str, Stack]) -> dict[str, Stack]:
    """Replaces this thread's stacks by kind; returns the old ones. For the caller that enters a
    captured state: a block inside must not undo changes made outside."""
    before = _thread.stacks
    _thread.stacks = stacks
    return before


def swap_stack(kind: str, stack: Stack) -> Stack:
    """The same for guards of one kind."""
    before = _thread.stacks.get(kind)
    _thread.stacks[kind] = stack
    return before if before is not None else []


def _unwind(stack: Stack) -> None:
    while stack and stack[-1].is_over:
        stack.pop().undo()


class Guard:
    """Base of the guards. Blocks in coroutines and generators may end out of order: an outer
    block's change then stays until the inner blocks of its kind have ended. If a block ends on
    another thread, its change is undone when its own thread next enters or leaves a block."""

    __slots__ = ("_entered",)

    _kind: ClassVar[str]
    """Guards of one kind change the same property."""

    def __init__(self) -> None:
        self._entered: list[Change] = []

    def _apply(self) -> Callable[[], object]:
        """Makes the change; returns the function that undoes it."""
        raise NotImplementedError

    def __enter__(self) -> None:
        stack = self._stack()
        _unwind(stack)
        change = Change(self._apply(), stack)
        stack.append(change)
        self._entered.append(change)

    def __exit__(self, *error: object) -> None:
        stack = self._stack()
        here = (change for change in reversed(self._entered) if change.stack is stack)
        change = next(here, self._entered[-1])
        self._entered.remove(change)
        change.is_over = True
        _unwind(stack)

    def _stack(self) -> Stack:
        return _thread.stacks.setdefault(self._kind, [])
