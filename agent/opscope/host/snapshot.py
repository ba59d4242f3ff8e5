"""What an exporter gets: everything one pass over a host's segments found, as of one moment.

Arrays, one row for each series; no exporter need know of segments, ticks or weights. How it is put
together is in host.py. A snapshot does not change once it is made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from opscope.agent import layout
from opscope.agent.dictionary import Labels
from opscope.agent.layout import OTHER_OP, U64
from opscope.agent.measures import Measures
from opscope.agent.own_cost import OwnCost

_FRAMEWORKS = {
    "aten": "torch",
    "torch": "torch",
    "torchvision": "torch",
    "prim": "torch",
    "quantized": "torch",
    "c10d": "torch",
    "autograd": "torch",
    "profiler": "torch",
    "_c10d_functional": "torch",
    "numpy": "numpy",
    "core": "opscope",
}

# Notes that say which version of it a process has, and of how many at most an agent tells.
_VERSION_NOTES = ("python", "numpy", "torch", "opscope")
_VERSIONS_LIMIT = 256

# Ranges of PyTorch's own that no namespace stands before: backward nodes, optimizers, loaders,
# collectives.
_TORCH_NAME = re.compile(
    r"\w+Backward\d*$|Optimizer\.\w+#|enumerate\(DataLoader\)#|(nccl|gloo|mpi|ucc|xccl):(?!:)"
    r"|DistributedDataParallel\.|Torch-Compiled Region"
)


class SeriesKey(NamedTuple):
    """What tells one series from another."""

    service: str
    op: str
    phase: str
    labels: Labels
    process: int | None = None
    """The pid, where the snapshot is by process."""

    @property
    def framework(self) -> str:
        """Whose operator it is, by the name's part before `::`."""
        if self.op == OTHER_OP:
            return OTHER_OP
        if _TORCH_NAME.match(self.op):
            return "torch"
        namespace, colons, _ = self.op.partition("::")
        return _FRAMEWORKS.get(namespace, namespace) if colons else "user"


# What is beyond the limit of series is summed up in this one.
OTHER = SeriesKey(OTHER_OP, OTHER_OP, "other", ())

# Columns of Snapshot.counters. Times in ns, weights in units of 2^-16: integers, so that a sum
# does not depend on its order and a counter never steps back by a rounding.
SAMPLES, WEIGHT, TOTAL_NS, SELF_NS, SELF_UNKNOWN, ERROR_WEIGHT, BYTES = range(7)
COUNTER_COLUMNS = 7


class Health(NamedTuple):
    """What the recorders say about themselves, summed over processes alive and dead."""

    samples: int = 0
    dropped: int = 0
    folded: int = 0
    callback_errors: int = 0
    overhead_ns: int = 0
    """Samples times what one of their operator costs, as measured in each process."""
    adaptations: int = 0
    """Times that a recorder changed its sampling to keep to its overhead budget."""

    @property
    def overhead_s(self) -> float:
        return self.overhead_ns / 1e9

    def plus(self, other: Health) -> Health:
        return Health(*(a + b for a, b in zip(self, other, strict=True)))


class Exemplar(NamedTuple):
    """One range that is worth a look, and the trace in which it ran."""

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
    """Turned off by `opscope set`."""
    overhead_budget: float = 0.0
    """Share of the process's CPU time that recording may take; 0: any."""
    overhead_of_late: float = 0.0
    """Share that it took over the last seconds that were measured."""
    pid_namespace: int = 0
    """The one that `pid` is of, by the inode of its /proc/<pid>/ns/pid; 0: not known."""

    @property
    def program(self) -> str:
        return self.notes.get("program", "?")

    @property
    def service(self) -> str:
        return self.notes.get("service.name") or self.notes.get("program") or "unknown"

    @property
    def is_exact(self) -> bool:
        """Whether every range is recorded as it is now, so that its counts are no estimates."""
        return not self.window_ns and self.sampling_prob == 1

    @property
    def bridges(self) -> dict[str, str]:
        """For each bridge `attached`, or why it is not."""
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
    """(n,) when each series began to count."""
    counters: U64
    """(n, COUNTER_COLUMNS)."""
    buckets: U64
    """(n, octaves, 8) weights of ranges by duration: [:, o, k] covers 2^(e + k/8) s to the next,
    where e = first_octave - 40 + o. It is OpenTelemetry's exponential histogram of scale 3 with
    index 8 e + k; see `bucket_offset`."""
    first_octave: int
    processes: tuple[Process, ...] = ()
    health: Health = field(default_factory=Health)
    usage: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """How many processes, alive and dead, used each API, by API and service."""
    attach_results: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """How many processes, by (bridge or "process", result)."""
    measures: Measures = field(default_factory=dict)
    """What processes count themselves: by metric, then by its labels."""
    bad_segments: Mapping[tuple[str], int] = field(default_factory=dict)
    """Files that could not be read, by SegmentError's reason; each counted once."""
    series_folded: int = 0
    """Rows of processes that are in the series "other" for want of series."""
    collect_seconds: float = 0.0
    exports: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """How many exports the agent made before, by exporter and result (agent/push.py)."""
    exemplars: Mapping[int, tuple[Exemplar, ...]] = field(default_factory=dict)
    """Single slow ranges of a series, by its row."""
    own: OwnCost = field(default_factory=OwnCost)
    """What the agent itself costs and does."""

    @property
    def samples(self) -> U64:
        """(n,) ranges recorded."""
        return self.counters[:, SAMPLES]

    @property
    def calls(self) -> NDArray[np.float64]:
        """(n,) ranges there were, estimated from the recorded ones; exact at probability 1."""
        return self.counters[:, WEIGHT] / layout.WEIGHT_ONE

    @property
    def total_s(self) -> NDArray[np.float64]:
        """(n,) seconds between start and end, summed."""
        return self.counters[:, TOTAL_NS] / 1e9

    @property
    def self_s(self) -> NDArray[np.float64]:
        """(n,) seconds not spent in ranges within; NaN where any part of it is unknown."""
        known = self.counters[:, SELF_UNKNOWN] == 0
        return np.where(known, self.counters[:, SELF_NS] / 1e9, np.nan)

    @property
    def errors(self) -> NDArray[np.float64]:
        """(n,) ranges that failed, estimated."""
        return self.counters[:, ERROR_WEIGHT] / layout.WEIGHT_ONE

    @property
    def bytes(self) -> U64:
        """(n,) bytes allocated, where known, estimated."""
        return self.counters[:, BYTES]

    @property
    def known_bytes(self) -> NDArray[np.float64]:
        """(n,) bytes allocated; NaN where nothing is known of any."""
        return np.where(self.bytes > 0, self.bytes.astype(np.float64), np.nan)

    @property
    def memory_allocated(self) -> Mapping[tuple[str, str], int]:
        """Bytes that allocators gave out, by service and allocator; also of ended processes."""
        return self.measures.get("opscope.memory.allocated", {})

    @property
    def memory_live(self) -> Mapping[tuple[str, str], int]:
        """Bytes given out and not released, by service and allocator."""
        return self.measures.get("opscope.memory.live", {})

    @property
    def memory_peak(self) -> Mapping[tuple[str, str], int]:
        """The largest number of live bytes in any live process, by service and allocator."""
        return self.measures.get("opscope.memory.peak", {})

    @property
    def process_count(self) -> int:
        """Live processes; one that ran another program by exec has two segments and is one."""
        return len({(p.pid, p.process_start, p.uid) for p in self.processes if p.is_alive})

    @property
    def overhead_ratio(self) -> Mapping[tuple[str], float]:
        """Share of CPU time that recording took of late, by service: its worst live process."""
        return self._by_service(max, lambda process: process.overhead_of_late)

    @property
    def overhead_budget(self) -> Mapping[tuple[str], float]:
        """Share of CPU time that recording may take, by service: its tightest live process."""
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
    def build_info(self) -> Mapping[tuple[str], int]:
        from importlib import metadata

        return {(metadata.version("opscope"),): 1}

    @property
    def service_info(self) -> Mapping[tuple[str, str], int]:
        """1 for each service and version of it (its `service.version`) that runs now."""
        found = {
            (process.service, process.notes["service.version"])
            for process in self.processes
            if process.is_alive and process.notes.get("service.version")
        }
        return dict.fromkeys(sorted(found)[:_VERSIONS_LIMIT], 1)

    @property
    def framework_info(self) -> Mapping[tuple[str, str, str, str], int]:
        """1 for each service, framework, version of it and type of device in use now."""
        found = {
            (
                process.service,
                framework,
                process.notes[framework],
                process.notes.get(f"{framework}.device_type", "cpu"),
            )
            for process in self.processes
            if process.is_alive
            for framework in _VERSION_NOTES
            if process.notes.get(framework)
        }
        # Sorted, so that it is the same ones that are left out where there are too many.
        return dict.fromkeys(sorted(found)[:_VERSIONS_LIMIT], 1)

    @property
    def bucket_offset(self) -> int:
        """OpenTelemetry's index of the first bucket, at scale 3."""
        return (self.first_octave - layout.SECOND_LOG2) * layout.BUCKETS_PER_OCTAVE

    def quantile(self, p: float) -> NDArray[np.float64]:
        """(n,) the duration in seconds below which a share `p` of ranges lies, within 4.5 %.

        It is the geometric middle of the bucket that holds it, so off by a factor of at most
        2^(1/16). NaN for a series without ranges.
        """
        if self.buckets.size == 0:
            return np.full(len(self.keys), np.nan)
        flat = self.buckets.reshape(len(self.keys), -1)
        upto = np.cumsum(flat, axis=1, dtype=np.float64)
        count = upto[:, -1]
        # A rounding up of p * count must not skip the bucket that ends exactly there.
        wanted = np.maximum(p * count * (1 - 1e-12), np.minimum(count, 1))[:, None]
        index = np.argmax(upto >= wanted, axis=1)
        middle = 2.0 ** ((self.bucket_offset + index + 0.5) / layout.BUCKETS_PER_OCTAVE)
        return np.where(count > 0, middle, np.nan)

    def grouped(self, by: Callable[[SeriesKey], SeriesKey]) -> Snapshot:
        """The same with the series summed that `by` gives the same key."""
        index: dict[SeriesKey, int] = {}
        group = np.array([index.setdefault(by(key), len(index)) for key in self.keys], np.intp)
        counters = np.zeros((len(index), COUNTER_COLUMNS), np.uint64)
        buckets = np.zeros((len(index), *self.buckets.shape[1:]), np.uint64)
        created = np.full(len(index), np.iinfo(np.int64).max)
        np.add.at(counters, group, self.counters)
        np.add.at(buckets, group, self.buckets)
        np.minimum.at(created, group, self.created_unix_ns)
        return replace(
            self,
            keys=tuple(index),
            created_unix_ns=created,
            counters=counters,
            buckets=buckets,
            exemplars={},
        )

    def since(self, earlier: Snapshot) -> Snapshot:
        """What was added after an earlier snapshot of the same host.

        Series may have come since, none may have gone; their order is the same.
        """
        counters, buckets = self.counters.copy(), self.buckets.copy()
        n = len(earlier.keys)
        start = earlier.first_octave - self.first_octave if earlier.buckets.size else 0
        octaves = slice(start, start + earlier.buckets.shape[1])
        # Where a process changed its service, its series lost what others won.
        counters[:n] -= np.minimum(counters[:n], earlier.counters)
        buckets[:n, octaves] -= np.minimum(buckets[:n, octaves], earlier.buckets)
        return replace(self, counters=counters, buckets=buckets)
