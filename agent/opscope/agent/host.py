"""All segments of a host, read again and again and summed up: `Host(...).collect() -> Snapshot`.

Each pass reads the segments of live processes anew. Those of dead ones are read a last time, folded
into the sums of the dead, and (where this is the host's agent) removed. One bad file is counted and
left out; what it said while it was good stays counted. What one segment says is segment.py's.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from opscope.agent import directories, layout, liveness, measures, segment_file
from opscope.agent.dictionary import Dictionary
from opscope.agent.layout import U64
from opscope.agent.measures import Keyed, MeasureTable
from opscope.agent.segment import Segment, read_header, read_segment
from opscope.agent.segment_file import SegmentError
from opscope.agent.snapshot import (
    SAMPLES,
    SELF_NS,
    Health,
    Process,
    SeriesKey,
    Snapshot,
)
from opscope.agent.totals import Contribution, SeriesTable, Sums, contribution
from opscope.attachment import ledger

# A name with a dot is of a file that is being made, or was when its process was killed.
_NAME = re.compile(r"\.?(\d{1,10})-(\d{1,20})-[0-9a-f]{16}\.seg")
# A bad file of a dead process goes once it is this old: it may be one that is being made.
_BAD_FILE_AGE_S = 60.0


class _Tracked:
    """What is known of one file between passes."""

    def __init__(self, pid: int, process_start: int) -> None:
        self.pid = pid
        self.process_start = process_start
        self.dictionary = Dictionary()
        self.service = ""
        self.row_keys: U64 = np.zeros(0, np.uint64)
        self.series: NDArray[np.intp] = np.zeros(0, np.intp)
        self.contribution: Contribution | None = None
        """As of the last time the file was good."""
        self.process: Process | None = None
        self.measures: Keyed = ()
        self.bad_reasons: set[str] = set()


class Host:
    """The segments in some directories, summed up over passes.

    `patterns`: globs of directories. `consume`: fold the segments of dead processes and remove
    their files; only one reader of a directory may. `pids`: only the segments of these processes.
    `by_process`: each process has series of its own. Not for several threads at a time.
    """

    def __init__(
        self,
        patterns: Sequence[str],
        *,
        consume: bool,
        max_series: int = 2000,
        pids: Collection[int] | None = None,
        by_process: bool = False,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._patterns = tuple(patterns)
        self._consume = consume
        self._pids = pids
        self._by_process = by_process
        self._clock_ns = clock_ns
        self._here = liveness.here()
        self._table = SeriesTable(max_series)
        self._measure_table = MeasureTable()
        self._dead = Sums.none()
        self._tracked: dict[str, dict[str, _Tracked]] = {}
        self._bad: Counter[tuple[str]] = Counter()
        self._bad_directories: set[str] = set()
        self._reasons: set[ledger.LedgerEntry] = set()
        self._refused: Counter[tuple[str, str]] = Counter()
        self._self_ns: U64 = np.zeros(0, np.uint64)

    def collect(self) -> Snapshot:
        """One pass. Raises nothing that a file could cause."""
        started = time.perf_counter()
        now_ns = self._clock_ns()
        found = directories.find(self._patterns)
        for path in found:
            self._read_directory(path, now_ns)
        for path in self._tracked.keys() - set(found):
            self._fold(self._tracked.pop(path).values())
        self._read_ledgers()
        return self._snapshot(now_ns, started)

    def _read_ledgers(self) -> None:
        """Counts why processes were not attached to, each reason once."""
        if self._pids is not None:
            return
        entries = ledger.read_all(directories.find_ledgers(self._patterns))
        for entry in set(entries) - self._reasons:
            self._refused["process", entry.code] += 1
        self._reasons = set(entries)
        where = self._here
        for entry in entries if self._consume else ():
            with suppress(OSError):
                if liveness.is_dead(*where, entry.pid, entry.process_start, where):
                    ledger.forget(entry)

    # ---- one directory ----------------------------------------------------------------------

    def _read_directory(self, path: str, now_ns: int) -> None:
        try:
            with directories.opened(path) as fd:
                names = {name: match for name in os.listdir(fd) if (match := _NAME.fullmatch(name))}
                tracked = self._tracked.setdefault(path, {})
                for name, match in names.items():
                    pid = int(match[1])
                    if self._pids is None or pid in self._pids:
                        file = tracked.setdefault(name, _Tracked(pid, int(match[2])))
                        self._read_file(name, fd, file, now_ns)
                self._fold(tracked.pop(name) for name in tracked.keys() - names.keys())
        except FileNotFoundError:
            self._fold(self._tracked.pop(path, {}).values())
        except (SegmentError, OSError) as error:
            if path not in self._bad_directories:
                self._bad_directories.add(path)
                reason = error.reason if isinstance(error, SegmentError) else "unreadable"
                self._bad[reason,] += 1

    def _read_file(self, name: str, directory_fd: int, file: _Tracked, now_ns: int) -> None:
        if file.process is not None and not file.process.is_alive:
            self._remove(name, directory_fd)
            return
        if name.startswith("."):
            self._note_bad(name, directory_fd, file, "unfinished", now_ns)
            return
        try:
            with segment_file.opened(name, directory_fd) as read:
                header = read_header(read)
                _check_identity(name, file, header.pid, header.process_start, header.random_id)
                # Looked up before the rest is read: what a dead process wrote is then all there.
                is_dead = header.state == layout.CLOSED or liveness.is_dead(
                    header.boot_id,
                    header.pid_namespace,
                    header.pid,
                    header.process_start,
                    self._here,
                )
                segment = read_segment(read, header, file.dictionary)
        except FileNotFoundError:
            return
        except SegmentError as error:
            self._note_bad(name, directory_fd, file, error.reason, now_ns)
            return
        self._take(file, segment, is_dead)
        if is_dead:
            self._remove(name, directory_fd)

    def _note_bad(
        self, name: str, directory_fd: int, file: _Tracked, reason: str, now_ns: int
    ) -> None:
        if reason != "unfinished" and reason not in file.bad_reasons:
            file.bad_reasons.add(reason)
            self._bad[reason,] += 1
        where = self._here
        if self._consume and liveness.is_dead(*where, file.pid, file.process_start, where):
            try:
                found = os.stat(name, dir_fd=directory_fd, follow_symlinks=False)
            except OSError:
                return
            if stat.S_ISREG(found.st_mode) and now_ns / 1e9 - found.st_mtime > _BAD_FILE_AGE_S:
                self._remove(name, directory_fd)

    def _remove(self, name: str, directory_fd: int) -> None:
        """What the file said stays counted, and is folded once the file is gone."""
        if self._consume:
            with suppress(OSError):
                os.unlink(name, dir_fd=directory_fd)

    # ---- one segment ------------------------------------------------------------------------

    def _take(self, file: _Tracked, segment: Segment, is_dead: bool) -> None:
        header, rows = segment.header, segment.rows
        samples = int(rows.values[:, SAMPLES].sum())
        health = Health(
            samples,
            header.dropped_count,
            header.folded_count,
            header.callback_error_count,
            samples * header.record_cost_ps // 1000,
        )
        process = Process(
            pid=header.pid,
            uid=header.uid,
            process_start=header.process_start,
            is_alive=not is_dead,
            created_unix_ns=header.created_unix_ns,
            sampling_prob=header.sampling_prob,
            window_ns=header.window_ns,
            period_ns=header.period_ns,
            health=health,
            notes=segment.dictionary.notes,
            label_sets=tuple(labels for labels in segment.dictionary.labels.values() if labels),
        )
        if process.service != file.service or not np.array_equal(rows.keys, file.row_keys):
            file.service, file.row_keys = process.service, rows.keys
            file.series = self._series_of(segment, process)
        file.measures = self._measure_table.keyed(process.service, segment.measures)
        file.contribution = contribution(
            segment, file.series, self._table, health, measures.counted(file.measures)
        )
        file.process = process

    def _series_of(self, segment: Segment, process: Process) -> NDArray[np.intp]:
        ops, labels = segment.dictionary.ops, segment.dictionary.labels
        numbers = [
            self._table.number(
                SeriesKey(
                    process.service,
                    ops[key & layout.KEY_OP_MASK],
                    layout.PHASES[key >> layout.KEY_PHASE_SHIFT & layout.KEY_PHASE_MASK],
                    labels[key >> layout.KEY_LABELS_SHIFT],
                    process.pid if self._by_process else None,
                ),
                process.created_unix_ns,
            )
            for key in segment.rows.keys.tolist()
        ]
        return np.array(numbers, np.intp)

    # ---- all of them ------------------------------------------------------------------------

    def _fold(self, gone: Iterable[_Tracked]) -> None:
        """Counts files that are there no more among the dead."""
        contributions = [file.contribution for file in gone if file.contribution is not None]
        if contributions:
            self._dead = self._dead.plus(contributions, len(self._table.keys))

    def _snapshot(self, now_ns: int, started: float) -> Snapshot:
        files = [file for tracked in self._tracked.values() for file in tracked.values()]
        contributions = [file.contribution for file in files if file.contribution is not None]
        keys = tuple(self._table.keys)
        sums = self._dead.plus(contributions, len(keys))
        self._hold_self_time(sums.counters)
        return Snapshot(
            time_unix_ns=now_ns,
            keys=keys,
            created_unix_ns=np.array(self._table.created_unix_ns, np.int64),
            counters=sums.counters,
            buckets=sums.buckets,
            first_octave=sums.first_octave,
            processes=tuple(file.process for file in files if file.process is not None),
            health=sums.health,
            usage=sums.usage,
            attach_results=sums.attach_results + self._refused,
            measures=measures.summed(
                sums.measured,
                (file.measures for file in files if file.process and file.process.is_alive),
            ),
            bad_segments=dict(self._bad),
            series_folded=sums.folded_rows,
            collect_seconds=time.perf_counter() - started,
        )

    def _hold_self_time(self, counters: U64) -> None:
        """Self time is an estimate that may fall a little; a counter must not."""
        n = len(self._self_ns)
        counters[:n, SELF_NS] = np.maximum(counters[:n, SELF_NS], self._self_ns)
        self._self_ns = counters[:, SELF_NS].copy()


def _check_identity(
    name: str, file: _Tracked, pid: int, process_start: int, random_id: bytes
) -> None:
    random = int.from_bytes(random_id[:8], "little")
    if (pid, process_start) != (file.pid, file.process_start) or f"{random:016x}" not in name:
        raise SegmentError("identity", "the header names another process than the file")
