"""Count, by operator, the ranges that open directly within its ranges, on the same thread."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import opscope


@contextmanager
def counting() -> Iterator[Counter[str]]:
    """By operator, as the recorder counts: PyTorch's overloads together.

    "" is the root of a thread's ranges."""
    children: Counter[str] = Counter()
    local = threading.local()

    def start(fn: opscope.RecordFunction) -> None:
        stack = local.__dict__.setdefault("stack", [""])
        children[stack[-1]] += 1
        stack.append(fn.name)

    def end(fn: opscope.RecordFunction, context: object) -> None:
        stack = local.__dict__.get("stack", [""])
        if len(stack) > 1:  # otherwise it was open before
            stack.pop()

    handle = opscope.add_global_callback(start, end)
    try:
        yield children
    finally:
        opscope.remove_callback(handle)
