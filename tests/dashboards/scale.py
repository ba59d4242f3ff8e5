"""Measure a real Prometheus with a large fleet: `python -m tests.dashboards.scale --help`.

Prometheus scrapes a thousand hosts as in dashboards/prometheus.yml, with the committed rules, for a
quarter of an hour; then every dashboard is opened. Reports samples per second, CPU time, memory,
disk, and the duration of each group of rules and each dashboard. dashboards/SIZING.md extrapolates
to other sizes.

Uses the Prometheus of the tests (tests/exporters/debian_packages.py). Ends early if the machine
runs low on memory, or on SIGUSR1, and reports what it has measured by then.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from urllib.request import Request, urlopen

import yaml

from tests.dashboards.documents import FOLDER, RULES, boards
from tests.dashboards.many_hosts import fleets, served
from tests.dashboards.openings import SCRAPE_S, Browser, Opening
from tests.dashboards.pace import in_rules, paced
from tests.exporters.debian_packages import program
from tests.exporters.peers import free_port, wait_for

PROGRAMS = FOLDER.parent / ".pytest_cache" / "d" / "debian"
"""The same directory as in the tests."""
OPENED = 3
"""How often each dashboard is opened; the median counts."""
_SERIES = "prometheus_tsdb_head_series"
_TICKS = os.sysconf("SC_CLK_TCK")
_LOOK_S = 5.0
"""Seconds between readings of memory and of the rules' evaluations."""


@dataclass(frozen=True)
class Plan:
    hosts: int = 1000
    series: int = 2000
    """A host's."""
    services: int = 25
    seconds: float = 900
    """That are simulated."""
    pace: float = 1.0
    """How long each of them lasts: of scrapes, rules, windows and queries alike. Above 1 where the
    machine has other work too, below for a test of this program."""
    native: bool = True
    interval_s: float = SCRAPE_S
    """Between two scrapes of a host."""
    spare_mib: int = 6144
    """Memory that is left to the rest of the machine."""


@dataclass
class Group:
    """A group of rules, with the seconds of its evaluations."""

    interval_s: float
    last_s: float = 0.0
    most_s: float = 0.0
    missed: float = 0.0


@dataclass
class Result:
    plan: Plan
    stopped: str = ""
    """Why before its time."""
    seconds: float = 0.0
    series: float = 0.0
    samples_per_s: float = 0.0
    """A simulated second, as all that is by second."""
    histograms_per_s: float = 0.0
    """Those of the samples that are native histograms."""
    scrapes_up: float = 0.0
    """Share of the targets whose last scrape succeeded."""
    cpus: float = 0.0
    """Processors that Prometheus kept busy, rules included."""
    load: float = 0.0
    """The machine's load average over that time, others' work included."""
    resident_mib: float = 0.0
    """The most memory that it had, without that of files."""
    chunk_bytes_per_sample: float = 0.0
    index_bytes_per_series: float = 0.0
    log_bytes_per_sample: float = 0.0
    """Of the write-ahead log, which is kept for two hours or three."""
    groups: dict[str, Group] = field(default_factory=dict)
    openings: list[Opening] = field(default_factory=list)


def config(plan: Plan, targets: list[dict[str, object]], directory: Path) -> Path:
    """The shipped configuration and rules, with these targets."""
    whole = yaml.safe_load((FOLDER / "prometheus.yml").read_text())
    (job,) = whole["scrape_configs"]
    interval = f"{1000 * plan.interval_s * plan.pace:.0f}ms"
    job["scrape_interval"] = job["scrape_timeout"] = interval
    whole["global"] = {"evaluation_interval": paced("1m", plan.pace)}
    whole["rule_files"] = []
    for path in sorted(RULES.glob("*.yml")):
        copy = directory / path.name
        copy.write_text(in_rules(path.read_text(), plan.pace))
        whole["rule_files"].append(str(copy))
    del job["file_sd_configs"]
    job["static_configs"] = targets
    written = directory / "prometheus.yml"
    written.write_text(yaml.safe_dump(whole))
    return written


class Measured:
    """A running Prometheus, seen from outside."""

    def __init__(self, url: str, pid: int, data: Path) -> None:
        self.url, self.pid, self.data = url, pid, data

    def is_ready(self) -> bool:
        try:
            with urlopen(f"{self.url}/-/ready", timeout=_LOOK_S):
                return True
        except OSError:
            return False

    def metrics(self) -> dict[str, float]:
        """Its metrics of itself, by name and labels."""
        with urlopen(f"{self.url}/metrics", timeout=60) as answer:
            lines = answer.read().decode().splitlines()
        pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
        return {name: float(value) for name, _, value in pairs}

    def groups(self) -> list[tuple[str, float]]:
        """Each group of rules and its interval."""
        with urlopen(f"{self.url}/api/v1/rules", timeout=60) as answer:
            found = json.load(answer)["data"]["groups"]
        return [(f"{one['file']};{one['name']}", one["interval"]) for one in found]

    def snapshot(self) -> Path:
        """Makes it write its data in memory as a block."""
        request = Request(f"{self.url}/api/v1/admin/tsdb/snapshot", method="POST")
        with urlopen(request, timeout=600) as answer:
            name = json.load(answer)["data"]["name"]
        (meta,) = Path(self.data, "snapshots", name).glob("*/meta.json")
        return meta.parent

    @property
    def resident_mib(self) -> float:
        found = re.search(r"RssAnon:\s+(\d+)", Path(f"/proc/{self.pid}/status").read_text())
        return int(found[1]) / 1024 if found else 0.0

    @property
    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS


@contextmanager
def prometheus(plan: Plan, targets: list[dict[str, object]], place: Path) -> Iterator[Measured]:
    server, data = program("prometheus", PROGRAMS), place / "data"
    port = free_port()
    command = [
        str(server),
        f"--config.file={config(plan, targets, place)}",
        f"--storage.tsdb.path={data}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--web.enable-admin-api",
        "--query.timeout=2m",
        f"--query.lookback-delta={paced('5m', plan.pace)}",
        "--log.level=warn",
        *(["--enable-feature=native-histograms"] if plan.native else []),
    ]
    with subprocess.Popen(command) as process:
        try:
            found = Measured(f"http://127.0.0.1:{port}", process.pid, data)
            wait_for(found.is_ready, "a Prometheus that is ready")
            yield found
        finally:
            # It would save its data, which is no longer needed.
            process.kill()


def measure(plan: Plan, place: Path) -> Result:
    known = fleets(plan.hosts, plan.series, plan.services, native=plan.native)
    result = Result(plan)
    with served(known, plan.pace) as targets, prometheus(plan, targets, place) as server:
        fill(server, result)
        browser = Browser(server.url, plan.interval_s, plan.pace)
        for board in boards().values():
            openings = [browser.open(board) for _ in range(OPENED)]
            result.openings.append(sorted(openings, key=lambda one: one.wall_s)[OPENED // 2])
        print(report(result), file=sys.stderr)
        try:
            weigh(server, result)
        except OSError as error:
            result.stopped = f"what it has could not be weighed: {error}"
    return result


def fill(server: Measured, result: Result) -> None:
    """Scrapes for the planned time, and records the progress."""
    plan = result.plan
    # It starts slowly.
    wait_for(lambda: server.metrics()[_SERIES] > 0, "a scrape")
    began = time.monotonic()
    # The first rounds create all series, which costs more than later rounds.
    settled: tuple[float, float, dict[str, float]] | None = None
    result.groups = {name: Group(interval_s) for name, interval_s in server.groups()}

    def stop(number: int, frame: FrameType | None) -> None:
        result.stopped = "as SIGUSR1 asked"

    signal.signal(signal.SIGUSR1, stop)
    loads = []
    while not result.stopped and time.monotonic() - began < plan.seconds * plan.pace:
        time.sleep(min(_LOOK_S, plan.interval_s * plan.pace))
        metrics = server.metrics()
        if settled is None and time.monotonic() - began > 3 * plan.interval_s * plan.pace:
            settled = time.monotonic(), server.cpu_s, metrics
        result.resident_mib = max(result.resident_mib, server.resident_mib)
        look_at_rules(result, metrics)
        told(result, metrics, time.monotonic() - began)
        loads.append(os.getloadavg()[0])
        if available_mib() < plan.spare_mib:
            result.stopped = f"less than {plan.spare_mib} MiB of memory was left on the machine"
    print(file=sys.stderr)
    result.load = sum(loads) / max(len(loads), 1)
    result.seconds = (time.monotonic() - began) / plan.pace
    metrics = server.metrics()
    result.series = metrics[_SERIES]
    result.scrapes_up = up(server)
    if settled:
        then, cpu_s, before = settled
        lasted = (time.monotonic() - then) / plan.pace
        result.samples_per_s = (appended(metrics) - appended(before)) / lasted
        of_histograms = 'type="histogram"'
        result.histograms_per_s = (
            appended(metrics, of_histograms) - appended(before, of_histograms)
        ) / lasted
        result.cpus = (server.cpu_s - cpu_s) / lasted


def told(result: Result, metrics: dict[str, float], lasted_s: float) -> None:
    """The progress."""
    print(
        f"\r{lasted_s / result.plan.pace:.0f} s:"
        f" {metrics[_SERIES]:,.0f} series,"
        f" {appended(metrics):,.0f} samples, {result.resident_mib:,.0f} MiB",
        end="",
        file=sys.stderr,
    )


def look_at_rules(result: Result, metrics: dict[str, float]) -> None:
    for name, group in result.groups.items():
        label = f'{{rule_group="{name}"}}'
        group.last_s = metrics.get(f"prometheus_rule_group_last_duration_seconds{label}", 0.0)
        group.most_s = max(group.most_s, group.last_s)
        group.missed = metrics.get(f"prometheus_rule_group_iterations_missed_total{label}", 0.0)


def appended(metrics: dict[str, float], label: str = "") -> float:
    """Samples that the storage took."""
    name = "prometheus_tsdb_head_samples_appended_total"
    return sum(value for key, value in metrics.items() if key.startswith(name) and label in key)


def up(server: Measured) -> float:
    with urlopen(f"{server.url}/api/v1/query?query=avg(up)", timeout=60) as answer:
        return float(json.load(answer)["data"]["result"][0]["value"][1])


def weigh(server: Measured, result: Result) -> None:
    """Bytes of samples on disk."""
    samples = appended(server.metrics())
    result.log_bytes_per_sample = size_of(server.data / "wal") / samples
    block = server.snapshot()
    stats = json.loads((block / "meta.json").read_text())["stats"]
    result.chunk_bytes_per_sample = size_of(block / "chunks") / stats["numSamples"]
    result.index_bytes_per_series = (block / "index").stat().st_size / stats["numSeries"]


def size_of(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def available_mib() -> float:
    found = re.search(r"MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text())
    return int(found[1]) / 1024 if found else 0.0


def report(result: Result) -> str:
    """The result as Markdown."""
    plan = result.plan
    kind = "native" if plan.native else "classic"
    lines = [
        f"{plan.hosts} hosts, {result.series:,.0f} series with {kind} histograms, "
        f"{result.seconds:.0f} s of a scrape each {plan.interval_s:g} s, at pace {plan.pace:g}"
        + (f"; stopped: {result.stopped}" if result.stopped else ""),
        "",
        "| | |",
        "|---|---|",
        f"| samples/s | {result.samples_per_s:,.0f}, of which {result.histograms_per_s:,.0f} are"
        " histograms |",
        f"| scrapes that succeeded | {result.scrapes_up:.1%} |",
        f"| processors busy | {result.cpus:.2f}; the machine's load: {result.load:.1f} |",
        f"| memory | {result.resident_mib / 1024:.1f} GiB |",
        f"| bytes a sample: chunks, log | {result.chunk_bytes_per_sample:.2f}, "
        f"{result.log_bytes_per_sample:.2f} |",
        f"| bytes a series of the index | {result.index_bytes_per_series:.0f} |",
        "",
        "| group of rules | each | took at last | at most | left out |",
        "|---|---|---|---|---|",
    ]
    for name, group in result.groups.items():
        lines.append(
            f"| {name.rpartition(';')[2]} | {group.interval_s:.0f} s | {group.last_s:.2f} s |"
            f" {group.most_s:.2f} s | {group.missed:.0f} |"
        )
    lines += ["", "| dashboard | open after | all queries | worst query |", "|---|---|---|---|"]
    for one in result.openings:
        lines.append(
            f"| {one.board} | {one.wall_s:.2f} s | {one.sum_s:.2f} s |"
            f" {one.worst.wall_s:.2f} s: {one.worst.question.panel} |"
            + (f" {len(one.failed)} without an answer" if one.failed else "")
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="A large fleet on a real Prometheus.")
    usual = Plan()
    parser.add_argument("--hosts", type=int, default=usual.hosts)
    parser.add_argument("--series", type=int, default=usual.series, help="of each host")
    parser.add_argument("--services", type=int, default=usual.services)
    parser.add_argument("--seconds", type=float, default=usual.seconds, help="simulated ones")
    parser.add_argument(
        "--pace", type=float, default=usual.pace, help="how long a simulated second lasts"
    )
    parser.add_argument("--interval", type=float, default=usual.interval_s, help="of scrapes")
    parser.add_argument("--classic", action="store_true", help="without native histograms")
    parser.add_argument("--spare-mib", type=int, default=usual.spare_mib)
    parser.add_argument("--json", type=Path, help="where all that was measured goes too")
    given = parser.parse_args()
    plan = Plan(
        hosts=given.hosts,
        series=given.series,
        services=given.services,
        seconds=given.seconds,
        pace=given.pace,
        native=not given.classic,
        interval_s=given.interval,
        spare_mib=given.spare_mib,
    )
    with tempfile.TemporaryDirectory(prefix="opscope-scale-") as place:
        result = measure(plan, Path(place))
    if given.json:
        given.json.write_text(json.dumps(asdict(result), indent=1))
    print(report(result))
    sys.exit(bool(result.stopped))


if __name__ == "__main__":
    main()
