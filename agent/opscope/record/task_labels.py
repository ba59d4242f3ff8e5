"""Labels in event loops: each task has its own, though tasks take turns on one thread.

A thread has one chain of labels, in C. Within an event loop, `contextvars` carry a chain for each
task, so a new task starts with the labels of its creator. Before each step of a task, its chain
becomes active on the thread; after the step, the thread's own chain returns.

For that, every callback of a loop goes through `_step`, but only after a block of labels has been
entered within a loop: without one, loops run unchanged. For asyncio's loops, this module replaces
`Handle._run`. For other loops it replaces `call_soon`: callbacks that were queued before the first
block of labels run with the labels active then. uvloop is followed earlier: from the first block
anywhere, once it and `debug_info` are imported. An eager task (Python 3.12) suspends its first step
without a callback: its labels then stay active in its creator until that suspends, or enters or
leaves a block.

`asyncio.to_thread` propagates labels, as does everything else that gives an executor a function to
run in a copied context, and `anyio.to_thread.run_sync`; `run_in_executor` itself does not.
"""

from __future__ import annotations

import functools
import sys
from _thread import _local, get_ident
from collections.abc import Callable
from contextvars import Context, ContextVar
from typing import Any
from weakref import ref

from opscope._native import ffi, lib
from opscope.record.guard import Stack, swap_stack, swap_stacks

KIND = "labels"
"""The kind of the guards of labels."""


class _Labels:
    """A task's labels, as carried by a context. Only the stack changes, and only by its owner."""

    __slots__ = ("around", "chain", "owner", "stack", "thread")

    def __init__(
        self, owner: ref[Any] | None, chain: Any, stack: Stack, around: _Labels | None
    ) -> None:
        self.owner = owner
        """A task; None for a callback without a task; or the block of a captured state. A weak
        reference, since tasks created by this one carry it too."""
        self.chain = chain
        self.stack = stack
        self.around = around
        """The context's labels before the first block of `stack`."""
        self.thread = get_ident()

    def is_of(self, task: object) -> bool:
        if task is None or self.owner is None:
            return task is self.owner
        return self.owner() is task


_carried: ContextVar[_Labels | None] = ContextVar("opscope_labels", default=None)


class _Thread(_local):
    labels: _Labels | None = None
    """The active labels; None: the thread's own."""
    own: tuple[Any, Stack] | None = None
    """The chain and stack of the thread itself, while a task's are active."""


_here = _Thread()


def hold() -> Any:
    """The chain of this thread, which lives as long as the result."""
    return ffi.gc(lib.opscope_debug_info_hold(), lib.opscope_debug_info_release)


def _put_in_force(labels: _Labels) -> None:
    stack = swap_stack(KIND, labels.stack)
    if _here.own is None:
        _here.own = hold(), stack
    _here.labels = labels
    lib.opscope_debug_info_switch(labels.chain)


def _take_off() -> None:
    """Restores the thread's own labels."""
    if _here.own is not None:
        chain, stack = _here.own
        _here.own = _here.labels = None
        swap_stack(KIND, stack)
        lib.opscope_debug_info_switch(chain)


# ---- blocks of labels --------------------------------------------------------------------------


def open_change() -> bool:
    """Called before a block of labels is entered or left: activates the running task's labels.
    False outside of an event loop, where the labels belong to the thread."""
    loop = _running_loop()
    _follow_loaded()
    if loop is None:
        _take_off()  # of a task whose loop has ended
        return False
    _follow_steps(loop)
    task = sys.modules["asyncio.tasks"].current_task(loop)
    carried = _carried_here()
    if carried is None:
        if _here.labels is not None:
            _take_off()  # of a task that suspended unnoticed
        _own(task, hold(), None)
    elif not carried.is_of(task):
        _own(task, carried.chain, carried)
    elif carried is not _here.labels:
        _put_in_force(carried)
    return True


def close_change() -> None:
    """Called afterwards: stores the active labels in the context."""
    before = _carried_here()
    assert before is not None
    after = before.around
    if before.stack:
        after = _Labels(before.owner, hold(), before.stack, before.around)
    _carried.set(after)
    _here.labels = after


def _own(task: object, chain: Any, around: _Labels | None) -> None:
    labels = _Labels(None if task is None else ref(task), chain, [], around)
    _carried.set(labels)
    if around is not None and around is _here.labels:
        swap_stack(KIND, labels.stack)
        _here.labels = labels
    else:
        _put_in_force(labels)


def _carried_here(context: Context | None = None) -> _Labels | None:
    """The labels in `context` (default: the current one), if they belong to this thread."""
    labels = _carried.get() if context is None else context.get(_carried)
    return labels if labels is not None and labels.thread == get_ident() else None


def _running_loop() -> Any:
    get = getattr(sys.modules.get("asyncio.events"), "_get_running_loop", None)
    return get() if get is not None else None


class taken_over:  # noqa: N801 - a guard
    """Within the block, labels that C code has set on this thread count as the task's."""

    __slots__ = ("__weakref__", "_before", "_stacks", "_token")

    def __enter__(self) -> None:
        self._stacks = swap_stacks({})
        self._before, self._token = _here.labels, None
        loop = _running_loop()
        if loop is not None:
            _here.labels = _Labels(ref(self), hold(), [], None)
            self._token = _carried.set(_here.labels)

    def __exit__(self, *error: object) -> None:
        if self._token is not None:
            _carried.reset(self._token)
        _here.labels = self._before
        swap_stacks(self._stacks)


# ---- steps of event loops ----------------------------------------------------------------------


def _step(labels: _Labels | None, callback: Callable[..., Any], *args: Any) -> Any:
    """Calls `callback` with these labels active, and then restores the thread's own."""
    _take_off()  # of a step that began before loops were followed
    if labels is not None:
        _put_in_force(labels)
    try:
        return callback(*args)
    finally:
        _take_off()


def _step_carried(callback: Callable[..., Any], *args: Any) -> Any:
    return _step(_carried_here(), callback, *args)


_followed: set[object] = set()


def _follow_steps(loop: Any) -> None:
    kind = type(loop)
    if kind in _followed:
        return
    _followed.add(kind)
    if isinstance(loop, sys.modules["asyncio.base_events"].BaseEventLoop):
        _follow_handles()
    else:
        _follow_call_soon(kind)


def _follow_handles() -> None:
    handle: Any = sys.modules["asyncio.events"].Handle
    if handle in _followed:
        return
    _followed.add(handle)
    original = handle._run

    @functools.wraps(original)
    def run(self: Any) -> Any:
        return _step(_carried_here(self._context), original, self)

    handle._run = run


def _follow_call_soon(kind: Any) -> None:
    original = kind.call_soon
    if original in _followed:
        return

    @functools.wraps(original)
    def call_soon(self: Any, callback: Any, *args: Any, context: Context | None = None) -> Any:
        return original(self, _step_carried, callback, *args, context=context)

    kind.call_soon = call_soon
    _followed.add(call_soon)
    _follow_executor(kind)


# ---- threads of executors ----------------------------------------------------------------------


def _follow_loaded() -> None:
    """Follows the imported loops; steps of asyncio's own loops stay unchanged."""
    kind = getattr(sys.modules.get("asyncio.base_events"), "BaseEventLoop", None)
    if kind is not None:
        _follow_executor(kind)
    kind = getattr(sys.modules.get("uvloop"), "Loop", None)
    if kind is not None:
        _follow_call_soon(kind)
    anyio: Any = sys.modules.get("anyio.to_thread")
    if anyio not in _followed and hasattr(anyio, "run_sync"):
        _followed.add(anyio)
        anyio.run_sync = _labelled_run_sync(anyio.run_sync)


def _follow_executor(kind: Any) -> None:
    original = kind.run_in_executor
    if original in _followed:
        return

    @functools.wraps(original)
    def run_in_executor(self: Any, executor: Any, func: Any, *args: Any) -> Any:
        if _is_of_context(func) or any(map(_is_of_context, args)):
            func = _with_labels(func)
        return original(self, executor, func, *args)

    kind.run_in_executor = run_in_executor
    _followed.add(run_in_executor)


def _is_of_context(function: Any) -> bool:
    """Whether it is the `run` of a context, by itself or in a functools.partial."""
    if isinstance(function, functools.partial):
        return any(map(_is_of_context, (function.func, *function.args)))
    return isinstance(getattr(function, "__self__", None), Context)


def _labelled_run_sync(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def run_sync(func: Any, *args: Any, **options: Any) -> Any:
        return await original(_with_labels(func), *args, **options)

    return run_sync


def _with_labels(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` for another thread, with the labels active here now."""
    if lib.opscope_debug_info_current() == ffi.NULL:
        return function
    chain = hold()

    @functools.wraps(function)
    def run(*args: Any) -> Any:
        before, stacks = hold(), swap_stacks({})
        lib.opscope_debug_info_switch(chain)
        try:
            return function(*args)
        finally:
            lib.opscope_debug_info_switch(before)
            swap_stacks(stacks)

    return run


_follow_loaded()
