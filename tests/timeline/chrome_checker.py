"""A strict reader of Chrome trace JSON: it rejects what Perfetto would have to guess.

Rules of the Trace Event Format: every event has the fields of its phase; complete events of one
thread are nested; no ended event contains a begin without an end; an arrow has one beginning and
one end, in this order, each at the start of a slice of its thread.
"""

from __future__ import annotations

import json
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

Event = dict[str, Any]

_FIELDS = {
    "M": set(),
    "X": {"ts", "dur", "cat"},
    "B": {"ts", "cat"},
    "b": {"ts", "cat", "id"},
    "e": {"ts", "cat", "id"},
    "i": {"ts", "cat", "s"},
    "s": {"ts", "cat", "id"},
    "f": {"ts", "cat", "id", "bp"},
}


def load(path: Path) -> dict[str, Any]:
    """The contents of the file, checked; numbers exactly as written."""
    text: dict[str, Any] = json.loads(path.read_text(), parse_float=Decimal)
    events: list[Event] = text["traceEvents"]
    for event in events:
        assert {"ph", "name", "pid", "tid"} | _FIELDS[event["ph"]] <= event.keys(), event
        assert event.get("ts", 0) >= 0
        assert event.get("dur", 0) >= 0
    _check_nesting(events)
    _check_asides(events)
    _check_arrows(events)
    return text


def slices(events: list[Event]) -> dict[tuple[int, int], list[Event]]:
    """The events on each thread's own track, by pid and tid."""
    found = defaultdict(list)
    for event in events:
        if event["ph"] in "XB":
            found[event["pid"], event["tid"]].append(event)
    return dict(found)


def _check_nesting(events: list[Event]) -> None:
    for own in slices(events).values():
        assert own == sorted(own, key=lambda event: event["ts"])
        stack: list[Decimal | None] = []
        for event in own:
            while stack and stack[-1] is not None and stack[-1] <= event["ts"]:
                stack.pop()
            end = event["ts"] + event["dur"] if event["ph"] == "X" else None
            around = stack[-1] if stack else None
            assert around is None or (end is not None and end <= around), event
            stack.append(end)


def _check_asides(events: list[Event]) -> None:
    begun: dict[str, Event] = {}
    for event in events:
        if event["ph"] == "b":
            assert event["id"] not in begun
            begun[event["id"]] = event
        elif event["ph"] == "e":
            assert begun.pop(event["id"])["ts"] <= event["ts"]
    assert not begun


def _check_arrows(events: list[Event]) -> None:
    starts = {
        (event["pid"], event["tid"], event["ts"])
        for own in slices(events).values()
        for event in own
    }
    arrows: dict[int, list[Event]] = defaultdict(list)
    for event in events:
        if event["ph"] in "sf":
            arrows[event["id"]].append(event)
            assert (event["pid"], event["tid"], event["ts"]) in starts, event
    for ends in arrows.values():
        first, last = ends
        assert (first["ph"], last["ph"], last["bp"]) == ("s", "f", "e")
        assert first["ts"] <= last["ts"]
        assert (first["cat"], first["name"]) == (last["cat"], last["name"])


def arrows(events: list[Event], kind: str) -> list[tuple[str, str]]:
    """(name of the slice where it begins, name of the slice where it ends) of each arrow of a
    kind."""
    by_start = {
        (event["pid"], event["tid"], event["ts"]): event["name"]
        for event in events
        if event["ph"] in "XB"
    }
    found: dict[int, list[str]] = defaultdict(list)
    for event in events:
        if event["ph"] in "sf" and event["cat"] == kind:
            found[event["id"]].append(by_start[event["pid"], event["tid"], event["ts"]])
    return sorted((begin, end) for begin, end in found.values())
