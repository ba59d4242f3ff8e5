"""What is known of one segment file between passes, and what it adds to the host's sums.

`Tracked.take` turns what the file says now into a contribution. A row keeps the series that it got
first: one that moved from `other` to a series of its own would make `other` step back. When a file
is read, and what becomes of it, is in place.py and host.py.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from opscope.agent import exemplars, layout, measures
from opscope.agent.dictionary import Dictionary
from opscope.agent.exemplars import OfSeries
from opscope.agent.measures import Keyed
from opscope.agent.segment import Header, Segment
from opscope.agent.snapshot import SAMPLES, Health, Process, SeriesKey
from opscope.agent.tables import Tables
from opscope.agent.totals import Contribution, Places, contribution

_SKIP_LIMIT = 64
_ATTACHED = "attached"


class Tracked:
    """One file. `contribution` and `process` are as of the last time the file was good."""

    __slots__ = (
        "bad_looks",
        "bad_reasons",
        "by_lock",
        "contribution",
        "dictionary",
        "exemplars",
        "is_named",
        "measures",
        "pid",
        "places",
        "process",
        "process_start",
        "service",
        "skipped",
    )

    def __init__(self, pid: int, process_start: int) -> None:
        self.pid = pid
        self.process_start = process_start
        self.dictionary: Dictionary | None = None
        self.service = ""
        self.is_named = False
        """It has said what its service is. That stays: counters that moved would step back."""
        self.places: Places | None = None
        self.contribution: Contribution | None = None
        self.process: Process | None = None
        self.measures: Keyed = ()
        self.exemplars: tuple[OfSeries, ...] = ()
        self.bad_reasons: frozenset[str] = frozenset()
        self.bad_looks = 0
        """In a row; a file that is bad again and again is looked at less and less."""
        self.skipped = 0
        self.by_lock = False
        """Its process lives for as long as the file is locked."""

    def skips(self) -> bool:
        """Whether this look passes the file over."""
        if self.skipped >= min(2**self.bad_looks // 8, _SKIP_LIMIT):
            self.skipped = 0
            return False
        self.skipped += 1
        return True

    @property
    def is_over(self) -> bool:
        """Its process is gone, and all it wrote is taken."""
        return self.process is not None and not self.process.is_alive

    @property
    def nbytes(self) -> int:
        """Memory that this takes, about."""
        dictionary = self.dictionary
        parts = (self.contribution, dictionary, None if dictionary is None else dictionary.lines)
        return sum(part.nbytes for part in parts if part is not None)

    def take(self, segment: Segment, is_alive: bool, tables: Tables, by_process: bool) -> None:
        header, rows, dictionary = segment.header, segment.rows, segment.dictionary
        process = _process(segment, is_alive)
        if not self.is_named and process.service != self.service:
            # Names are told a moment after the recorder has started.
            self.service, self.places = process.service, None
        self.is_named = "service.name" in process.notes
        places = self.places
        if places is None or not np.array_equal(rows.keys, places.keys):
            series = self._series(segment, process, tables, by_process)
            places = self.places = Places(rows.keys, series, tables.series.other)
        self.measures = tables.measures.keyed(self.service, segment.measures)
        self.contribution = contribution(
            rows,
            header.ticks_per_second,
            places,
            process.health,
            tuple({tables.usage_of(key, self.service): None for key in dictionary.usage}),
            _results(process, tables),
            measures.counted(self.measures),
        )
        self.exemplars = exemplars.of_series(
            segment.exemplars,
            rows.keys,
            places.rows,
            header.ticks_per_second,
            header.anchor_ticks,
            header.anchor_unix_ns,
        )
        self.process = process

    def _series(
        self, segment: Segment, process: Process, tables: Tables, by_process: bool
    ) -> NDArray[np.intp]:
        keys = segment.rows.keys
        series = np.full(len(keys), -1, np.intp)
        if self.places is not None and len(self.places.keys):
            order = np.argsort(self.places.keys)
            known = self.places.keys[order]
            at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
            series = np.where(known[at] == keys, self.places.rows[order][at], -1)
        ops, labels = segment.dictionary.ops, segment.dictionary.labels
        for row in np.flatnonzero(series < 0).tolist():
            key = int(keys[row])
            series[row] = tables.series.number(
                SeriesKey(
                    self.service,
                    ops[key & layout.KEY_OP_MASK],
                    layout.PHASES[key >> layout.KEY_PHASE_SHIFT & layout.KEY_PHASE_MASK],
                    labels[key >> layout.KEY_LABELS_SHIFT],
                    process.pid if by_process else None,
                ),
                process.created_unix_ns,
            )
        return series


def _process(segment: Segment, is_alive: bool) -> Process:
    header: Header = segment.header
    samples = int(segment.rows.values[:, SAMPLES].sum())
    return Process(
        pid=header.pid,
        uid=header.uid,
        process_start=header.process_start,
        is_alive=is_alive,
        created_unix_ns=header.created_unix_ns,
        sampling_prob=header.sampling_prob,
        window_ns=header.window_ns,
        period_ns=header.period_ns,
        health=Health(
            samples,
            header.dropped_count,
            header.folded_count,
            header.callback_error_count,
            segment.overhead_ns,
            header.adaptation_count,
        ),
        notes=segment.dictionary.notes,
        label_sets=tuple(labels for labels in segment.dictionary.labels.values() if labels),
        is_disabled=bool(header.is_disabled),
        overhead_budget=header.overhead_budget_ppb / 1e9,
        overhead_of_late=header.overhead_ppb / 1e9,
        pid_namespace=header.pid_namespace,
    )


def _results(process: Process, tables: Tables) -> tuple[tuple[str, str], ...]:
    bridges = {
        tables.results.bounded(name): _ATTACHED if outcome == _ATTACHED else "refused"
        for name, outcome in process.bridges.items()
    }
    return (("process", _ATTACHED), *bridges.items())
