"""A simulated fleet: the exports of many hosts' agents, with known truth.

Every host runs the same operators; the durations of each have a log-normal distribution. Hosts
differ slightly in speed, and stragglers a lot. Each host's data is a Snapshot, so that Prometheus
scrapes the agent's own page. Other files test what queries find in it.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from opscope.host.health import Health
from opscope.host.identity import group_of
from opscope.host.process_metrics import Measures
from opscope.host.self_metrics import SelfMetrics
from opscope.host.snapshot import (
    BYTES,
    COUNTER_COLUMNS,
    SAMPLES,
    SELF_NS,
    TOTAL_NS,
    WEIGHT,
    Process,
    SeriesKey,
    Snapshot,
)
from opscope.segments.dictionary import Labels
from opscope.segments.layout import BUCKETS_PER_OCTAVE, SECOND_LOG2, WEIGHT_ONE

SERVICE, MODEL = "ranker", "r50"
PHASES = ("forward", "backward", "optimizer", "data", "comm")
# The first operators of each phase, so that pictures look realistic.
_NAMES = {
    "forward": ("aten::native_layer_norm", "aten::bmm", "aten::gelu"),
    "backward": ("NativeLayerNormBackward0", "BmmBackward0", "GeluBackward0"),
    "optimizer": ("Optimizer.step#AdamW.step", "aten::_foreach_lerp_", "aten::_foreach_addcdiv_"),
    "data": ("aten::stack", "aten::copy_", "aten::index_select"),
    "comm": ("nccl:all_reduce", "nccl:reduce_scatter", "nccl:all_gather"),
}
# Buckets from 2^-22 s (0.24 us) to 2^2 s.
_LOWEST, _OCTAVES = -22, 24
EDGES = 2.0 ** (_LOWEST + np.arange(_OCTAVES * BUCKETS_PER_OCTAVE + 1) / BUCKETS_PER_OCTAVE)
_MIDDLES = np.sqrt(EDGES[1:] * EDGES[:-1])
_NEAR = 5
"""Standard deviations from the middle beyond which a normal distribution has nothing."""
_PREEMPTION_S = 8e-3
"""The approximate delay of a preempted call: two turns of the scheduler."""
_BEGAN_NS = 1_700_000_000_000_000_000


@dataclass(frozen=True)
class Fleet:
    """The sigmas are standard deviations of logarithms."""

    seed: int
    hosts: int = 100
    operators: int = 20
    samples: float = 2000
    """Recorded runs of an operator on a host in a quarter of an hour, on average."""
    stragglers: int = 1
    slowdown: float = 1.2
    host_sigma: float = 0.015
    cell_sigma: float = 0.02
    """Of each operator on each host, beside its host's."""
    call_sigma: float = 0.5
    sampling: float = 0.02
    versions: tuple[str, ...] = ()
    """The hosts run them in turn."""
    factors: tuple[float, ...] = ()
    """Of the duration: the hosts have them in turn."""
    service: str = SERVICE
    attributes: Labels = ()
    """Resource attributes of its processes, beside the service's."""
    models: tuple[str, ...] = (MODEL,)
    """The operators are of them in turn."""
    busy: int = 0
    """Hosts beside other load: a share of their calls is preempted, and takes milliseconds more."""
    preempted: float = 0.05
    churn: bool = False
    """Whether hosts begin anew and go away while it is looked at (live.py)."""

    @cached_property
    def slow(self) -> set[int]:
        """The truth."""
        chosen = np.random.default_rng([self.seed, 1]).permutation(self.hosts)
        return set(chosen[: self.stragglers].tolist())

    @cached_property
    def beside_load(self) -> set[int]:
        """A fleet without stragglers."""
        chosen = np.random.default_rng([self.seed, 1]).permutation(self.hosts)
        return set(chosen[self.stragglers : self.stragglers + self.busy].tolist())

    @cached_property
    def phases(self) -> list[str]:
        return [PHASES[number % len(PHASES)] for number in range(self.operators)]

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """(hosts, operators, buckets) recorded runs of a quarter of an hour, by duration."""
        random = np.random.default_rng([self.seed, 0])
        middle = random.uniform(np.log(5e-6), np.log(5e-3), self.operators)
        logs = middle + random.normal(0, self.cell_sigma, (self.hosts, self.operators))
        logs += random.normal(0, self.host_sigma, (self.hosts, 1))
        for host in range(self.hosts):
            logs[host] += np.log(self.slowdown) if host in self.slow else 0
            if self.factors:
                logs[host] += np.log(self.factors[host % len(self.factors)])
        # How busy an operator is varies more than its duration.
        runs = self.samples * random.lognormal(0, 0.5, (1, self.operators, 1))
        share = np.zeros((self.hosts, self.operators, len(EDGES) - 1))
        edges, reach = np.log(EDGES), _NEAR * self.call_sigma
        for operator, of_hosts in enumerate(logs.T):
            # No host has runs in other buckets.
            first = max(np.searchsorted(edges, of_hosts.min() - reach) - 1, 0)
            last = min(np.searchsorted(edges, of_hosts.max() + reach), len(EDGES) - 1)
            z = (edges[first : last + 1] - of_hosts[:, None]) / self.call_sigma
            share[:, operator, first:last] = np.maximum(np.diff(_normal(z), axis=-1), 0)
        share /= share.sum(axis=-1, keepdims=True)
        waits = np.diff(_normal((np.log(EDGES) - np.log(_PREEMPTION_S)) / 1.0))
        for host in self.beside_load:
            share[host] += self.preempted * (waits / waits.sum() - share[host])
        # A Poisson number of runs, each in one bucket, is an independent one in each bucket.
        return random.poisson(runs * share)

    @property
    def total_s(self) -> NDArray[np.float64]:
        """(hosts, operators) the total time of the recorded runs, from the middles of their
        buckets."""
        return np.asarray(self.counts @ _MIDDLES, np.float64)

    @cached_property
    def keys(self) -> tuple[SeriesKey, ...]:
        models = self.models
        return tuple(
            SeriesKey(
                self.service,
                _operator(number, phase),
                phase,
                (("model_id", models[number % len(models)]),),
                group=group_of(self.attributes),
            )
            for number, phase in enumerate(self.phases)
        )

    def snapshot(self, host: int, times: float) -> Snapshot:
        """What that host's agent has after so many quarters of an hour, all alike; of a part of one
        each bucket holds its share, rounded down to whole runs."""
        return self.snapshot_of(host, self.counts[host] * times, times)

    def snapshot_of(
        self, host: int, runs_by_bucket: NDArray[np.float64], times: float, version: str = ""
    ) -> Snapshot:
        """The same with these recorded runs, (operators, buckets)."""
        weight = round(WEIGHT_ONE / self.sampling)
        counts = np.floor(runs_by_bucket).astype(np.uint64)
        counters = np.zeros((self.operators, COUNTER_COLUMNS), np.uint64)
        runs = counts.sum(axis=1)
        counters[:, SAMPLES] = runs
        counters[:, WEIGHT] = runs * weight
        total_ns = np.rint(counts @ _MIDDLES * 1e9 / self.sampling)
        counters[:, TOTAL_NS] = counters[:, SELF_NS] = total_ns
        counters[:, BYTES] = runs * 4096
        calls_variance = runs / self.sampling * (1 / self.sampling - 1)
        call_s = total_ns / 1e9 / np.maximum(runs / self.sampling, 1)
        return Snapshot(
            time_unix_ns=_BEGAN_NS + round(times),
            keys=self.keys,
            created_unix_ns=np.full(self.operators, _BEGAN_NS),
            counters=counters,
            variances=np.stack([calls_variance, calls_variance * call_s**2], axis=1),
            buckets=(counts * weight).reshape(self.operators, _OCTAVES, BUCKETS_PER_OCTAVE),
            first_octave=SECOND_LOG2 + _LOWEST,
            processes=(self._process(host, version),),
            health=Health(samples=int(runs.sum()), overhead_ns=1000 * int(runs.sum())),
            groups={group_of(self.attributes): self.attributes} if self.attributes else {},
            usage={("torch.compile", self.service): 1},
            measures=self._measures(int(total_ns.sum())),
            attach_results={("process", "attached"): 1, ("torch", "attached"): 1},
            series_filtered={("drop",): 1},
            collect_seconds=0.02 + 0.001 * host,
            own=SelfMetrics(
                cpu_s=0.002 * times,
                memory_bytes=(40 + host) << 20,
                files_read=1,
                limited={("1000", "series"): 1},
            ),
        )

    def _measures(self, busy_ns: int) -> Measures:
        """Of a program that waits for a processor a tenth as long as it is in operators, runs
        Python for three tenths, and compiles again and again."""
        count = 1 + busy_ns // 10**10
        return {
            "opscope.cpu.time": {(self.service, ""): busy_ns * 13 // 10},
            "opscope.cpu.wait": {(self.service, ""): busy_ns // 10},
            "opscope.torch.compile.compilations": {
                (self.service, "first"): 4,
                (self.service, "size"): count,
            },
            "opscope.torch.compile.time": {(self.service, "size"): busy_ns // 100},
            "opscope.torch.compile.graph_breaks": {(self.service, "Unsupported"): 2 * count},
            "opscope.torch.compile.cache": {
                (self.service, "hit"): 100 + 3 * count,
                (self.service, "miss"): count,
            },
            "opscope.jax.compile.compilations": {
                (self.service, "trace"): 4 * count,
                (self.service, "compile"): count,
            },
            "opscope.jax.compile.time": {
                (self.service, "trace"): busy_ns // 500,
                (self.service, "compile"): busy_ns // 1000,
            },
            "opscope.jax.compile.cache": {
                (self.service, "hit"): 100 + count,
                (self.service, "miss"): count,
            },
        }

    def _process(self, host: int, version: str) -> Process:
        notes = {"service.name": self.service, "torch": "2.13.0", "bridge.torch": "attached"}
        if version or self.versions:
            notes["service.version"] = version or self.versions[host % len(self.versions)]
        return Process(
            pid=host + 1,
            uid=0,
            process_start=1,
            is_alive=True,
            created_unix_ns=_BEGAN_NS,
            sampling_prob=self.sampling,
            window_ns=0,
            period_ns=0,
            health=Health(),
            notes=notes,
            label_sets=(),
            overhead_budget=0.005,
            recent_overhead=0.002,
        )


def _operator(number: int, phase: str) -> str:
    names, place = _NAMES[phase], number // len(PHASES)
    return names[place] if place < len(names) else f"aten::operator{number}"


def _normal(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """The normal distribution's share below each `z`, to 1e-6: 0 or 1 where it is that close."""
    return np.where(np.abs(z) < _NEAR, _normal_near(z), z > 0)


def _normal_near(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same to 1e-7 (Abramowitz and Stegun, 7.1.26)."""
    x = np.abs(z) / np.sqrt(2)
    t = 1 / (1 + 0.3275911 * x)
    series = t * (
        0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))
    )
    error = 1 - series * np.exp(-x * x)
    return np.asarray(np.where(z >= 0, 1 + error, 1 - error) / 2)
