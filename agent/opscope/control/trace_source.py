"""A trace with what is known of its process, as a timeline shows it."""

from __future__ import annotations

from opscope.control.control_block import FoundProcess
from opscope.timeline import chrome
from opscope.timeline.reader import Trace

# The notes of a process that are useful in a timeline.
_NOTES = ("service.name", "service.version", "python", "opscope")
_RANKS = ("rank", "local_rank", "world_size")


def source_of(found: FoundProcess, taken: Trace) -> chrome.Source:
    notes = found.notes
    ranks = [f"{key} {notes[key]}" for key in _RANKS[:1] if key in notes]
    title = " ".join([found.service, *ranks])
    header = found.header
    frameworks = [key.removeprefix("bridge.") for key in notes if key.startswith("bridge.")]
    facts: dict[str, object] = {
        "program": found.program,
        **{key: notes[key] for key in (*_NOTES, *frameworks, *_RANKS) if key in notes},
        "recorder": {
            "sampling_prob": header.sampling_prob,
            "window_ms": header.window_ns / 1e6,
            "period_ms": header.period_ns / 1e6,
        },
    }
    return chrome.Source(taken, title, facts, pid=found.pid)
