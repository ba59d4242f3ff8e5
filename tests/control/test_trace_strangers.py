"""Traces of several processes, one of them hostile: the traces of the others are complete."""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opscope.control import control_block, trace
from opscope.control.control_block import FoundProcess
from opscope.segments import layout
from opscope.timeline import chrome, slow
from opscope.timeline.chrome import Source
from opscope.timeline.reader import Trace
from tests.segments.segment_writer import SegmentWriter
from tests.timeline.trace_writer import TraceWriter


class Stranger:
    """A segment whose process answers at once, with a trace that this test writes."""

    def __init__(self, directory: Path) -> None:
        self.path = SegmentWriter().write(directory)
        self.path.chmod(0o600)
        self.trace = Path(f"{self.path}.trace")

    def answer(self, **header: Any) -> None:
        """Answers the request in its control block."""
        raw = bytearray(self.path.read_bytes())
        block = np.frombuffer(raw, layout.CONTROL, 1, layout.CONTROL_OFFSET)[0]
        answer = np.frombuffer(raw, layout.ANSWER, 1, layout.ANSWER_OFFSET)
        answer["trace_serial"], answer["trace_status"] = block["trace_serial"], 0
        writer = TraceWriter(
            **{
                "pid": os.getpid(),
                "uid": os.geteuid(),
                "serial": int(block["trace_serial"]),
                "anchor_unix_ns": time.time_ns(),
                "end_anchor_unix_ns": time.time_ns(),
                **header,
            }
        )
        writer.thread().range("core::mm", 2_000, 3_000)
        self.trace.write_bytes(writer.to_bytes())
        with self.path.open("r+b") as file:
            file.write(raw)


@pytest.fixture
def strangers(tmp_path: Path) -> list[Stranger]:
    tmp_path.chmod(0o700)
    return [Stranger(tmp_path) for _ in range(3)]


def _found(strangers: list[Stranger]) -> list[FoundProcess]:
    by_path = {one.path: one for one in control_block.find([str(strangers[0].path.parent)])}
    return [by_path[str(stranger.path)] for stranger in strangers]


def _take(
    strangers: list[Stranger], harm: Callable[[Stranger], None], **of_first: Any
) -> list[trace.Taken]:
    """Of all; the first one answers with these numbers, and does harm after."""
    steps = iter(range(1_000_000))

    def sleep(_: float) -> None:
        step = next(steps)
        if step == 0:
            for number, stranger in enumerate(strangers):
                stranger.answer(**(of_first if number == 0 else {}))
        elif step == 1:
            harm(strangers[0])

    return trace.take(_found(strangers), 0.05, 1 << 20, sleep=sleep)


def _cut(stranger: Stranger) -> None:
    os.truncate(stranger.trace, 10)


def test_a_truncated_trace_does_not_end_others_and_is_removed(
    strangers: list[Stranger],
) -> None:
    # Still being written, so it is looked at again after it was opened.
    taken = _take(strangers, _cut, state=1)
    assert [one.trace is not None for one in taken] == [False, True, True]
    assert "truncated" in taken[0].text
    assert not any(stranger.trace.exists() for stranger in strangers)


def test_an_unexpected_error_leaves_no_trace_behind(
    strangers: list[Stranger],
) -> None:
    def fail(_: Stranger) -> None:
        raise RuntimeError("of the clock")

    with pytest.raises(RuntimeError, match="of the clock"):
        _take(strangers, fail, state=1)
    assert not any(stranger.trace.exists() for stranger in strangers)


@pytest.mark.parametrize("header", [{"anchor_unix_ns": 5}, {"uid": 77}, {"serial": 99}])
def test_a_trace_of_another_time_or_user_or_request_is_refused(
    strangers: list[Stranger], header: dict[str, int]
) -> None:
    taken = _take(strangers, lambda _: None, **header)
    assert [one.trace is not None for one in taken] == [False, True, True]


def test_a_trace_much_larger_than_was_asked_for_is_refused(strangers: list[Stranger]) -> None:
    class Giant(Stranger):
        def answer(self, **header: Any) -> None:
            super().answer(**header)
            os.truncate(self.trace, 1 << 30)

    strangers[0].__class__ = Giant
    taken = _take(strangers, lambda _: None)
    assert [one.trace is not None for one in taken] == [False, True, True]
    assert "too large" in taken[0].text


class _Shrinking:
    """The bytes of a trace, whose end disappears once it has been read."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.is_cut = False

    def __call__(self, offset: int, size: int) -> bytes:
        raw = self.raw[:offset] + b"\xff" * (len(self.raw) - offset) if self.is_cut else self.raw
        return raw[offset : offset + size]


def test_a_trace_that_changes_while_it_is_written_affects_no_other() -> None:
    writers = [TraceWriter(), TraceWriter()]
    for writer in writers:
        writer.thread().range("core::mm", 2_000, 3_000)
    shrinking = _Shrinking(writers[0].to_bytes())
    traces = [Trace(shrinking), writers[1].trace()]
    shrinking.is_cut = True
    damaged: list[int] = []
    file = io.StringIO()
    sources = [Source(one, f"p{n}") for n, one in enumerate(traces)]
    ranges = chrome.write(file, sources, {}, lambda index, _: damaged.append(index))
    assert (ranges, damaged) == (1, [0])
    drawn = json.loads(file.getvalue())
    assert [one["name"] for one in drawn["traceEvents"] if one["ph"] == "X"] == ["core::mm"]
    assert set(slow.find(traces, 0, 10).damaged) == {0}


def test_the_clock_of_one_user_s_trace_is_not_another_s() -> None:
    mine = TraceWriter(uid=1000)
    theirs = TraceWriter(uid=1001, ticks_per_second=10**6, end_anchor_ticks=1 << 60)
    for writer in (mine, theirs):
        writer.thread().range("core::mm", 2_000, 3_000)

    def drawn(*writers: TraceWriter) -> list[tuple[float, float]]:
        file = io.StringIO()
        chrome.write(file, [Source(one.trace(), "p") for one in writers], {})
        events = json.loads(file.getvalue())["traceEvents"]
        return [(one["ts"], one["dur"]) for one in events if one["ph"] == "X"]

    assert drawn(mine, theirs)[0] == drawn(mine)[0]
