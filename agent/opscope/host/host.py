"""Read all segments of a host repeatedly and add them up: `Host(...).collect() -> Snapshot`.

Each pass rereads the segments of live processes. It reads the segment of an ended process one last
time, adds it to the sums of ended processes and, if this is the host's agent, removes the file.
`sweep()` does only the latter, between passes, when hundreds of processes start and end. The order
is: add, save the state, remove; so a killed agent continues where it was (host/state.py).

segment_directory.py reads the files of one directory; tracked_segment.py interprets one file.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from opscope.host import (
    exemplars,
    held_estimates,
    ledgers,
    process_metrics,
    refusals,
    self_metrics,
    take_back,
)
from opscope.host.budgets import Budgets, Turns
from opscope.host.ended_processes import EndedProcesses
from opscope.host.moved_rows import MovedRows
from opscope.host.processor_time import OnlyGrowing
from opscope.host.refusals import Refusals
from opscope.host.removal import remove
from opscope.host.retirement import IDLE_S, Retirement, unexported
from opscope.host.segment_directory import PassResult, Reading, SegmentDirectory
from opscope.host.self_metrics import SelfMetrics
from opscope.host.snapshot import Exemplar, Snapshot
from opscope.host.state import State, StateError, decode, encode
from opscope.host.state_file import StateFile
from opscope.host.take_back import TakeBack
from opscope.host.totals import Contribution, Sums
from opscope.host.tracked_segment import TrackedSegment
from opscope.segments import directories, liveness
from opscope.segments.variance import Parts

# Existing directories that one pass examines for new segments.
_LOOK_LIMIT = 16_384


class Host:
    """The segments in some directories, added up over passes.

    `patterns`: globs of directories. `consume`: add up the segments of ended processes and remove
    their files; a directory may have only one such reader. `state`: the file that keeps the sums
    over restarts; None keeps them nowhere. `pids`: read only the segments of these processes.
    `by_process`: give each process its own series; `ranks`: give each rank of a job its own;
    `containers`: give each container its own. If series run short, those of ended processes are
    retired once they have not changed for `series_idle_s` seconds and `exported(now)` shows that
    they were exported. Not thread-safe.

    Raises AgentError if another agent owns the state, or if it cannot be kept there.
    """

    def __init__(
        self,
        patterns: Sequence[str],
        *,
        consume: bool,
        max_series: int = 2000,
        pids: Collection[int] | None = None,
        by_process: bool = False,
        ranks: bool = False,
        containers: bool = False,
        state: StateFile | None = None,
        series_idle_s: float = IDLE_S,
        exported: Callable[[int], int] = unexported,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._patterns = tuple(patterns)
        # Once: it would move with each setting of the clock.
        self._start_unix_s = self_metrics.start_unix_s()
        self._consume = consume
        self._pids = pids
        self._clock_ns = clock_ns
        here = liveness.here()
        self._file = state
        self.resumed = ""
        """What the agent did with the state of an earlier agent, as text."""
        self.goes_on = False
        """Whether counters continue from an earlier agent's values."""
        self._save_error = ""
        self._parked = 0
        self._state = self._resume(here.boot_id, max_series)
        self._state.tables.ranks = ranks
        self._state.tables.by_container = containers
        self._budgets = Budgets(self._state.tables.limited)
        self._reading = Reading(
            self._state.tables,
            self._state.bad,
            here,
            consume,
            by_process,
            pids,
            self._budgets,
            self._state.moved,
        )
        self._directories: dict[str, SegmentDirectory] = {}
        self._refusals = Refusals(self._state.tables.results)
        self._exported = exported
        self._retirement = Retirement(series_idle_s)
        self._take_back = TakeBack(series_idle_s)
        self._processor = OnlyGrowing()
        self._ended = EndedProcesses()
        self._passes: Counter[tuple[str]] = Counter()
        self._removed = 0
        self._folds = 0
        self._left: dict[int, tuple[Exemplar, ...]] = {}
        """The newest exemplars of ended processes, by series."""
        self._saved: object = None
        self._state_writes: Counter[tuple[str]] = Counter()

    def _resume(self, boot_id: bytes, max_series: int) -> State:
        fresh = State.none(boot_id, max_series)
        if self._file is None:
            return fresh
        self._file.claim()
        state, refusal, parked = fresh, "", ""
        try:
            raw = self._file.load()
            if raw is None:
                return fresh
            state = decode(raw)
            if state.boot_id != boot_id:
                refusal = "it was saved before the last reboot"
            elif state.tables.series.limit != max_series:
                refusal = f"its limit is {state.tables.series.limit} series"
        except StateError as error:
            refusal, parked = str(error), self._file.park()
        if refusal:
            fresh.tables.series.earliest_unix_ns = self._clock_ns()
            self.resumed = f"{self._file.path}: {refusal}; counters restart from 0"
            if parked:
                self.resumed += f"; the file is kept as {parked}"
            return fresh
        self.goes_on = True
        ended = state.tables.series.ended_unix_ns
        ended[:] = [one or self._clock_ns() for one in ended]
        self.resumed = f"{self._file.path}: {len(state.tables.series):,} series continue"
        return state

    def collect(self) -> Snapshot:
        """Makes one pass. No contents of a file can make it raise."""
        started = time.perf_counter()
        now_ns = self._clock_ns()
        self._reading.files_read = 0
        self._passes["pass",] += 1
        self._budgets.limited.begin_pass()
        self._state.tables.containers.begin_pass()
        if self._consume:
            for parent in {os.path.dirname(pattern) for pattern in self._patterns}:
                directories.free_names(parent)
        paths = directories.find(self._patterns)
        self._admit(paths)
        for directory, deadline in self._in_turn(self._budgets.passes):
            found = directory.read(self._taken(directory.path), now_ns, deadline)
            self._fold(directory, found, now_ns)
        there = set(paths)
        for path, directory in [*self._directories.items()]:
            if path not in there and not directory.tracked:
                self._budgets.directories.take(directory.admitted_user, -1)
                del self._directories[path]
        for path in self._reading.resumed.keys() - there:
            del self._reading.resumed[path]
        self._parked = sum(len(directory.parked) for directory in self._directories.values())
        self._read_ledgers(now_ns)
        self._make_room(now_ns)
        self._divide(now_ns)
        sums = self._sums()
        held_estimates.hold(self._state, sums, self._processor)
        self._take_back.note(sums.counters)
        if self._save():
            self._removed += remove(self._state.taken)
        return self._snapshot(sums, now_ns, started)

    def sweep(self) -> int:
        """Adds up and removes the segments of ended processes if many have appeared since the last
        pass or sweep; returns how many. Costs almost nothing otherwise."""
        if not self._consume:
            return 0
        self._passes["sweep",] += 1
        now_ns = self._clock_ns()
        over = 0
        for directory, deadline in self._in_turn(self._budgets.sweeps):
            found = directory.sweep(self._taken(directory.path), now_ns, deadline)
            over += len(found.over)
            self._fold(directory, found, now_ns)
        if over:
            self._make_room(now_ns)
            if self._save():
                self._removed += remove(self._state.taken)
        return over

    def warnings(self) -> list[str]:
        """Problems that keep the agent from its work now, each with a remedy after an arrow."""
        found = []
        if self._save_error:
            found.append(
                f"the state cannot be saved ({self._save_error}), so files of ended processes are "
                "kept → free space for the state, or move it with OPSCOPE_STATE"
            )
        if self._parked:
            discarded = self._reading.files_discarded
            found.append(
                f"{self._parked} segments of ended processes have another version and are not "
                f"counted, {discarded} more were removed → run the newest version of the agent"
            )
        return found

    def above_part(self) -> set[int]:
        """The users who have or want more series than an equal part."""
        return take_back.above_part(self._state.tables.series, self._files())

    def _admit(self, paths: Sequence[str]) -> None:
        """Adds new directories, as far as their users' shares allow."""
        new = [path for path in paths if path not in self._directories]
        for path in sorted(new, key=lambda path: not directories.is_of_user(path))[:_LOOK_LIMIT]:
            user = directories.owner(path)
            if user is not None and self._budgets.directories.asks(user):
                self._directories[path] = SegmentDirectory(path, self._reading, user)

    def _in_turn(self, turns: Turns) -> Iterator[tuple[SegmentDirectory, float]]:
        """The directories by user, each with the end of its user's turn. A user's directories come
        in the order of their last turn, oldest first; every user gets at least one."""
        of_user: dict[int, list[SegmentDirectory]] = {}
        for directory in self._directories.values():
            of_user.setdefault(directory.user, []).append(directory)
        for user, deadline in turns.of(of_user):
            in_order = sorted(of_user[user], key=lambda directory: directory.last_turn)
            for number, directory in enumerate(in_order):
                if number and time.monotonic() > deadline:
                    self._budgets.limited.note(user, "time")
                    break
                directory.is_behind, directory.last_turn = False, time.monotonic_ns()
                yield directory, deadline
                if directory.is_behind:
                    self._budgets.limited.note(user, "time")

    def close(self) -> None:
        """Releases the claim on the state; the state itself stays."""
        if self._file is not None:
            self._file.close()

    # ---- ended processes ---------------------------------------------------------------------

    def _taken(self, path: str) -> set[str]:
        return self._state.taken.get(path, set())

    def _fold(self, directory: SegmentDirectory, found: PassResult, now_ns: int) -> None:
        """Adds segments of ended processes to the sums, and marks their files for removal."""
        gone = [*found.vanished, *map(directory.forget, found.over)]
        files = [file for file in gone if file is not None]
        self._add((file.ended(self._state.tables) for file in files), now_ns)
        self._ended.add((file.process for file in files), now_ns)
        self._add_left(now_ns)
        if any(file.exemplars for file in files):
            self._left = exemplars.newest(self._exemplars(files))
        if self._consume and (found.over or found.remains):
            self._state.taken.setdefault(directory.path, set()).update(found.over, found.remains)

    def _add(self, contributions: Iterable[Contribution | None], now_ns: int) -> None:
        known = [one for one in contributions if one is not None]
        if known:
            count = len(self._state.tables.series.keys)
            self._state.dead = self._state.dead.plus(known, count)
            self._folds += 1
            for one in known:
                for number in one.series.tolist():
                    self._state.tables.series.ended_unix_ns[number] = now_ns

    def _add_left(self, now_ns: int) -> None:
        """Adds what live processes counted under series that they left, and times possible now."""
        tables = self._state.tables
        left, tables.left = [*tables.left, *tables.kept_back.released()], []
        self._add((one.contribution() for one in left), now_ns)

    def _divide(self, now_ns: int) -> None:
        """Takes places back for who waits."""
        # Not before all files' series are known.
        if self._consume and not any(self._reading.resumed.values()):
            self._take_back.divide(self._state.tables, self._files(), now_ns)
            self._add_left(now_ns)

    def _make_room(self, now_ns: int) -> None:
        if not self._consume:
            return
        gone = self._retirement.make_room(self._state, self._held(), now_ns, self._exported(now_ns))
        for number in gone:
            self._left.pop(number, None)

    def _held(self) -> Iterator[NDArray[np.intp]]:
        """The series under which tracked files count."""
        for file in self._files():
            if file.series_map is not None:
                yield file.series_map.series
            if file.contribution is not None:
                yield file.contribution.series
            yield file.moved.elsewhere.series
        for files in self._reading.resumed.values():
            for moved in files.values():
                yield moved.elsewhere.series

    def _read_ledgers(self, now_ns: int) -> None:
        if self._pids is not None:
            return
        state = self._state
        paths = directories.find_ledgers(self._directories)
        entries, cut = ledgers.read(paths, self._refusals.present)
        for user in cut:
            self._budgets.limited.note(user, "ledger")
        taken = {os.path.join(path, name) for path in paths for name in self._taken(path)}
        gone = self._refusals.take(entries, taken)
        state.refused.update(("process", code) for code in gone)
        if not self._consume:
            return
        for entry in refusals.over(entries, self._reading.here, now_ns / 1e9):
            path, name = os.path.split(entry.path)
            code = self._refusals.finish(entry.path)
            if code is not None:
                state.refused["process", code] += 1
            state.taken.setdefault(path, set()).add(name)

    def _save(self) -> bool:
        """Saves the state if it has changed; whether the file now has all of it."""
        state = self._state
        if self._file is None:
            return True
        now = (
            state.tables.size,
            self._folds,
            self._retirement.count,
            state.held.marks(),
            state.bad.total(),
            state.refused.total(),
            {path: len(names) for path, names in state.taken.items()},
            state.tables.moves,
            state.tables.series.targets,
        )
        if now == self._saved:
            return True
        state.moved = self._moved()
        try:
            self._file.save(encode(state))
            self._saved = now
            self._state_writes["written",] += 1
            self._save_error = ""
        except OSError as error:
            # The file saved before stays valid while the segments that ended since stay.
            self._save_error = os.strerror(error.errno or 0)
            self._state_writes["failed",] += 1
            return False
        return True

    def _moved(self) -> dict[str, dict[str, MovedRows]]:
        """By directory and name, the rows under `other` of files that are read, or were."""
        found = {path: {**files} for path, files in self._reading.resumed.items()}
        for path, directory in self._directories.items():
            for name, file in directory.tracked.items():
                if file.moved:
                    found.setdefault(path, {})[name] = file.moved
        return found

    # ---- the sums ----------------------------------------------------------------------------

    def _sums(self) -> Sums:
        live = [file.contribution for file in self._files() if file.contribution is not None]
        return self._state.dead.plus(live, len(self._state.tables.series.keys))

    def _snapshot(self, sums: Sums, now_ns: int, started: float) -> Snapshot:
        series = self._state.tables.series
        files = self._files()
        rows = series.rows
        is_whole = len(rows) == len(series.keys)
        newest = exemplars.newest(self._exemplars(files))
        row_of = dict(zip(rows.tolist(), range(len(rows)), strict=True)) if newest else {}
        return Snapshot(
            time_unix_ns=now_ns,
            keys=tuple(key for key in series.keys if key is not None),
            created_unix_ns=np.array(series.created_unix_ns, np.int64)[rows],
            counters=sums.counters if is_whole else sums.counters[rows],
            buckets=sums.buckets if is_whole else sums.buckets[rows],
            first_octave=sums.first_octave,
            groups=dict(series.groups),
            processes=tuple(file.process for file in files if file.process is not None),
            ended=self._ended.left(self._exported(now_ns)),
            ended_gone=self._ended.gone,
            health=sums.health,
            usage=sums.usage,
            attach_results=sums.attach_results + self._state.refused + self._refusals.counts,
            measures=process_metrics.summed(
                sums.measured,
                (file.measures for file in files if file.process and file.process.is_alive),
            ),
            bad_segments=dict(self._state.bad),
            series_folded=sums.folded_rows,
            series_retired=self._retirement.count,
            collect_seconds=time.perf_counter() - started,
            exemplars={row_of[number]: found for number, found in newest.items()},
            own=self._self_metrics(),
            variances=sums.variances if is_whole else sums.variances[rows],
            variance_parts=Parts(*(p if is_whole else p[rows] for p in sums.variance_parts)),
            phase_variances=sums.phase_variances,
        )

    def _exemplars(self, files: Iterable[TrackedSegment]) -> Iterator[exemplars.OfSeries]:
        """Exemplars of these files, and of ended processes: no page may have shown these yet."""
        for number, left in self._left.items():
            yield from ((number, one) for one in left)
        for file in files:
            yield from file.exemplars

    def _self_metrics(self) -> SelfMetrics:
        open_files, most_files = self_metrics.open_files()
        return SelfMetrics(
            cpu_s=time.process_time(),
            memory_bytes=self_metrics.memory_bytes(),
            virtual_bytes=self_metrics.virtual_bytes(),
            start_unix_s=self._start_unix_s,
            open_files=open_files,
            most_files=most_files,
            passes=dict(self._passes),
            files_read=self._reading.files_read,
            files_removed=self._removed,
            files_parked=self._parked,
            files_discarded=self._reading.files_discarded,
            state_writes=dict(self._state_writes),
            limited=dict(self._budgets.limited.counts),
        )

    def _files(self) -> list[TrackedSegment]:
        return [
            file for directory in self._directories.values() for file in directory.tracked.values()
        ]
