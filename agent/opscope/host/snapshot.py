"""The model that exporters get: the result of one pass over a host's segments, at one moment.

Arrays have one row for each series; exporters need no knowledge of segments, ticks or weights.
host.py builds snapshots. A snapshot is immutable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from opscope import __version__
from opscope.bridges import catalog
from opscope.host import build
from opscope.host.health import Health
from opscope.host.process_metrics import Measures, of_compilation, of_models
from opscope.host.processor_time import USED, WAITED, by_service
from opscope.host.self_metrics import SelfMetrics
from opscope.processes.cgroups import Container
from opscope.segments import bounds, layout, variance
from opscope.segments.dictionary import Labels
from opscope.segments.layout import OTHER_OP, U64
from opscope.segments.variance import F64, Parts, PhaseVariances

# Prefixes of operator names that are frameworks, in addition to those of bridges.
_OWN = {"core": "opscope", "serving": "opscope"}

# Largest number of versions that an agent reports.
_VERSIONS_LIMIT = 256
# A node of Kubernetes has some hundred pods.
_CONTAINERS_LIMIT = 512

# The label of a series made by retirement.
RETIRED = "retired"


class SeriesKey(NamedTuple):
    """The identity of a series."""

    service: str
    op: str
    phase: str
    labels: Labels
    process: int | None = None
    """The pid, if the snapshot is by process."""
    group: str = ""
    """The group of processes within the service (Snapshot.groups); "": processes without one."""

    @property
    def framework(self) -> str:
        """The operator's framework, by the bridges' prefixes, or else the part before `::`."""
        if self.op == OTHER_OP:
            return OTHER_OP
        if framework := catalog.framework_of(self.op):
            return framework
        namespace, colons, _ = self.op.partition("::")
        return _OWN.get(namespace, namespace) if colons else "user"

    @property
    def is_retired(self) -> bool:
        """Whether it is a sum of earlier series (host/retirement.py), which contains no new
        events."""
        return self.op == OTHER_OP and any(name == RETIRED for name, _ in self.labels)


# The series that sums everything beyond the limit of series.
OTHER = SeriesKey(OTHER_OP, OTHER_OP, "other", ())

# Columns of Snapshot.counters. Times in ns, weights in units of 2^-16. Integers keep sums
# independent of their order, so rounding never makes a counter decrease.
SAMPLES, WEIGHT, TOTAL_NS, SELF_NS, SELF_UNKNOWN, ERROR_WEIGHT, BYTES = range(7)
COUNTER_COLUMNS = 7


class Exemplar(NamedTuple):
    """One notable range, and the trace in which it ran."""

    duration_s: float
    time_unix_ns: int
    """When it ended."""
    trace_id: str
    """32 hexadecimal digits."""
    span_id: str
    """16 hexadecimal digits."""


class Process(NamedTuple):
    """One process with a segment on this host, as of the pass."""

    pid: int
    uid: int
    process_start: int
    """Field 22 of /proc/<pid>/stat, in clock ticks since boot."""
    is_alive: bool
    created_unix_ns: int
    """When counting began."""
    sampling_prob: float
    window_ns: int
    """0: by probability."""
    period_ns: int
    health: Health
    notes: Mapping[str, str]
    label_sets: tuple[Labels, ...]
    is_disabled: bool = False
    """Whether `opscope set` turned observation off."""
    overhead_budget: float = 0.0
    """Largest share of the process's CPU time that recording may take; 0: no limit."""
    recent_overhead: float = 0.0
    """Share of CPU time that recording took over the last seconds measured."""
    pid_namespace: int = 0
    """The pid namespace of `pid`, as the inode of its /proc/<pid>/ns/pid; 0: unknown."""
    container: Container = Container()
    group: str = ""
    """As that of its series' keys."""
    usage: tuple[tuple[str, str], ...] = ()
    """As in Snapshot.usage: the APIs it used, each with the service."""

    @property
    def program(self) -> str:
        return self.notes.get("program", "?")

    @property
    def service(self) -> str:
        return self.notes.get("service.name") or self.notes.get("program") or "unknown"

    @property
    def is_exact(self) -> bool:
        """Whether every range is recorded with the current settings, so that counts are exact."""
        return not self.window_ns and self.sampling_prob == 1

    @property
    def bridges(self) -> dict[str, str]:
        """For each bridge `attached`, or the reason why it is not."""
        prefix = "bridge."
        return {
            key.removeprefix(prefix): value
            for key, value in self.notes.items()
            if key.startswith(prefix)
        }


@dataclass(frozen=True)
class Snapshot:
    time_unix_ns: int
    keys: tuple[SeriesKey, ...]
    created_unix_ns: NDArray[np.int64]
    """(n,) the time when each series began to count, in Unix ns."""
    counters: U64
    """(n, COUNTER_COLUMNS)."""
    buckets: U64
    """(n, octaves, 8) weights of ranges by duration: [:, o, k] covers 2^(e + k/8) s up to the next
    bucket, where e = first_octave - 40 + o. It is OpenTelemetry's exponential histogram of scale 3
    with index 8 e + k; see `bucket_offset`."""
    first_octave: int
    groups: Mapping[str, Labels] = field(default_factory=dict)
    """The attributes of each group of processes (host/identity.py)."""
    processes: tuple[Process, ...] = ()
    ended: tuple[Process, ...] = ()
    """Some of those that are not in `processes` any more (host/ended_processes.py)."""
    ended_gone: int = 0
    health: Health = field(default_factory=Health)
    usage: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """The number of processes, live and ended, that used each API, by API and service."""
    attach_results: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """The number of processes, by (bridge or "process", result)."""
    measures: Measures = field(default_factory=dict)
    """Metrics that processes count themselves: by metric, then by its labels."""
    bad_segments: Mapping[tuple[str], int] = field(default_factory=dict)
    """Unreadable files, by SegmentError's reason; each file counts once."""
    series_folded: int = 0
    """Rows that count under a series "other" because of the limit: of live processes, and of those
    that ended since the last retirement."""
    series_retired: int = 0
    """Series that the agent has merged into "other" (host/retirement.py)."""
    series_filtered: Mapping[tuple[str], int] = field(default_factory=dict)
    """By exporters' filter (server/series_filter.py), the number of series that it removes."""
    collect_seconds: float = 0.0
    exports: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """The number of earlier exports, by exporter and result (server/push.py)."""
    exemplars: Mapping[int, tuple[Exemplar, ...]] = field(default_factory=dict)
    """Exemplars: single slow ranges of a series, by its row."""
    own: SelfMetrics = field(default_factory=SelfMetrics)
    """The agent's own cost and work."""
    variances: F64 = field(default_factory=lambda: np.zeros((0, variance.COLUMNS)))
    """(n, variance.COLUMNS) variances of calls and self times; (0, ...) if all are exact."""
    phase_variances: PhaseVariances = field(default_factory=dict)
    """The same for all operators of a service and phase together, whose errors correlate."""
    variance_parts: Parts | None = None
    """Of `variances`, which are the largest so far; None: unknown."""

    def __post_init__(self) -> None:
        if len(self.variances) < len(self.keys):
            object.__setattr__(self, "variances", variance.rows_of(len(self.keys), self.variances))

    @property
    def samples(self) -> U64:
        """(n,) ranges recorded."""
        return self.counters[:, SAMPLES]

    @property
    def calls(self) -> NDArray[np.float64]:
        """(n,) number of ranges, estimated from the recorded ones; exact at probability 1."""
        return self.counters[:, WEIGHT] / layout.WEIGHT_ONE

    @property
    def total_s(self) -> NDArray[np.float64]:
        """(n,) seconds between start and end of ranges, summed."""
        return self.counters[:, TOTAL_NS] / 1e9

    @property
    def self_s(self) -> NDArray[np.float64]:
        """(n,) seconds outside nested ranges; NaN if any part of it is unknown."""
        known = self.counters[:, SELF_UNKNOWN] == 0
        return np.where(known, self.counters[:, SELF_NS] / 1e9, np.nan)

    @property
    def errors(self) -> NDArray[np.float64]:
        """(n,) failed ranges, estimated."""
        return self.counters[:, ERROR_WEIGHT] / layout.WEIGHT_ONE

    @property
    def bytes(self) -> U64:
        """(n,) allocated bytes, as far as known, estimated."""
        return self.counters[:, BYTES]

    @property
    def known_bytes(self) -> NDArray[np.float64]:
        """(n,) allocated bytes; NaN if none are known."""
        return np.where(self.bytes > 0, self.bytes.astype(np.float64), np.nan)

    @property
    def calls_variance(self) -> F64:
        """(n,) variance of `calls`, its standard error squared; 0 if every range was recorded."""
        return self.variances[:, variance.CALLS]

    @property
    def self_variance(self) -> F64:
        """(n,) variance of `self_s` in seconds squared; NaN if unknown."""
        known = self.counters[:, SELF_UNKNOWN] == 0
        return np.where(known, self.variances[:, variance.SELF_S2], np.nan)

    @property
    def inexact_calls_variance(self) -> F64:
        """(n,) `calls_variance`; NaN in place of 0."""
        return np.where(self.calls_variance > 0, self.calls_variance, np.nan)

    @property
    def inexact_self_variance(self) -> F64:
        """(n,) `self_variance`; NaN in place of 0."""
        return np.where(self.self_variance > 0, self.self_variance, np.nan)

    @property
    def memory_allocated(self) -> Mapping[tuple[str, str], int]:
        """Bytes allocated so far, by service and allocator; includes ended processes."""
        return self.measures.get("opscope.memory.allocated", {})

    @property
    def memory_live(self) -> Mapping[tuple[str, str], int]:
        """Bytes allocated and not yet freed, by service and allocator."""
        return self.measures.get("opscope.memory.live", {})

    @property
    def memory_peak(self) -> Mapping[tuple[str, str], int]:
        """The largest number of live bytes in any live process, by service and allocator."""
        return self.measures.get("opscope.memory.peak", {})

    @property
    def cpu_time_s(self) -> Mapping[tuple[str], float]:
        """Seconds that threads had a processor, by service; includes ended processes."""
        return by_service(self.measures, USED)

    @property
    def cpu_wait_s(self) -> Mapping[tuple[str], float]:
        """Seconds that threads waited for a processor, in the same way."""
        return by_service(self.measures, WAITED)

    @property
    def served(self) -> SimpleNamespace:
        """The metrics of served models, by their names."""
        return of_models(self.measures)

    @property
    def compiled(self) -> SimpleNamespace:
        """What `torch.compile` and `jax.jit` did."""
        return of_compilation(self.measures)

    @property
    def process_count(self) -> int:
        """Live processes; one that replaced itself by exec has two segments and counts once."""
        return len({(p.pid, p.process_start, p.uid) for p in self.processes if p.is_alive})

    @property
    def overhead_ratio(self) -> Mapping[tuple[str], float]:
        """Recent share of CPU time that recording took, by service: the maximum over processes."""
        return self._by_service(max, lambda process: process.recent_overhead)

    @property
    def overhead_budget(self) -> Mapping[tuple[str], float]:
        """Share of CPU time that recording may take, by service: the minimum over processes."""
        return self._by_service(min, lambda process: process.overhead_budget or None)

    def _by_service(
        self,
        chosen: Callable[[float, float], float],
        value_of: Callable[[Process], float | None],
    ) -> dict[tuple[str], float]:
        found: dict[tuple[str], float] = {}
        for process in self.processes:
            value = value_of(process)
            if process.is_alive and value is not None:
                known = found.get((process.service,), value)
                found[process.service,] = chosen(known, value)
        return found

    @property
    def build_info(self) -> Mapping[tuple[str, str, str], int]:
        return {(__version__, build.revision(), build.python_version()): 1}

    @property
    def service_info(self) -> Mapping[tuple[str, str], int]:
        """1 for each service and running version of it (its `service.version`)."""
        found = {
            (process.service, process.notes["service.version"])
            for process in self.processes
            if process.is_alive and process.notes.get("service.version")
        }
        return dict.fromkeys(sorted(found)[:_VERSIONS_LIMIT], 1)

    @property
    def resource_info(self) -> Mapping[tuple[str, str, Labels], int]:
        """1 for each service and group of its processes with series, with the attributes."""
        found = {(key.service, key.group) for key in self.keys if key.group}
        return {(service, group, self.groups.get(group, ())): 1 for service, group in sorted(found)}

    @property
    def container_info(self) -> Mapping[tuple[str, str, str, str], int]:
        """1 for each service, group, container id and pod uid of live processes."""
        found = {
            (process.service, process.group, one.container_id, one.pod_uid)
            for process in self.processes
            if process.is_alive and any(one := process.container)
        }
        return dict.fromkeys(sorted(found)[:_CONTAINERS_LIMIT], 1)

    @property
    def framework_info(self) -> Mapping[tuple[str, str, str, str], int]:
        """1 for each service, framework, framework version and device type in use now."""
        found = {
            (
                process.service,
                framework,
                process.notes[framework],
                process.notes.get(f"{framework}.device_type", "cpu"),
            )
            for process in self.processes
            if process.is_alive
            for framework in ("python", "opscope", *process.bridges)
            if process.notes.get(framework)
        }
        # Sorted, so that the same ones remain beyond the limit in each pass.
        return dict.fromkeys(sorted(found)[:_VERSIONS_LIMIT], 1)

    @property
    def bucket_offset(self) -> int:
        """OpenTelemetry's index of the first bucket, at scale 3."""
        return (self.first_octave - layout.SECOND_LOG2) * layout.BUCKETS_PER_OCTAVE

    def quantile(self, p: float) -> NDArray[np.float64]:
        """(n,) the duration in seconds below which a share `p` of ranges lies, within 4.5 %.

        Returns the geometric middle of the bucket that holds the quantile; the error is at most a
        factor of 2^(1/16). NaN for a series without ranges.
        """
        if self.buckets.size == 0:
            return np.full(len(self.keys), np.nan)
        flat = self.buckets.reshape(len(self.keys), -1)
        upto = np.cumsum(flat, axis=1, dtype=np.float64)
        count = upto[:, -1]
        # If p * count is rounded up, it must not skip the bucket that ends exactly there.
        wanted = np.maximum(p * count * (1 - 1e-12), np.minimum(count, 1))[:, None]
        index = np.argmax(upto >= wanted, axis=1)
        middle = 2.0 ** ((self.bucket_offset + index + 0.5) / layout.BUCKETS_PER_OCTAVE)
        return np.where(count > 0, middle, np.nan)

    def grouped(self, by: Callable[[SeriesKey], SeriesKey]) -> Snapshot:
        """The snapshot with series summed that `by` maps to the same key."""
        index: dict[SeriesKey, int] = {}
        group = np.array([index.setdefault(by(key), len(index)) for key in self.keys], np.intp)
        buckets, parts = bounds.sum_by(group, self.buckets, len(index)), self.variance_parts
        created = np.full(len(index), np.iinfo(np.int64).max)
        np.minimum.at(created, group, self.created_unix_ns)
        return replace(
            self,
            keys=tuple(index),
            created_unix_ns=created,
            counters=bounds.sum_by(group, self.counters, len(index)),
            buckets=buckets,
            exemplars={},
            variances=variance.sum_by(group, self.variances, len(index)),
            variance_parts=parts.summed(group, len(index)) if parts else None,
        )

    def since(self, earlier: Snapshot) -> Snapshot:
        """The increase since an earlier snapshot of the same host. Series may have been added or
        restarted since; none may have been retired."""
        now, then = self._same_series(earlier)
        # Of a process that changed its service, the old series lost what the new ones gained.
        counters = self.counters.copy()
        counters[now] -= np.minimum(counters[now], earlier.counters[then])
        # An overwritten file may have had ranges in octaves that no process has now.
        held = earlier.buckets_within(self.first_octave, self.buckets.shape[1])
        buckets = self.buckets.copy()
        buckets[now] -= np.minimum(buckets[now], held[then])
        parts = self.variance_parts or Parts.without_owed(self.variances)
        before = earlier.variance_parts or Parts.without_owed(earlier.variances)
        parts = parts.since(before, now, then)
        return replace(
            self,
            counters=counters,
            buckets=buckets,
            variances=parts.settled + parts.owed,
            variance_parts=parts,
            phase_variances=variance.since(self.phase_variances, earlier.phase_variances),
        )

    def buckets_within(self, first_octave: int, width: int) -> U64:
        """(n, width, 8) its buckets in `width` octaves from `first_octave` on, without others."""
        found = np.zeros((len(self.keys), width, layout.BUCKETS_PER_OCTAVE), np.uint64)
        at = self.first_octave - first_octave
        begin, end = max(at, 0), min(at + self.buckets.shape[1], width)
        if begin < end:
            found[:, begin:end] = self.buckets[:, begin - at : end - at]
        return found

    def _same_series(self, earlier: Snapshot) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The rows here and in `earlier` of series with equal key and start."""
        now = np.arange(len(earlier.keys))
        if self.keys[: len(now)] != earlier.keys:
            rows = {key: row for row, key in enumerate(self.keys)}
            now = np.array([rows.get(key, -1) for key in earlier.keys], np.intp)
        is_same = now >= 0
        is_same[is_same] = (
            self.created_unix_ns[now[is_same]] <= earlier.created_unix_ns[np.flatnonzero(is_same)]
        )
        return now[is_same], np.flatnonzero(is_same)
