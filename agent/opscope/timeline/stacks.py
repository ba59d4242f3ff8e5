"""The Python call sites of a profile's ranges: `profile(with_stack=True)`.

A callback notes the stack at the start of each range, on the range's thread; without `with_stack`
there is none. The trace does not know of it, so ranges and stacks are matched afterwards: on each
thread, both come in the order of the ranges' starts, with the same names. A stack without a range
(begun before the trace, or lost for want of room) is skipped, a range without one has none.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping
from threading import get_native_id
from types import CodeType, FrameType
from typing import NamedTuple

from opscope.record.callbacks import add_global_callback, remove_callback
from opscope.record.function import RecordFunction
from opscope.timeline import layout
from opscope.timeline.nesting import Span, spans
from opscope.timeline.reader import Trace

Stack = tuple[str, ...]
"""`file(line): function`, the innermost first, as PyTorch writes it."""

_MOST_FRAMES = 64
# A stack's range is among the next ones; more are lost only at the end.
_LOOK_AHEAD = 64
_Frames = tuple[tuple[CodeType, int], ...]
_Key = tuple[int, int, int, int]
# The frames of Opscope itself that open a range.
_OWN = tuple(
    os.path.join(os.path.dirname(os.path.dirname(__file__)), name) + os.sep
    for name in ("record", "bridges", "timeline")
)


class _Noted(NamedTuple):
    name: str
    time_unix_ns: int
    frames: _Frames


class Stacks:
    """Notes stacks from `start()` to `stop()`."""

    def __init__(self, limit: int) -> None:
        """`limit`: of ranges."""
        self._limit = limit
        self._handle: int | None = None
        self._pid = os.getpid()
        self._count = 0
        self._noted: dict[int, list[_Noted]] = {}
        """By the operating system's id of the thread."""
        self._known: dict[_Frames, _Frames] = {}
        self._texts: dict[_Frames, Stack] = {}

    def start(self) -> None:
        self._handle = add_global_callback(self._note)

    def stop(self) -> None:
        """Does not wait for open ranges, some of which may never end. Another thread may still note
        one that it has just opened."""
        handle, self._handle = self._handle, None
        if handle is not None and os.getpid() == self._pid:
            remove_callback(handle)

    def _note(self, fn: RecordFunction) -> None:
        if os.getpid() != self._pid:  # a forked child records nothing
            handle, self._handle = self._handle, None
            if handle is not None:
                remove_callback(handle)
            return
        if self._count >= self._limit:
            return
        self._count += 1
        frames = tuple(_frames())
        frames = self._known.setdefault(frames, frames)
        noted = _Noted(fn.name, time.time_ns(), frames)
        self._noted.setdefault(get_native_id(), []).append(noted)

    def by_span(self, trace: Trace) -> Mapping[_Key, Stack]:
        """The stacks of the trace's ranges, by `key_of`."""
        found: dict[_Key, Stack] = {}
        left = {
            thread: [one for one in noted if one.time_unix_ns >= trace.header.anchor_unix_ns]
            for thread, noted in self._noted.copy().items()
        }
        at = dict.fromkeys(left, 0)
        for number, thread in enumerate(trace.threads):
            noted = left.get(thread.system_id, [])
            for span in spans(trace, thread):
                if span.kind != layout.RANGE:
                    continue
                name, begin = trace.name(span.op), at.get(thread.system_id, 0)
                for index in range(begin, min(begin + _LOOK_AHEAD, len(noted))):
                    if noted[index].name == name:
                        found[key_of(number, span)] = self._text(noted[index].frames)
                        at[thread.system_id] = index + 1
                        break
        return found

    def _text(self, frames: _Frames) -> Stack:
        known = self._texts.get(frames)
        if known is None:
            known = self._texts[frames] = tuple(
                f"{code.co_filename}({line}): {code.co_name}" for code, line in frames
            )
        return known


def key_of(thread: int, span: Span) -> _Key:
    """Identifies a range of a trace; `thread`: the number of its thread in it."""
    return thread, span.start, span.depth, span.op


def _frames() -> Iterator[tuple[CodeType, int]]:
    """The caller's stack without Opscope's own frames on top."""
    frame: FrameType | None = sys._getframe(1)
    own, count = True, 0
    while frame is not None and count < _MOST_FRAMES:
        code = frame.f_code
        own = own and code.co_filename.startswith(_OWN)
        if not own:
            count += 1
            yield code, frame.f_lineno
        frame = frame.f_back
