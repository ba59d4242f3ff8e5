"""A fleet with a life, for pictures: six hours in which load rises and falls, a version rolls out
and makes one operator slower, a host becomes a straggler, recovers and becomes one again, and a job
begins to wait for its input. In a real Prometheus with the committed rules, all at `pace`.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread

import numpy as np
import yaml
from numpy.typing import NDArray

from opscope.host.process_metrics import Measures
from opscope.host.self_metrics import SelfMetrics
from opscope.host.snapshot import Process, SeriesKey, Snapshot
from opscope.segments.layout import BUCKETS_PER_OCTAVE
from opscope.server.exporter import PageExporter, load
from tests.dashboards.fleet import Fleet
from tests.dashboards.live import CLUSTER, write_rules
from tests.exporters.peers import Prometheus, Store, running

HOURS = 6.0
REGRESSED, REGRESSION = "aten::bmm", 1.12
# Calls relative to those of other operators: a step is many of them, a server makes none.
_STEPS, _INPUT, _WAITING = 0.2, 0.03, 260.0
_QUARTER_H, _SCRAPE_S = 0.25, 60.0
# By service.
_OVERHEAD = {"ranker": 0.0023, "embedder": 0.0031, "tokenizer": 0.0014}
_LIVE_GIB = {"ranker": 6.0, "embedder": 14.0, "tokenizer": 1.5}
_APIS = {
    "ranker": ("torch.jit.load",),
    "embedder": ("torch.export", "torch.save"),
    "tokenizer": ("torch.jit.script",),
}


def _job(number: str, namespace: str) -> tuple[tuple[str, str], ...]:
    return (("job.id", number), ("k8s.namespace.name", namespace))


RANKER = Fleet(3, hosts=10, operators=15, samples=4000, service="ranker", stragglers=0)
EMBEDDER = Fleet(
    4,
    hosts=6,
    operators=10,
    samples=900,
    service="embedder",
    slowdown=1.0,
    attributes=_job("4711", "research"),
)
TOKENIZER = Fleet(
    5,
    hosts=4,
    operators=8,
    samples=250,
    service="tokenizer",
    models=("bpe",),
    stragglers=0,
    attributes=_job("4750", "research"),
)
SERVICES = (RANKER, EMBEDDER, TOKENIZER)


@dataclass
class Host:
    """The agent of one host."""

    fleet: Fleet
    number: int
    _pace: float = 1.0
    """Seconds of the clock in one of the fleet: what is a rate of processors takes so much less."""

    def __post_init__(self) -> None:
        self.name = f"{self.fleet.service}-{self.number:02}"
        self._runs = np.zeros(self.fleet.counts[self.number].shape)
        self._random = np.random.default_rng([self.fleet.seed, self.number])
        self._noise = 0.0
        self._hour = 0.0
        self._lock = Lock()

    def version(self, hour: float) -> str:
        if self.fleet is not RANKER:
            return "2.0"
        return "1.5" if hour >= self._released else "1.4"

    @property
    def _released(self) -> float:
        """Half of the hosts within half an hour, the others an hour before the end."""
        return 2.5 + 0.1 * self.number / 2 if self.number % 2 == 0 else 5.0 + 0.04 * self.number

    def slowdown(self, hour: float) -> float:
        if self.fleet is EMBEDDER and self.number in self.fleet.slow:
            return 1.32 if 1.2 <= hour < 3.0 or hour >= 4.8 else 1.0
        return 1.0

    def often(self, key: SeriesKey, hour: float) -> float:
        """Calls of an operator, relative to the simulated fleet's."""
        if self.fleet is RANKER:
            return {"forward": 1.0, "data": _INPUT}.get(key.phase, 0.0)
        if key.op.startswith("Optimizer.step"):
            return _STEPS
        if self.fleet is TOKENIZER and key.phase == "data":
            return 1 + _WAITING * min(max(hour - 4.0, 0.0), 0.5)
        return 1.0

    def load(self, hour: float) -> float:
        """Of all calls, relative to the mean."""
        if self.fleet is RANKER:
            return 1 + 0.45 * float(np.sin(2 * np.pi * (hour - 1.5) / 8))
        if self.fleet is EMBEDDER:
            return 0.5 if hour % 1.5 < 0.08 else 1.0  # It saves a checkpoint.
        return 1 + 0.25 * float(np.sin(2 * np.pi * hour / 3))

    def snapshot(self, hour: float) -> Snapshot:
        with self._lock:
            passed, self._hour = max(hour - self._hour, 0.0), max(hour, self._hour)
            self._noise = 0.9 * self._noise + float(self._random.normal(0, 0.02))
            runs = self.fleet.counts[self.number].astype(np.float64)
            for row, key in enumerate(self.fleet.keys):
                longer = self.slowdown(hour) if key.phase != "comm" else 1.0
                if key.op == REGRESSED and self.version(hour) == "1.5":
                    longer *= REGRESSION
                runs[row] = _shifted(runs[row], longer) / longer
                runs[row] *= self.often(key, hour)
            self._runs += runs * (passed / _QUARTER_H * self.load(hour) * np.exp(self._noise))
            times = 1 + hour / _QUARTER_H
            made = self.fleet.snapshot_of(self.number, self._runs, times, self.version(hour))
            return self._lived(made, hour)

    def _lived(self, made: Snapshot, hour: float) -> Snapshot:
        """With what the simulated fleet has the same at all times."""
        service = self.fleet.service
        apis = ("torch.compile", "torch.load", *_APIS[service])
        return replace(
            made,
            processes=tuple(self._process(one, hour) for one in made.processes),
            health=made.health._replace(adaptations=int(3 * hour + 0.37 * self.number)),
            usage={(api, service): 1 for api in apis},
            measures={**made.measures, **self._measures(hour)},
            collect_seconds=made.collect_seconds * (1 + 0.2 * self._wave(hour, 0.9)),
            own=SelfMetrics(
                cpu_s=self._pace * (3600 * hour * 0.0012 + 0.3 * self._wave(hour, 0.7)),
                memory_bytes=int((46 + self.number / 3 + self._wave(hour, 2)) * 2**20),
                files_read=1,
                requests={("/metrics", "200"): int(60 * hour)},
            ),
        )

    def _process(self, made: Process, hour: float) -> Process:
        cost = _OVERHEAD[self.fleet.service] * (1 + 0.15 * self._wave(hour, 1.7))
        notes = {**made.notes, "torch": "2.12.1" if self.fleet is TOKENIZER else "2.13.0"}
        return made._replace(recent_overhead=cost, notes=notes)

    def _measures(self, hour: float) -> Measures:
        """torch.compile works after a start or a release, JAX whenever a shape is new."""
        service = self.fleet.service
        first = self._released if self.version(hour) == "1.5" else -0.5
        since = hour - first
        graphs = int(24 * (1 - np.exp(-max(since, 0.0) / 0.15))) + (30 if first > 0 else 0)
        shapes = int(20 * hour + 3 * self._wave(hour, 1.1)) + 5
        live = _LIVE_GIB[service] * (1 + 0.1 * self._wave(hour, 1.3)) * self.load(hour) ** 0.5
        found: dict[str, dict[tuple[str, str], int]] = {
            "opscope.memory.live": {(service, "torch"): int(live * 2**30)},
            "opscope.torch.compile.compilations": {
                (service, "first"): graphs // 3,
                (service, "size"): graphs - graphs // 3,
            },
            "opscope.torch.compile.time": {(service, "size"): int(graphs * 4e9 * self._pace)},
            "opscope.torch.compile.graph_breaks": {(service, "Unsupported"): 2 * graphs},
            "opscope.torch.compile.cache": {
                (service, "hit"): 3 * graphs,
                (service, "miss"): graphs // 2,
            },
            "opscope.jax.compile.compilations": {},
            "opscope.jax.compile.time": {},
            "opscope.jax.compile.cache": {},
        }
        if self.fleet is TOKENIZER:
            found["opscope.jax.compile.compilations"] = {
                (service, "trace"): 4 * shapes,
                (service, "compile"): shapes,
            }
            found["opscope.jax.compile.time"] = {
                (service, "trace"): int(shapes * 1e9 * self._pace),
                (service, "compile"): int(shapes * 3e9 * self._pace),
            }
            found["opscope.jax.compile.cache"] = {
                (service, "hit"): 2 * shapes,
                (service, "miss"): 2 + int(10 * hour),
            }
        return found

    def _wave(self, hour: float, hours: float) -> float:
        """From -1 to 1, at another time on each host."""
        return float(np.sin(2 * np.pi * hour / hours + self.number))


def _shifted(runs: NDArray[np.float64], longer: float) -> NDArray[np.float64]:
    """The same calls, each of which takes `longer` times as long."""
    if longer == 1.0:
        return runs
    whole, part = divmod(np.log2(longer) * BUCKETS_PER_OCTAVE, 1.0)
    moved = np.roll(runs, int(whole))
    return np.asarray((1 - part) * moved + part * np.roll(moved, 1))


@contextmanager
def served(began: float, pace: float) -> Iterator[list[dict[str, object]]]:
    """The targets of all hosts, whose pages are those of now."""
    hosts = [Host(fleet, number, pace) for fleet in SERVICES for number in range(fleet.hosts)]
    exporters = [load("prometheus", {"octaves": 1}, {}) for _ in hosts]

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            number = int(self.path.split("/")[1])
            exporter = exporters[number]
            assert isinstance(exporter, PageExporter)
            hour = (time.time() - began) / pace / 3600
            page, kind = exporter.page(hosts[number].snapshot(hour), self.headers["Accept"])
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.writelines(page)

        def handle(self) -> None:
            with suppress(ConnectionError):
                super().handle()

        def log_message(self, format: str, *args: object) -> None:
            """Logs nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield [
                {
                    "targets": [f"127.0.0.1:{server.server_port}"],
                    "labels": {
                        "__metrics_path__": f"/{number}/metrics",
                        "instance": host.name,
                        "cluster": CLUSTER,
                    },
                }
                for number, host in enumerate(hosts)
            ]
        finally:
            server.shutdown()
            thread.join()


def _week_ago(directory: Path, began: float, pace: float) -> None:
    """Blocks with what the rules had recorded a week before, when one operator was faster."""
    from tests.dashboards.statistics import typical

    week_s = 7 * 86400 * pace
    lines = []
    random = np.random.default_rng(8)
    for value in ("seconds", "error"):
        name = f"opscope:op_typical_{value}:15m"
        lines.append(f"# TYPE {name} gauge")
        for fleet in SERVICES:
            times = typical(fleet, native=True)
            medians = np.array([np.median(column) for column in times.T])
            for row, key in enumerate(fleet.keys):
                if not np.isfinite(medians[row]) or fleet.hosts < 5:
                    continue
                change = random.normal(1, 0.004) * (0.91 if key.op == "aten::gelu" else 1.0)
                shown = medians[row] * change if value == "seconds" else 0.008
                labels = (
                    f'cluster="{CLUSTER}",service_name="{key.service}",op="{key.op}",'
                    f'phase="{key.phase}",model_id="{dict(key.labels)["model_id"]}"'
                )
                for at in np.arange(began - week_s - 120, began - week_s + 700, 20):
                    lines.append(f"{name}{{{labels}}} {shown:.6g} {at:.3f}")
    text = directory / "week.txt"
    text.write_text("\n".join([*lines, "# EOF", ""]))
    made = ["tsdb", "create-blocks-from", "openmetrics", str(text), str(directory / "data")]
    subprocess.run(["promtool", *made], check=True, capture_output=True)


@contextmanager
def prometheus(program: Path, directory: Path, pace: float) -> Iterator[Store]:
    """A Prometheus that begins to see the fleet now."""
    began = time.time()
    write_rules(directory / "rules", pace, offsets=pace)
    _week_ago(directory, began, pace)
    with served(began, pace) as targets:
        interval = f"{1000 * _SCRAPE_S * pace:.0f}ms"
        config = {
            "global": {
                "scrape_interval": interval,
                "scrape_timeout": interval,
                "evaluation_interval": f"{60_000 * pace:.0f}ms",
            },
            "rule_files": [str(directory / "rules" / "*.yml")],
            "scrape_configs": [{"job_name": "opscope", "static_configs": targets}],
        }
        (directory / "prometheus.yml").write_text(yaml.safe_dump(config))
        options = [
            "--enable-feature=native-histograms",
            f"--query.lookback-delta={300 * pace:.0f}s",
        ]
        store = Prometheus(program, directory / "prometheus.yml", *options)
        with running(store.command):
            yield store
