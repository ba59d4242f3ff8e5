"""The sums of a directory's segments over all their processes, with standard errors.

Counters only grow, so the increase between two readings is their difference.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from math import sqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from opscope.host import processor_time
from opscope.host.processor_time import MainThread, ProcessorTime
from opscope.host.stretches import Rows, Shown, Stretches
from opscope.segments import layout
from opscope.segments.dictionary import Dictionary
from opscope.segments.off_cpu import of_rows
from opscope.segments.segment import Segment, read_header, read_segment
from opscope.segments.segment_file import Reader
from opscope.segments.self_time import wanted
from opscope.segments.variance import PHASE_SELF_OWED, SELF_S2, variances

Key = tuple[str, str]
"""Operator, with its overload after a dot, and phase."""


@dataclass
class Sums:
    """By operator and phase; times in seconds, variances in squares of the unit."""

    samples: Counter[Key] = field(default_factory=Counter)
    calls: dict[Key, float] = field(default_factory=dict)
    total_s: dict[Key, float] = field(default_factory=dict)
    whole_s: dict[Key, float] = field(default_factory=dict)
    """The part of `total_s` from ranges with a known self time."""
    known_self_s: dict[Key, float] = field(default_factory=dict)
    calls_variance: dict[Key, float] = field(default_factory=dict)
    """The operator "" has that of all operators of the phase together."""
    self_variance: dict[Key, float] = field(default_factory=dict)
    overhead_ns: int = 0
    calls_owed: dict[Key, float] = field(default_factory=dict)
    """The part of `calls_variance` that may fall; see segments/variance.py."""
    self_owed: dict[Key, float] = field(default_factory=dict)
    window_calls2: dict[Key, float] = field(default_factory=dict)
    """Of all operators of a phase together: the sum of the squares of the windows' calls."""
    period_s: float = 0.0
    """The mean time from window to window, the longest of all; 0: no windows."""
    of_segments: dict[str, tuple[float, float]] = field(default_factory=dict)
    """By file name: the seconds of its self times that are estimates, and their mean weight."""
    as_met: float = 1.0
    """Of the self times of the process whose main thread is known: the part that rests on the
    waiting that windows have met (host/stretches.py)."""

    @property
    def self_s(self) -> dict[Key, float]:
        return {
            key: seconds * (self.total_s[key] / whole) if (whole := self.whole_s[key]) > 0 else 0.0
            for key, seconds in self.known_self_s.items()
        }

    def since(self, earlier: Sums) -> Sums:
        """The increase since an earlier reading of the same directory."""
        difference = Sums(
            self.samples - earlier.samples, period_s=self.period_s, as_met=self.as_met
        )
        for name in _SUMMED:
            now, before = getattr(self, name), getattr(earlier, name)
            setattr(difference, name, {key: now[key] - before.get(key, 0.0) for key in now})
        for name, owed in (("calls_variance", "calls_owed"), ("self_variance", "self_owed")):
            # What was owed at the earlier reading may have come since; see segments/variance.py.
            column, change = getattr(difference, name), getattr(difference, owed)
            for key in change:
                column[key] = max(column[key], change[key])
                column[key] += 2 * getattr(earlier, owed).get(key, 0.0)
        difference.overhead_ns = self.overhead_ns - earlier.overhead_ns
        difference.of_segments = {
            name: one for name, one in self.of_segments.items() if name not in earlier.of_segments
        }
        return difference

    def with_waiting(self, processor: ProcessorTime, children: ProcessorTime) -> Sums:
        """The same with the waiting that no window has met, as the agent adds it. `children`: of
        the processes that have begun and ended since the earlier reading."""
        self_s = self.self_s
        estimates = [key for key, variance in self.calls_variance.items() if variance and key[0]]
        all_s = sum(self_s.get(key, 0.0) for key in estimates)
        unseen = sqrt(
            (self.as_met * processor_time.unseen_s(all_s, processor)) ** 2
            + sum(
                processor_time.unread_s2(own_s, weight, children)
                for own_s, weight in self.of_segments.values()
            )
        )
        lacking = {
            key: unseen * self_s.get(key, 0.0) / all_s for key in estimates if unseen and all_s
        }
        of_phases: dict[Key, float] = {}
        for (_, phase), seconds in lacking.items():
            of_phases["", phase] = of_phases.get(("", phase), 0.0) + seconds
        # The self time of an outer range has too much: what is taken off it for those inside lacks.
        too_much = {
            key: unseen * min(1.0, (self.total_s[key] - self_s[key]) / all_s)
            for key, variance in self.self_variance.items()
            if unseen and all_s and variance and key in self_s and key not in lacking
        }
        more = {key: seconds**2 for key, seconds in (lacking | too_much | of_phases).items()}
        variance = {
            key: self.self_variance.get(key, 0.0) + more.get(key, 0.0)
            for key in self.self_variance.keys() | more.keys()
        }
        return replace(self, self_variance=variance)


_SUMMED = (
    "calls",
    "total_s",
    "whole_s",
    "known_self_s",
    "calls_variance",
    "self_variance",
    "calls_owed",
    "self_owed",
    "window_calls2",
)


Mains = Mapping[int, MainThread]
"""By process id, what main threads have had."""


class Directory:
    """Reads the segments of one directory, any number of times, as a host does."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._stretches: defaultdict[str, Stretches] = defaultdict(Stretches)

    def read(self, mains: Mains) -> Sums:
        """`mains`: as just read, or before the processes ended. Raises SegmentError for a damaged
        file.

        All together have at most the time that their threads had, as in host/kept_back.py once the
        processes have ended."""
        sums, possible = Sums(), _Possible()
        for path in sorted(Path(self._path).glob("*.seg")):
            fd = os.open(path, os.O_RDONLY)
            try:
                _add(
                    sums,
                    possible,
                    path.name,
                    partial(_pread, fd),
                    self._stretches[path.name],
                    mains,
                )
            finally:
                os.close(fd)
        sums.known_self_s = {key: possible.share * s for key, s in sums.known_self_s.items()}
        return sums


def read(directory: str) -> Sums:
    """The same once, without knowledge of main threads."""
    return Directory(directory).read({})


@dataclass
class _Possible:
    """The self time of all segments, and the time of their threads, in seconds."""

    estimated_s: float = 0.0
    elapsed_s: float = 0.0

    @property
    def share(self) -> float:
        return min(1.0, self.elapsed_s / self.estimated_s) if self.estimated_s else 1.0


def _pread(fd: int, offset: int, size: int) -> bytes:
    return os.pread(fd, size, offset)


def _add(
    sums: Sums, possible: _Possible, name: str, read: Reader, stretches: Stretches, mains: Mains
) -> None:
    header = read_header(read)
    segment = read_segment(read, header, Dictionary())
    second = header.ticks_per_second
    sums.overhead_ns += segment.overhead_ns
    if header.window_ns:
        sums.period_s = max(sums.period_s, header.period_ns / 1e9)
    stated = {int(entry["key"]) for entry in segment.variances}
    rows = segment.rows
    of_row, weights = rows.values[:, 0], rows.values[:, 1]
    is_estimate = weights != of_row * layout.WEIGHT_ONE
    shown = _shown(segment, is_estimate, stretches, mains)
    self_s = shown.times_s[:, 0]
    possible.estimated_s += float(self_s.sum())
    sums.of_segments[name] = (
        float(self_s[is_estimate].sum()),
        processor_time.mean_weight(of_row[is_estimate], weights[is_estimate]),
    )
    if header.pid in mains:
        sums.as_met = 1.0 - shown.part
    possible.elapsed_s += segment.elapsed_ticks / second
    for row, (number, values) in enumerate(
        zip(rows.keys.tolist(), rows.values.tolist(), strict=True)
    ):
        samples, weight, whole, total, own = values[:5]
        key = segment.dictionary.ops[number & layout.KEY_OP_MASK], _phase(number)
        sums.samples[key] += samples
        calls = weight / layout.WEIGHT_ONE
        of_total = total / second
        if shown.part:
            own_s, of_total = shown.times_s[row].tolist()
            whole, own = of_total * second, own_s * second
        for column, value in (
            (sums.calls, calls),
            (sums.total_s, of_total),
            (sums.whole_s, whole / second),
            (sums.known_self_s, own / second),
        ):
            column[key] = column.get(key, 0.0) + value
        if number not in stated and (stated or not header.window_ns):
            # Recorded by probability or always; see SEGMENT.md.
            variance = calls * calls / samples - calls if samples else 0.0
            sums.calls_variance[key] = sums.calls_variance.get(key, 0.0) + max(0.0, variance)
            if calls == samples:  # every range is recorded, so its time is exact too
                sums.self_variance.setdefault(key, 0.0)
    self_s2 = _self_s2(segment, shown)
    for entry in segment.variances:
        number = int(entry["key"])
        op = number & layout.KEY_OP_MASK
        key = segment.dictionary.ops[op] if op else "", _phase(number)
        variance, owed = self_s2.get(number) or (
            float(entry["self_ticks"]) / second**2,
            float(entry["self_owed"]) / second**2,
        )
        for column, value in (
            (sums.calls_variance, float(entry["calls"])),
            (sums.self_variance, variance),
            (sums.calls_owed, float(entry["calls_owed"])),
            (sums.self_owed, owed),
            *([] if op else [(sums.window_calls2, float(entry["calls_squared"]))]),
        ):
            column[key] = column.get(key, 0.0) + value


def _shown(
    segment: Segment, is_estimate: NDArray[np.bool_], stretches: Stretches, mains: Mains
) -> Shown:
    """What the agent shows of it."""
    rows, second = segment.rows, segment.header.ticks_per_second
    samples, weights = rows.values[:, 0], rows.values[:, 1]
    times_s = wanted(rows.values) / second
    stated = variances(segment.variances, rows.keys, samples, weights, times_s[:, 0], second)
    main = mains.get(segment.header.pid)
    if main is None or not segment.header.window_ns or not segment.is_mainly_main:
        return Shown(times_s, stated, 0.0)
    off_cpu = of_rows(segment.off_cpu, rows.keys, stated, second)
    found = Rows(rows.keys, is_estimate, times_s, stated, off_cpu, second)
    return stretches.of(found, main, is_over=False)


def _self_s2(segment: Segment, shown: Shown) -> dict[int, tuple[float, float]]:
    """By key, the variance of what is shown and the part of it that is owed; of operators, and of
    all of a phase. Nothing if the stated ones are right."""
    if not shown.part:
        return {}
    rows, owed = shown.variances.rows[:, SELF_S2], shown.variances.owed[:, SELF_S2]
    found = {
        key: (s2, owed_s2)
        for key, s2, owed_s2 in zip(
            segment.rows.keys.tolist(), rows.tolist(), owed.tolist(), strict=True
        )
    }
    phases = shown.variances.phases[:, [SELF_S2, PHASE_SELF_OWED]].tolist()
    return found | {number << layout.KEY_PHASE_SHIFT: (*two,) for number, two in enumerate(phases)}


def _phase(key: int) -> str:
    phase: str = layout.PHASES[key >> layout.KEY_PHASE_SHIFT & layout.KEY_PHASE_MASK]
    return phase
