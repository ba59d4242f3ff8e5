"""The agent's knowledge of one segment file between passes, and its contribution to the host.

`TrackedSegment.take` converts the file's contents into a contribution. A row that moves to another
series leaves there what it has counted (MovedRows), so no counter decreases: from `other` to its
own, if there is room, in `take`; back, in `fold`, if take_back.py decides so. segment_directory.py
and host.py decide when to read a file, and what happens to it at the end.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from opscope.host import amounts, exemplars, kept_back, process_metrics
from opscope.host.amounts import Amounts
from opscope.host.containers import Identity
from opscope.host.exemplars import OfSeries
from opscope.host.health import Health
from opscope.host.identity import attributes, group_of
from opscope.host.kept_back import Ending
from opscope.host.key_tables import KeyTables
from opscope.host.moved_rows import MovedRows
from opscope.host.process_metrics import Keyed
from opscope.host.processor_time import USED, WAITED, ProcessorTimes
from opscope.host.snapshot import SAMPLES, Process, SeriesKey
from opscope.host.stretches import Stretches
from opscope.host.totals import Contribution, SeriesMap, contribution
from opscope.processes.cgroups import Container
from opscope.segments import layout
from opscope.segments.dictionary import Dictionary, Labels
from opscope.segments.layout import U64
from opscope.segments.mark import Mark
from opscope.segments.segment import Header, Segment, overhead_ns
from opscope.segments.self_time import PossibleTimes

_SKIP_LIMIT = 64
# Approximate memory of the Python objects, in bytes.
_EXEMPLAR_BYTES, _MEASURE_BYTES, _HEAD_BYTES = 500, 300, 200
_ATTACHED = "attached"
_OF_PROCESSOR = USED, WAITED


class TrackedSegment:
    """One file. `contribution` and `process` are from the last successful read."""

    __slots__ = (
        "attributes",
        "bad_reads",
        "bad_reasons",
        "budgeted_bytes",
        "by_lock",
        "container",
        "contribution",
        "dictionary",
        "ending",
        "exemplars",
        "is_named",
        "mark",
        "measures",
        "moved",
        "noted",
        "pid",
        "possible",
        "process",
        "process_start",
        "processor",
        "series_map",
        "service",
        "skipped",
        "stretches",
        "tried",
        "used",
        "user",
    )

    def __init__(self, pid: int, process_start: int, user: int) -> None:
        self.pid = pid
        self.process_start = process_start
        self.user = user
        """The owner of the file."""
        self.used = 0
        """`segment.used()` at the last successful read."""
        self.mark: Mark | None = None
        """Of the last successful read, if its contribution stays while nothing is counted."""
        self.dictionary: Dictionary | None = None
        self.service = ""
        self.attributes: Labels = ()
        self.container: Container | None = None
        """None: not looked for yet."""
        self.noted: Identity | None = None
        """Under which the container is kept for the next agent."""
        self.is_named = False
        """Whether service and attributes are known. They stay fixed: counters that moved would
        decrease."""
        self.series_map: SeriesMap | None = None
        self.contribution: Contribution | None = None
        self.process: Process | None = None
        self.measures: Keyed = ()
        self.exemplars: tuple[OfSeries, ...] = ()
        self.bad_reasons: frozenset[str] = frozenset()
        self.bad_reads = 0
        """Consecutive failed reads; the more there are, the more passes skip the file."""
        self.skipped = 0
        self.budgeted_bytes = 0
        """What it takes of its user's budget of memory."""
        self.by_lock = False
        """Whether the file's lock shows that its process lives."""
        self.moved = MovedRows()
        self.possible = PossibleTimes()
        self.stretches = Stretches()
        self.ending: Ending | None = None
        """What it leaves behind if its process ends."""
        self.processor = ProcessorTimes()
        self.tried = 0
        """`SeriesTable.changes` when rows last asked for a series of their own."""

    def skips(self) -> bool:
        """Whether this pass skips the file."""
        if self.skipped >= min(2**self.bad_reads // 8, _SKIP_LIMIT):
            self.skipped = 0
            return False
        self.skipped += 1
        return True

    def ended(self, tables: KeyTables) -> Contribution | None:
        """Its process has ended: the contribution, to be added to the sums."""
        service = tables.services.bounded(self.service, self.user)
        tables.kept_back.end((self.user, service), self.ending)
        if self.noted is not None:
            tables.containers.forget(self.noted)
        return self.contribution

    @property
    def is_over(self) -> bool:
        """Whether its process has ended and its contents are complete."""
        return self.process is not None and not self.process.is_alive

    @property
    def nbytes(self) -> int:
        """Approximate memory size, in bytes."""
        dictionary = self.dictionary
        parts = (self.contribution, dictionary, None if dictionary is None else dictionary.lines)
        kept = _EXEMPLAR_BYTES * len(self.exemplars) + _MEASURE_BYTES * len(self.measures)
        kept += self.moved.nbytes + self.possible.nbytes + self.processor.nbytes
        kept += self.stretches.nbytes
        kept += _HEAD_BYTES * len(dictionary.heads) if dictionary is not None else 0
        return kept + sum(part.nbytes for part in parts if part is not None)

    def take(
        self, segment: Segment, is_alive: bool, now_ns: int, tables: KeyTables, by_process: bool
    ) -> None:
        header, rows, dictionary = segment.header, segment.rows, segment.dictionary
        samples = int(rows.values[:, SAMPLES].sum())
        process = _process(header, dictionary, samples, segment.overhead_ns, is_alive, now_ns)
        if self.container is None:
            self.container = tables.containers.of(process)
            if tables.by_container:
                self.noted = tables.containers.note(process, self.container)
        if self.series_map is None or not (self.is_named or len(self.moved.elsewhere)):
            # Names arrive a moment after the recorder has started.
            named = process.service, self._attributes(process, tables)
            if named != (self.service, self.attributes):
                (self.service, self.attributes), self.series_map = named, None
        self.is_named = "service.name" in process.notes
        if dictionary.has_cut_labels:
            tables.limited.note(self.user, "labels")
        series_map = self.series_map
        is_known = series_map is not None and (
            rows.keys is series_map.keys or np.array_equal(rows.keys, series_map.keys)
        )
        if series_map is None or not is_known:
            series = self._series(segment, process, tables, by_process)
            series_map = self._map(rows.keys, series, tables, by_process)
        old = series_map.rows
        new = self._with_waiting(segment, old, tables, by_process, now_ns) if is_alive else None
        if new is not None:
            series_map = self._map(rows.keys, new, tables, by_process)
        service = tables.services.bounded(self.service, self.user)
        self.measures = (
            *tables.measures.keyed(self.service, segment.measures, self.user),
            *self.processor.measures(service),
        )
        tables.usual_waiting.note((self.user, service), self.processor.since_last())
        if not is_alive:
            self.processor.ends(tables.usual_waiting.of((self.user, service)))
        whole = contribution(
            segment,
            series_map,
            self.possible,
            self.stretches,
            self.processor,
            service,
            process.health,
            self._usage(dictionary, tables),
            _results(process, tables, self.user),
            process_metrics.counted(self.measures),
        )
        self.ending = kept_back.ending(segment, series_map.rows, self.possible)
        elsewhere = self.moved.elsewhere
        if new is not None:
            left = Amounts.of(whole).part(new[new != old])
            elsewhere = elsewhere.plus(left)
            was = dict(zip(new[new != old].tolist(), old[new != old].tolist(), strict=True))
            tables.left.append(left.moved(was))
        self.contribution = elsewhere.taken_from(whole)
        self.series_map = series_map
        self._note_moves(series_map, self.moved.stays, elsewhere, tables)
        self.exemplars = exemplars.of_series(
            segment.exemplars,
            rows.keys,
            series_map.rows,
            header.ticks_per_second,
            header.anchor_ticks,
            header.anchor_unix_ns,
        )
        self.process = process._replace(
            container=self.container, group=group_of(self.attributes), usage=whole.usage
        )
        self.used = segment.used
        # Times that are kept back become possible as time passes.
        is_lasting = self.possible.kept_back is None and not dictionary.has_cut_labels
        self.mark = segment.mark if is_lasting else None

    def stays(self, header: Header, now_ns: int, tables: KeyTables) -> bool:
        """Nothing was counted since the last read: whether the contribution stays, which then has
        the process's own times of now. Its process lives."""
        last, mark, dictionary = self.process, self.mark, self.dictionary
        if last is None or mark is None or dictionary is None or self.contribution is None:
            return False
        if len(self.moved.waiting) and self.tried != tables.series.changes:
            return False
        if header.window_ns and not self.processor.waited_little:
            return False  # the waiting is an error of estimates
        service = tables.services.bounded(self.service, self.user)
        own = (one for one in self.measures if one[0][0] not in _OF_PROCESSOR)
        self.measures = (*own, *self.processor.measures(service))
        cost_ns = overhead_ns(header, mark.range_cost_ps)
        self.process = _process(
            header, dictionary, last.health.samples, cost_ns, True, now_ns
        )._replace(container=last.container, group=last.group, usage=last.usage)
        self.contribution = replace(
            self.contribution,
            health=self.process.health,
            measured=process_metrics.counted(self.measures),
        )
        return True

    def _attributes(self, process: Process, tables: KeyTables) -> Labels:
        found = dict(attributes(process.notes, ranks=tables.ranks))
        if tables.by_container and self.container is not None:
            # What the program says of itself wins.
            found = {**self.container.attributes, **found}
        return tuple(sorted(found.items()))

    def fold(self, numbers: NDArray[np.intp], tables: KeyTables, now_ns: int) -> None:
        """Moves the rows of these series to `other`, for good."""
        series_map = self.series_map
        if series_map is None or not np.isin(series_map.series, numbers).any():
            return
        self.mark = None
        key = SeriesKey(self.service, "", "", ())
        other = tables.series.other_number(key, now_ns, self.user)
        gone = np.isin(series_map.rows, numbers)
        elsewhere = self.moved.elsewhere
        if self.contribution is not None:
            left = Amounts.of(self.contribution).part(numbers)
            self.contribution = amounts.without(self.contribution, numbers)
            tables.left.append(left)
            whole = left.plus(elsewhere.part(numbers))
            to_other = whole.moved(dict.fromkeys(whole.series.tolist(), other))
            elsewhere = elsewhere.part(numbers, invert=True).plus(to_other)
        stays = np.union1d(self.moved.stays, series_map.keys[gone])
        rows = np.where(gone, other, series_map.rows)
        self.series_map = self._map(series_map.keys, rows, tables)
        gone_numbers = {*numbers.tolist()}
        self.exemplars = tuple(one for one in self.exemplars if one[0] not in gone_numbers)
        self._note_moves(self.series_map, stays, elsewhere, tables)

    def _map(
        self,
        keys: U64,
        series: NDArray[np.intp],
        tables: KeyTables,
        by_process: bool = False,
    ) -> SeriesMap:
        process = self.pid if by_process else None
        return SeriesMap(keys, series, tables.series.others(self.service, process))

    def _note_moves(
        self, series_map: SeriesMap, stays: U64, elsewhere: Amounts, tables: KeyTables
    ) -> None:
        before, at_other = self.moved, series_map.at_other
        if elsewhere is not before.elsewhere or not np.array_equal(at_other, before.at_other):
            self.moved = MovedRows(at_other, stays, elsewhere)
            tables.moves += 1

    def _usage(self, dictionary: Dictionary, tables: KeyTables) -> tuple[tuple[str, str], ...]:
        usage = (tables.usage_of(key, self.service, self.user) for key in dictionary.usage)
        return tuple(dict.fromkeys(usage))

    def _series(
        self, segment: Segment, process: Process, tables: KeyTables, by_process: bool
    ) -> NDArray[np.intp]:
        keys = segment.rows.keys
        series = np.full(len(keys), -1, np.intp)
        if self.series_map is not None and len(self.series_map.keys):
            order = np.argsort(self.series_map.keys)
            known = self.series_map.keys[order]
            at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
            series = np.where(known[at] == keys, self.series_map.rows[order][at], -1)
        at_other = np.isin(keys, self.moved.at_other)
        none = self._no_key(tables, by_process)
        for row in np.flatnonzero(series < 0).tolist():
            key = _key(none, segment.dictionary, int(keys[row]))
            choose = tables.series.other_number if at_other[row] else tables.series.number
            series[row] = choose(key, process.created_unix_ns, self.user)
        return series

    def _with_waiting(
        self,
        segment: Segment,
        series: NDArray[np.intp],
        tables: KeyTables,
        by_process: bool,
        now_ns: int,
    ) -> NDArray[np.intp] | None:
        """The rows' series with those that waited and get one of their own now; None: no row."""
        if self.tried == tables.series.changes:
            return None
        self.tried = tables.series.changes
        keys, known = segment.rows.keys, {*series.tolist()}
        new, none = series.copy(), self._no_key(tables, by_process)
        for row in np.flatnonzero(np.isin(keys, self.moved.waiting)).tolist():
            key = _key(none, segment.dictionary, int(keys[row]))
            own = tables.series.own_number(key, now_ns, self.user)
            # What a row leaves is its series' whole amount, so no two rows may come to one.
            if own is not None and own not in known:
                new[row] = own
                known.add(own)
        return None if np.array_equal(new, series) else new

    def _no_key(self, tables: KeyTables, by_process: bool) -> SeriesKey:
        """What the keys of all rows have in common."""
        group = tables.series.group(self.attributes, self.user)
        return SeriesKey(self.service, "", "", (), self.pid if by_process else None, group)


def _key(none: SeriesKey, dictionary: Dictionary, row_key: int) -> SeriesKey:
    return none._replace(
        op=dictionary.ops[row_key & layout.KEY_OP_MASK],
        phase=layout.PHASES[row_key >> layout.KEY_PHASE_SHIFT & layout.KEY_PHASE_MASK],
        labels=dictionary.labels[row_key >> layout.KEY_LABELS_SHIFT],
    )


def _process(
    header: Header,
    dictionary: Dictionary,
    samples: int,
    overhead_ns: int,
    is_alive: bool,
    now_ns: int,
) -> Process:
    return Process(
        pid=header.pid,
        uid=header.uid,
        process_start=header.process_start,
        is_alive=is_alive,
        # A series may not begin after the time of its first export.
        created_unix_ns=min(header.created_unix_ns, now_ns),
        sampling_prob=header.sampling_prob,
        window_ns=header.window_ns,
        period_ns=header.period_ns,
        health=Health(
            samples,
            header.dropped_count,
            header.folded_count,
            header.callback_error_count,
            overhead_ns,
            header.adaptation_count,
            header.discarded_count,
        ),
        notes=dictionary.notes,
        label_sets=tuple(labels for labels in dictionary.labels.values() if labels),
        is_disabled=bool(header.is_disabled),
        overhead_budget=header.overhead_budget_ppb / 1e9,
        recent_overhead=header.overhead_ppb / 1e9,
        pid_namespace=header.pid_namespace,
    )


def _results(process: Process, tables: KeyTables, user: int) -> tuple[tuple[str, str], ...]:
    bridges = {
        tables.results.bounded(name, user): _ATTACHED if outcome == _ATTACHED else "refused"
        for name, outcome in process.bridges.items()
    }
    return (("process", _ATTACHED), *bridges.items())
