"""Hooks of modules: functions that run before or after each call, or each backward."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any


class RemovableHandle:
    """Removes a hook, by `remove` or at the end of a `with` block."""

    def __init__(self, hooks: OrderedDict[int, Any], key: int) -> None:
        self._hooks = hooks
        self.id = key

    def remove(self) -> None:
        """Removes the hook; nothing if it is removed already."""
        self._hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


class Hooks:
    """The hooks of one module, in the order in which they were registered."""

    def __init__(self) -> None:
        self.before: OrderedDict[int, tuple[Callable[..., Any], bool]] = OrderedDict()
        self.after: OrderedDict[int, tuple[Callable[..., Any], bool]] = OrderedDict()
        self.before_backward: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self.after_backward: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self._next = 0

    def add(self, table: OrderedDict[int, Any], hook: Any, first: bool) -> RemovableHandle:
        """Adds a hook at the end of its table, or with `first` at its beginning."""
        key = self._next
        self._next += 1
        table[key] = hook
        if first:
            table.move_to_end(key, last=False)
        return RemovableHandle(table, key)

    def call(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """`module.forward` between its hooks. A hook before may return other arguments, one after
        another result; None changes nothing."""
        for hook, with_kwargs in tuple(self.before.values()):
            if with_kwargs:
                changed = hook(module, args, kwargs)
                if changed is not None:
                    args, kwargs = changed
            else:
                changed = hook(module, args)
                if changed is not None:
                    args = changed if isinstance(changed, tuple) else (changed,)
        gates = None
        if self.before_backward or self.after_backward:
            # Not at the top: modules without these hooks need no autograd functions.
            from opscope.tensor.nn.backward_hooks import Gates

            gates = Gates(module, self.before_backward, self.after_backward)
            args = gates.watch_inputs(args)
        result = module.forward(*args, **kwargs)
        for hook, with_kwargs in tuple(self.after.values()):
            given = (args, kwargs) if with_kwargs else (args,)
            changed = hook(module, *given, result)
            result = result if changed is None else changed
        return result if gates is None else gates.watch_outputs(result)
