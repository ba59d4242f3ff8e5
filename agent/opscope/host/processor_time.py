"""How long the threads of an observed process had a processor, and how long they waited for one.

Windows rarely contain the moments in which the kernel stops a thread, for its CPU quota or for
other work, though these are a part of operators' self time. The kernel counts all of them. The
agent reads its count, so that the standard errors of self times contain what no window has met.

Facts: Documentation/scheduler/sched-stats.rst of Linux: /proc/<pid>/task/<tid>/schedstat has the
time on a processor and the time in which the thread was ready to run and waited, both in
nanoseconds. Time without quota counts as waiting. Kernels without CONFIG_SCHED_INFO, and gVisor,
lack the file.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from opscope.host.pid_namespaces import Pids
from opscope.host.process_metrics import Keyed, MeasureKey, Measures
from opscope.segments import layout, variance
from opscope.segments.layout import U64
from opscope.segments.liveness import process_start
from opscope.segments.segment import Header, Measure
from opscope.segments.variance import F64, Variances

USED = "opscope.cpu.time"
WAITED = "opscope.cpu.wait"
# A process with more threads would make the agent's passes slow, so nothing is said of it.
_THREAD_LIMIT = 128
_LOOKUPS = 3
_KNOWN_LIMIT = 4096
# Of the CPU time: with so little waiting, what windows missed of it changes no error.
_NEGLIGIBLE = 0.003
# A process of less CPU time says little of how long it waits.
_ENOUGH_NS = 10**9
# A stop rarely lasts longer: it is the kernel's default period of quotas.
STOP_S = 0.1
_THREAD_BYTES = 250  # of Python objects


TICK_NS = 10**9 // os.sysconf("SC_CLK_TCK")
"""Of the times in /proc/<pid>/stat."""


def since_boot_ns() -> int:
    """The clock of a process's start in /proc/<pid>/stat."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


ServiceTime = tuple[str, str]
"""USED or WAITED, and a service."""


class ProcessorTime(NamedTuple):
    """Summed over threads, in ns."""

    used: int = 0
    waited: int = 0


def of_threads(pid: int, count: int = 0) -> dict[int, ProcessorTime] | None:
    """By thread id, for the threads that the process has now; None if unknown or too many.

    `count`: how many it has, if known. A process's only thread has the process's id."""
    try:
        threads = [str(pid)] if count == 1 else os.listdir(f"/proc/{pid}/task")
        if len(threads) > _THREAD_LIMIT:
            return None
        found = ((int(thread), _of_thread(f"/proc/{pid}/task/{thread}")) for thread in threads)
        return {thread: times for thread, times in found if times is not None}
    except (OSError, ValueError):
        return None


def _of_thread(path: str) -> ProcessorTime | None:
    """None if it has ended. Raises OSError or ValueError if the kernel does not count."""
    try:
        used, waited, _ = _contents(f"{path}/schedstat").split()
    except ProcessLookupError:
        return None
    except FileNotFoundError:
        if os.path.exists(path):
            raise
        return None
    return ProcessorTime(int(used), int(waited))


def _contents(path: str) -> bytes:
    """Of a file in /proc. Twice as fast as `open`, and each pass reads hundreds."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 4096)
    finally:
        os.close(fd)


class ProcessStat(NamedTuple):
    used_ns: int = 0
    """On a processor, of all threads that it ever had."""
    thread_count: int = 0
    """Of those that it has now."""


def of_process(pid: int) -> ProcessStat:
    """Zeros if they are unknown. Fields 14, 15 (ticks, usually of 10 ms) and 20 of
    /proc/<pid>/stat (proc(5))."""
    try:
        fields = _contents(f"/proc/{pid}/stat").rpartition(b")")[2].split()
        used_ns = (int(fields[11]) + int(fields[12])) * TICK_NS
        return ProcessStat(used_ns, int(fields[17]))
    except (OSError, ValueError, IndexError):
        return ProcessStat()


class MainThread(NamedTuple):
    """What the main thread of a process did since its start, in ns; zeros if unknown."""

    used: int = 0
    waited: int = 0
    slept: int = 0
    """The rest of the time: it waited for something else than a processor, or was stopped."""

    @classmethod
    def of(cls, now: ProcessorTime, start: int) -> MainThread:
        """`now`: its count, just read; `start`: the process's, field 22 of /proc/<pid>/stat."""
        age_ns = since_boot_ns() - start * TICK_NS
        return cls(*now, max(0, age_ns - now.used - now.waited))

    def since(self, earlier: MainThread) -> MainThread:
        """Times that have become shorter, by a reading beside a stop, have not grown."""
        return MainThread(*(max(0, a - b) for a, b in zip(self, earlier, strict=True)))


class KnownTimes:
    """The last sums of processes. One that calls exec, or attaches anew, writes another segment,
    and the kernel goes on counting."""

    def __init__(self) -> None:
        self._of: dict[tuple[int, int], ProcessorTime] = {}

    def of(self, pid: int, start: int) -> ProcessorTime:
        return self._of.get((pid, start), ProcessorTime())

    def note(self, pid: int, start: int, sums: ProcessorTime) -> None:
        self._of.pop((pid, start), None)
        self._of[pid, start] = sums
        if len(self._of) > _KNOWN_LIMIT:
            del self._of[next(iter(self._of))]


class ProcessorTimes:
    """The sums of one process over all threads that it had at any reading of one segment."""

    __slots__ = (
        "_alone",
        "_begun",
        "_count",
        "_ended",
        "_lacked_s2",
        "_lookups",
        "_noted",
        "_pid",
        "_rest",
        "_self_s",
        "_threads",
        "_unseen_s",
        "_used",
        "main",
    )

    def __init__(self) -> None:
        self._pid: int | None = None
        self._lookups = 0
        self._count = 0
        """Of the threads, at the last reading; 0: unknown."""
        self._alone: dict[int, ProcessorTime] | None = None
        """What the process's only thread had before that count; None: it was not read before."""
        self._threads: dict[int, ProcessorTime] = {}
        self._begun = self._ended = self._noted = ProcessorTime()
        self._unseen_s = self._lacked_s2 = self._self_s = 0.0
        self._used = 0
        self.main = MainThread()
        self._rest: ProcessorTime | None = None
        """The process has ended: how long threads as its own wait in how much time on a
        processor."""

    def read(self, header: Header, pids: Pids, known: KnownTimes) -> None:
        """Reads the counts of the segment's process, which lives."""
        if self._pid is None and self._lookups < _LOOKUPS:
            self._lookups += 1
            self._pid = _pid_of(header, pids)
            if self._pid is not None:
                self._begun = known.of(self._pid, header.process_start)
        if self._pid is not None:
            self._read(self._pid)
            self._read_main(self._pid, header.process_start)
            known.note(self._pid, header.process_start, self._counted)

    def _read(self, pid: int) -> None:
        # If the only thread has not run since before the last count, no thread has begun, and all
        # other times of the process are as they were. Most processes of a host are idle.
        alone = of_threads(pid, 1) if self._count == 1 else None
        if alone and alone == self._alone:
            return
        stat = of_process(pid)
        self._count = stat.thread_count
        self._alone = alone = alone if self._count == 1 else None
        self.add(alone or of_threads(pid, self._count))
        self._used = max(self._used, stat.used_ns)

    def _read_main(self, pid: int, start: int) -> None:
        now = self._threads.get(pid)
        if now is not None:
            self.main = MainThread.of(now, start)

    def add(self, threads: dict[int, ProcessorTime] | None) -> None:
        """Takes the counts of another reading; None: it failed, and the last ones stay."""
        if threads is None:
            return
        for thread, before in self._threads.items():
            now = threads.get(thread)
            if now is None or now.used < before.used or now.waited < before.waited:
                self._ended = _plus(self._ended, before)
        self._threads = threads

    @property
    def sums(self) -> ProcessorTime:
        found = self._ended
        for one in self._threads.values():
            found = _plus(found, one)
        return found

    def since_last(self) -> ProcessorTime:
        """What its threads have had since the last call."""
        sums, noted = self.sums, self._noted
        self._noted = sums
        return ProcessorTime(sums.used - noted.used, sums.waited - noted.waited)

    @property
    def _counted(self) -> ProcessorTime:
        """With the time of threads that began and ended between two readings, as far as known."""
        sums = self.sums
        return sums._replace(used=max(sums.used, self._used))

    @property
    def waited_little(self) -> bool:
        """Whether its threads waited so little for a processor that estimates need not tell."""
        sums, rest = self.sums, self._rest or ProcessorTime()
        return all(one.waited <= _NEGLIGIBLE * one.used for one in (sums, rest))

    def ends(self, usual: ProcessorTime) -> None:
        """The process has ended, some time after the last reading, or without one. In that time it
        waited as before; if little was read of it, as is `usual` for its service."""
        self._rest = usual if self.sums.used < _ENOUGH_NS else self.sums

    def lacked_s2(self, self_s: float, weight: float, part: float = 1.0) -> float:
        """The variance of the estimates from waiting that no window has met; once for each pass.

        `self_s`: as of `unseen_s`; `weight`: as of `unread_s2`; `part`: of the estimates, what
        rests on the waiting that windows have met (host/stops.py). It grows by what the square of
        the lacking has grown, and does not fall when a window meets a stop: between two passes it
        has then grown by at least the square of what the estimates lack of that time.
        """
        if self._rest is None:
            unseen = unseen_s(self_s, self.sums)
            self._lacked_s2 += part**2 * max(0.0, unseen**2 - self._unseen_s**2)
            self._unseen_s = unseen
        else:
            self._lacked_s2 += part**2 * unread_s2(self_s - self._self_s, weight, self._rest)
        self._self_s = self_s
        return self._lacked_s2

    def measures(self, service: str) -> Keyed:
        """Both times as metrics of the service, without those of the process's earlier segments;
        those that are 0 or unknown are left out."""
        sums, begun = self._counted, self._begun
        times = (USED, sums.used - begun.used), (WAITED, sums.waited - begun.waited)
        return tuple(
            ((name, (service, "")), Measure(name, "", layout.METRIC_COUNTER, ns))
            for name, ns in times
            if ns > 0
        )

    @property
    def is_over(self) -> bool:
        """Whether the process has ended, some time after the last reading."""
        return self._rest is not None

    @property
    def nbytes(self) -> int:
        """Approximate memory size, in bytes."""
        return _THREAD_BYTES * len(self._threads)


def by_service(measures: Measures, name: str) -> dict[tuple[str], float]:
    """USED or WAITED of each service, in seconds."""
    return {(service,): ns / 1e9 for (service, _), ns in measures.get(name, {}).items()}


def _pid_of(header: Header, pids: Pids) -> int | None:
    """The pid of the segment's process; None if it is not visible, or if the header lies."""
    pid = pids.pid_here(header.pid_namespace, header.pid, header.process_start)
    try:
        is_it = pid is not None and process_start(pid) == header.process_start
    except OSError:
        return None
    return pid if is_it else None


def _plus(a: ProcessorTime, b: ProcessorTime) -> ProcessorTime:
    return ProcessorTime(a.used + b.used, a.waited + b.waited)


class OnlyGrowing:
    """Keeps these times of services from decreasing: an agent that starts again does not know what
    ended threads of living processes had."""

    def __init__(self) -> None:
        self._last: dict[ServiceTime, int] | None = None

    def hold(
        self, measured: Counter[MeasureKey], held: Mapping[ServiceTime, int]
    ) -> dict[ServiceTime, int]:
        """`held` and what has been added since the last pass, which `measured` then has too. The
        first pass cannot tell what was added."""
        now = {
            (name, labels[0]): ns
            for (name, labels), ns in measured.items()
            if name in (USED, WAITED)
        }
        found = dict(held)
        for key, ns in now.items():
            before = held.get(key, 0)
            if self._last is None:
                found[key] = max(before, ns)
            else:
                found[key] = before + max(0, ns - self._last.get(key, 0))
        self._last = now
        for (name, service), ns in found.items():
            measured[name, (service, "")] = ns
        return found


def unseen_s(self_s: float, process: ProcessorTime) -> float:
    """Seconds of waiting that the estimated self times of a process lack. 0 if not certain.

    `self_s`: of all its operators whose times are estimates. They have at least as large a share of
    the waiting as of the CPU time. Self time beyond all CPU time is waiting that windows have met.
    """
    used_s, waited_s = process.used / 1e9, process.waited / 1e9
    if used_s <= 0:
        return 0.0
    share = min(1.0, self_s / used_s)
    return max(0.0, share * waited_s - max(0.0, self_s - used_s))


def unread_s2(self_s: float, weight: float, usual: ProcessorTime) -> float:
    """The variance of estimated self times from waiting in a time for which no count was read.

    `self_s`: in that time; `weight`: by how much windows extrapolate, on average; `usual`: how long
    such threads wait in how much time on a processor. A stop is rarely in a window, and then
    extrapolated, so processes of one stop or two have large errors of their own.
    """
    if usual.used <= 0 or self_s <= 0.0:
        return 0.0
    lacking = self_s * usual.waited / usual.used
    return lacking * (lacking + (max(1.0, weight) - 1.0) * min(lacking, STOP_S))


def mean_weight(samples: U64, weights: U64) -> float:
    """By how much windows extrapolate, on average; `weights`: in units of 1 / WEIGHT_ONE."""
    # As doubles, because sums of what a damaged file states may exceed integers.
    weight = float(weights.sum(dtype=float)) / layout.WEIGHT_ONE
    return weight / max(1.0, float(samples.sum(dtype=float)))


def with_unseen(
    off: Variances,
    keys: U64,
    is_estimate: np.ndarray,
    total_s: F64,
    self_s: F64,
    weight: float,
    process: ProcessorTimes,
    part: float = 1.0,
) -> Variances:
    """The variances with waiting that no window has met: any operator may lack its share of it. The
    self time of an outer range has too much then: its total time has all waiting, and the estimates
    for the ranges inside, which are taken off, lack theirs. Sums by phase have both.

    `keys`: (n,) of the rows; `is_estimate`: (n,) whether the row's times are estimates by windows;
    `total_s`, `self_s`: (n,) its times; `weight`: as of `unread_s2`; `process`: read for this pass;
    `part`: of the times, what rests on the waiting that windows have met.
    """
    if process.waited_little:
        return off
    estimated = np.where(is_estimate, self_s, 0.0)
    all_s = float(estimated.sum())
    lacked_s2 = process.lacked_s2(all_s, weight, part)
    if lacked_s2 == 0.0 or all_s == 0.0:
        return off
    lacked_share = lacked_s2**0.5 / all_s
    lacking = estimated * lacked_share
    # Outer ranges whose self time depends on estimates; those inside them may be exact in part.
    is_outer = ~is_estimate & (off.rows[:, variance.SELF_S2] > 0)
    inside = np.where(is_outer, np.minimum(total_s - self_s, all_s), 0.0)
    rows, phases = off.rows.copy(), off.phases.copy()
    rows[:, variance.SELF_S2] += lacking**2 + (inside * lacked_share) ** 2
    of_phases = np.bincount(
        (keys >> np.uint64(layout.KEY_PHASE_SHIFT) & np.uint64(layout.KEY_PHASE_MASK)).astype(
            np.intp
        ),
        lacking,
        minlength=len(phases),
    )
    phases[:, variance.SELF_S2] += of_phases[: len(phases)] ** 2
    return Variances(rows, phases, off.owed)
