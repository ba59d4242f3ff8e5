"""All segments of a host, read again and again and summed up: `Host(...).collect() -> Snapshot`.

Each pass reads the segments of live processes anew. Those of dead ones are read a last time, folded
into the sums of the dead, and (where this is the host's agent) removed; `sweep()` does that alone,
between passes, where processes come and go by the hundred. In this order: fold, save the state,
remove. So an agent that is killed and started again goes on where it was (agent/state.py).

How the files of one directory are read is in place.py, what one says in tracked.py.
"""

from __future__ import annotations

import errno
import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import numpy as np

from opscope.agent import directories, exemplars, liveness, measures, own_cost, reasons
from opscope.agent.layout import U64
from opscope.agent.own_cost import OwnCost
from opscope.agent.place import Found, Place, Reading
from opscope.agent.reasons import Reasons
from opscope.agent.segment_file import SegmentError
from opscope.agent.snapshot import SELF_NS, Exemplar, Snapshot
from opscope.agent.state import State, StateError, decode, encode
from opscope.agent.state_file import StateFile
from opscope.agent.totals import Contribution, Sums
from opscope.agent.tracked import Tracked
from opscope.attachment import ledger

_DIRECTORY_LIMIT = 1024
_REASON_LIMIT = 4096


class Host:
    """The segments in some directories, summed up over passes.

    `patterns`: globs of directories. `consume`: fold the segments of dead processes and remove
    their files; only one reader of a directory may. `state`: where sums are kept over restarts;
    None: nowhere. `pids`: only the segments of these processes. `by_process`: each process has
    series of its own. Not for several threads at a time.

    Raises AgentError where the state is another agent's, or cannot be kept there.
    """

    def __init__(
        self,
        patterns: Sequence[str],
        *,
        consume: bool,
        max_series: int = 2000,
        pids: Collection[int] | None = None,
        by_process: bool = False,
        state: StateFile | None = None,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._patterns = tuple(patterns)
        self._consume = consume
        self._pids = pids
        self._clock_ns = clock_ns
        here = liveness.here()
        self._file = state
        self.resumed = ""
        """What became of the state of an earlier agent, for people."""
        self._state = self._resume(here.boot_id, max_series)
        self._reading = Reading(
            self._state.tables, self._state.bad, here, consume, by_process, pids
        )
        self._places: dict[str, Place] = {}
        self._reasons = Reasons(self._state.tables.results)
        self._passes: Counter[tuple[str]] = Counter()
        self._removed = 0
        self._folds = 0
        self._left: dict[int, tuple[Exemplar, ...]] = {}
        """The newest exemplars of processes that ended, by series."""
        self._saved: object = None
        self._state_writes: Counter[tuple[str]] = Counter()

    def _resume(self, boot_id: bytes, max_series: int) -> State:
        fresh = State.none(boot_id, max_series)
        if self._file is None:
            return fresh
        self._file.claim()
        try:
            raw = self._file.load()
            if raw is None:
                return fresh
            state = decode(raw)
            if state.boot_id != boot_id:
                raise StateError("it is of another boot")
            if state.tables.series.limit != max_series:
                raise StateError(f"it is of at most {state.tables.series.limit} series")
        except StateError as error:
            fresh.tables.series.earliest_unix_ns = self._clock_ns()
            self.resumed = f"{self._file.path}: {error}; counters start anew"
            return fresh
        self.resumed = f"{self._file.path}: {len(state.tables.series.keys):,} series go on"
        return state

    def collect(self) -> Snapshot:
        """One pass. Raises nothing that a file could cause."""
        started = time.perf_counter()
        now_ns = self._clock_ns()
        self._reading.files_read = 0
        self._passes["pass",] += 1
        paths = directories.find(self._patterns)[:_DIRECTORY_LIMIT]
        for path in paths:
            if path not in self._places:
                self._places[path] = Place(path, self._reading)
        for path, place in [*self._places.items()]:
            found = place.read(self._taken(path), now_ns)
            self._fold(place, found)
            if path not in paths and not place.tracked:
                del self._places[path]
        self._read_ledgers(now_ns)
        sums = self._sums()
        self._hold_self_time(sums.counters)
        self._save()
        self._remove()
        return self._snapshot(sums, now_ns, started)

    def sweep(self) -> int:
        """Takes in and removes what processes left that are gone, where many have come since the
        last look; tells of how many. Costs next to nothing where none have."""
        if not self._consume:
            return 0
        self._passes["sweep",] += 1
        now_ns = self._clock_ns()
        over = 0
        for path, place in self._places.items():
            found = place.sweep(self._taken(path), now_ns)
            over += len(found.over)
            self._fold(place, found)
        if over:
            self._save()
            self._remove()
        return over

    def close(self) -> None:
        """Gives up the claim on the state; what there is of it is kept."""
        if self._file is not None:
            self._file.close()

    # ---- what is over ------------------------------------------------------------------------

    def _taken(self, path: str) -> set[str]:
        return self._state.taken.get(path, set())

    def _fold(self, place: Place, found: Found) -> None:
        """Counts what is over among the dead, and notes which files are to be removed."""
        gone = [*found.vanished, *map(place.forget, found.over)]
        files = [file for file in gone if file is not None]
        self._add(file.contribution for file in files)
        if any(file.exemplars for file in files):
            self._left = exemplars.newest(self._exemplars(files))
        if self._consume and (found.over or found.remains):
            self._state.taken.setdefault(place.path, set()).update(found.over, found.remains)

    def _add(self, contributions: Iterable[Contribution | None]) -> None:
        known = [one for one in contributions if one is not None]
        if known:
            count = len(self._state.tables.series.keys)
            self._state.dead = self._state.dead.plus(known, count)
            self._folds += 1

    def _read_ledgers(self, now_ns: int) -> None:
        if self._pids is not None:
            return
        state = self._state
        places = directories.find_ledgers(self._patterns)[:_DIRECTORY_LIMIT]
        entries = ledger.read_all(places)[:_REASON_LIMIT]
        taken = {os.path.join(path, name) for path in places for name in self._taken(path)}
        gone = self._reasons.take(entries, taken)
        state.refused.update(("process", code) for code in gone)
        if not self._consume:
            return
        for entry in reasons.over(entries, self._reading.here, now_ns / 1e9):
            path, name = os.path.split(entry.path)
            code = self._reasons.finish(entry.path)
            if code is not None:
                state.refused["process", code] += 1
            state.taken.setdefault(path, set()).add(name)

    def _save(self) -> None:
        """Saves the state if anything in it has changed."""
        state = self._state
        if self._file is None:
            return
        now = (
            state.tables.size,
            self._folds,
            state.self_ns.tobytes(),
            state.bad.total(),
            state.refused.total(),
            {path: len(names) for path, names in state.taken.items()},
        )
        if now == self._saved:
            return
        try:
            self._file.save(encode(state))
            self._saved = now
            self._state_writes["written",] += 1
        except OSError:
            # What is removed now is in no state: an earlier one would count backwards.
            self._file.spoil()
            self._saved = None
            self._state_writes["failed",] += 1

    def _remove(self) -> None:
        """Removes the files that are taken in. One that cannot be is tried again the next time."""
        for path, names in [*self._state.taken.items()]:
            try:
                with directories.opened(path) as fd:
                    for name in [*names]:
                        self._remove_file(name, fd, names)
            except FileNotFoundError:
                names.clear()
            except (OSError, SegmentError):
                continue
            if not names:
                del self._state.taken[path]

    def _remove_file(self, name: str, fd: int, names: set[str]) -> None:
        try:
            os.unlink(name, dir_fd=fd)
            self._removed += 1
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.EISDIR):
                return
        names.discard(name)

    # ---- the sums ----------------------------------------------------------------------------

    def _sums(self) -> Sums:
        live = [file.contribution for file in self._files()]
        count = len(self._state.tables.series.keys)
        return self._state.dead.plus([one for one in live if one is not None], count)

    def _hold_self_time(self, counters: U64) -> None:
        """Self time is an estimate that may fall a little; a counter must not."""
        held = self._state.self_ns
        n = len(held)
        counters[:n, SELF_NS] = np.maximum(counters[:n, SELF_NS], held)
        self._state.self_ns = counters[:, SELF_NS].copy()

    def _snapshot(self, sums: Sums, now_ns: int, started: float) -> Snapshot:
        tables = self._state.tables
        files = self._files()
        return Snapshot(
            time_unix_ns=now_ns,
            keys=tuple(tables.series.keys),
            created_unix_ns=np.array(tables.series.created_unix_ns, np.int64),
            counters=sums.counters,
            buckets=sums.buckets,
            first_octave=sums.first_octave,
            processes=tuple(file.process for file in files if file.process is not None),
            health=sums.health,
            usage=sums.usage,
            attach_results=sums.attach_results + self._state.refused + self._reasons.counts,
            measures=measures.summed(
                sums.measured,
                (file.measures for file in files if file.process and file.process.is_alive),
            ),
            bad_segments=dict(self._state.bad),
            series_folded=sums.folded_rows,
            collect_seconds=time.perf_counter() - started,
            exemplars=exemplars.newest(self._exemplars(files)),
            own=self._own_cost(),
        )

    def _exemplars(self, files: Iterable[Tracked]) -> Iterator[exemplars.OfSeries]:
        """What these have, and what ended processes left, which no page may have shown."""
        for number, left in self._left.items():
            yield from ((number, one) for one in left)
        for file in files:
            yield from file.exemplars

    def _own_cost(self) -> OwnCost:
        return OwnCost(
            cpu_s=time.process_time(),
            memory_bytes=own_cost.memory_bytes(),
            passes=dict(self._passes),
            files_read=self._reading.files_read,
            files_removed=self._removed,
            state_writes=dict(self._state_writes),
        )

    def _files(self) -> list[Tracked]:
        return [file for place in self._places.values() for file in place.tracked.values()]
