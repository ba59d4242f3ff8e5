"""A day of a host with a simulated clock: every exporter's counters only grow, and starts are
correct.

Processes start, work, are killed and lose their names; the agent ends and restarts. After every
pass, what Prometheus, OpenTelemetry and a file received is compared with what was done.
"""

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from opscope.host.host import Host
from opscope.host.snapshot import Snapshot
from opscope.host.state_file import StateFile
from opscope_exporters.otlp import delta
from opscope_exporters.otlp.data import CUMULATIVE, DELTA, Builder, Temporality, host_counts
from opscope_exporters.prometheus.exporter import Prometheus
from tests.exporters.client_model import families, labels_of
from tests.segments.segment_writer import Process, Range, SegmentWriter

DAY_S, PASS_S = 86_400, 120
START_NS = 1_700_000_000_000_000_000
PROTOBUF = (
    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
)
Series = tuple[tuple[str, str], ...]


class Day:
    def __init__(self, place: Path) -> None:
        self.now_ns = START_NS
        self.truth: Counter[tuple[str, str]] = Counter()
        self.first_ns: dict[tuple[str, str], int] = {}
        self._place = place
        self._random = random.Random(7)
        self._alive: list[tuple[str, SegmentWriter]] = []
        self._next_start = 1
        self.agent = self._agent()

    def _agent(self) -> Host:
        state = StateFile(str(self._place / "agent.state"))
        return Host([str(self._place)], consume=True, state=state, clock_ns=lambda: self.now_ns)

    def restart(self) -> None:
        self.agent.close()
        self.agent = self._agent()

    def work(self) -> Snapshot:
        """Two minutes of the host, and a pass of the agent."""
        self.now_ns += PASS_S * 10**9
        if len(self._alive) < 4 or self._random.random() < 0.02:
            # Of this boot, with a start time that no live process has: it counts as dead.
            service = f"service{self._random.randrange(3)}"
            self._next_start += 1
            writer = SegmentWriter(
                Process(process_start=self._next_start), created_unix_ns=self.now_ns
            )
            writer.note("service.name", service)
            self._alive.append((service, writer))
        for service, writer in self._alive:
            for op in ("core::a", "core::b"):
                count = self._random.randrange(5)
                if count:
                    writer.add([Range(op, self._random.choice((1e-5, 3e-3, 0.2)), count)])
                    self.truth[service, op] += count
                    self.first_ns.setdefault((service, op), writer.header["created_unix_ns"])
        # The agent removes the file of a dead process, so each is written once.
        service, writer = self._alive.pop(self._random.randrange(len(self._alive)))
        writer.write(self._place)
        return self.agent.collect()

    @property
    def written(self) -> Counter[tuple[str, str]]:
        """The truth that the agent can know: of processes whose file was written."""
        found = self.truth.copy()
        for service, writer in self._alive:
            for op, number in writer._ops.items():
                for cells in writer._cells.values():
                    found[service, op] -= sum(
                        int(cell["sample_count"])
                        for key, cell in cells.items()
                        if key & 0xFFFFFFFF == number
                    )
        return +found


@pytest.fixture
def day(tmp_path: Path) -> Iterator[Day]:
    tmp_path.chmod(0o700)
    day = Day(tmp_path)
    yield day
    day.agent.close()


@pytest.mark.slow
def test_counters_only_go_up_all_day_and_starts_are_true(day: Day) -> None:
    page = Prometheus()
    cumulative = Builder(Temporality(CUMULATIVE, CUMULATIVE), {})
    by_delta = Builder(Temporality(DELTA, DELTA), {})
    base: delta.Base | None = None
    last: dict[tuple[str, Series], float] = {}
    starts: dict[Series, int] = {}
    told: Counter[tuple[str, str]] = Counter()
    for number in range(DAY_S // PASS_S):
        snapshot = day.work()
        for family in families(b"".join(page.page(snapshot, PROTOBUF)[0])):
            if not family.name.startswith(("opscope_op_", "opscope_recorder_")):
                continue
            for metric in family.metric:
                series = tuple(sorted(labels_of(metric).items()))
                if metric.HasField("histogram"):
                    histogram = metric.histogram
                    start = histogram.created_timestamp.ToNanoseconds()
                    assert starts.setdefault(series, start) == start
                    assert start <= snapshot.time_unix_ns
                    values = {
                        "count": histogram.sample_count_float,
                        "sum": histogram.sample_sum,
                        **{str(b.upper_bound): b.cumulative_count_float for b in histogram.bucket},
                    }
                elif metric.HasField("counter"):
                    values = {"": metric.counter.value}
                else:
                    continue
                for which, value in values.items():
                    key = f"{family.name} {which}", series
                    assert value >= last.get(key, 0.0), key
                    last[key] = value
        if number % 5 == 0:
            base = _add_deltas(told, by_delta, snapshot, base)
        if number % 120 == 119:
            day.restart()
        if number % 180 == 0:
            _check_starts(cumulative, snapshot)
    snapshot = day.agent.collect()
    found = {
        (key.service, key.op): int(calls)
        for key, calls in zip(snapshot.keys, snapshot.calls.tolist(), strict=True)
    }
    assert found == day.written
    base = _add_deltas(told, by_delta, snapshot, base)
    assert told == day.written
    for series, start in starts.items():
        labels = dict(series)
        assert start >= day.first_ns[labels["service_name"], labels["op"]]


def _add_deltas(
    told: Counter[tuple[str, str]], builder: Builder, snapshot: Snapshot, base: delta.Base | None
) -> delta.Base:
    for resource in builder.build(snapshot, base).resource_metrics:
        for metric in resource.scope_metrics[0].metrics:
            if metric.name == "opscope.op.calls":
                for point in metric.data.data_points:
                    attributes = point.attributes or {}
                    key = str(attributes["service_name"]), str(attributes["op"])
                    told[key] += int(point.value)  # type: ignore[union-attr]
                    assert point.start_time_unix_nano <= point.time_unix_nano
    return delta.base_of(snapshot, host_counts(snapshot))


def _check_starts(builder: Builder, snapshot: Snapshot) -> None:
    for resource in builder.build(snapshot, None).resource_metrics:
        for metric in resource.scope_metrics[0].metrics:
            for point in metric.data.data_points:
                if metric.data.__class__.__name__ != "Gauge":
                    assert 0 < point.start_time_unix_nano <= point.time_unix_nano
