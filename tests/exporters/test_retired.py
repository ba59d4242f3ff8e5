"""Retired series are in no delta twice, and pages follow series that appear and disappear."""

from collections import Counter
from pathlib import Path
from typing import Any

from opscope.host.host import Host
from opscope.host.snapshot import Snapshot
from opscope.server.export_progress import ExportProgress
from opscope.server.exporter import PageExporter, PushExporter
from opscope_exporters.otlp import delta
from opscope_exporters.otlp.data import DELTA, Builder, Temporality, host_counts
from opscope_exporters.prometheus.exporter import Prometheus
from tests.host.ended_jobs import CALLS_OF_A_JOB, EndedJobs

START_NS = 1_700_000_000_000_000_000


class Push:
    interval_s = 60.0

    def __init__(self) -> None:
        self.fails = False

    def export(self, snapshot: Snapshot) -> None:
        if self.fails:
            raise OSError

    def close(self) -> None:
        pass


def calls_of(snapshot: Snapshot, builder: Builder, base: delta.Base) -> int:
    found = 0
    for resource in builder.build(snapshot, base).resource_metrics:
        for metric in resource.scope_metrics[0].metrics:
            if metric.name == "opscope.op.calls":
                points: Any = metric.data.data_points
                found += sum(int(point.value) for point in points)
    return found


def test_deltas_and_pages_follow_series_that_come_and_are_retired(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    now_ns = START_NS
    exported_ns = 0
    host = Host(
        [str(tmp_path)],
        consume=True,
        max_series=64,
        exported=lambda _: exported_ns,
        clock_ns=lambda: now_ns,
    )
    builder, page, jobs = Builder(Temporality(DELTA, DELTA), {}), Prometheus(), EndedJobs()
    snapshot = host.collect()
    base = delta.base_of(snapshot, host_counts(snapshot))
    told = 0
    for number in range(200):
        now_ns += 30 * 10**9
        jobs.write(tmp_path, number, now_ns)
        now_ns += 30 * 10**9
        snapshot = host.collect()
        told += calls_of(snapshot, builder, base)
        base = delta.base_of(snapshot, host_counts(snapshot))
        exported_ns = snapshot.time_unix_ns
        assert told == (number + 1) * CALLS_OF_A_JOB
        text = b"".join(page.page(snapshot, "")[0]).decode()
        lines = [
            line
            for line in text.splitlines()
            if line.startswith("opscope_op_duration_seconds_count{")
        ]
        assert Counter(line.partition(" ")[0] for line in lines).most_common(1)[0][1] == 1
        assert sum(float(line.rpartition(" ")[2]) for line in lines) == told
        assert f'service_name="job{number:08}"' in text
    assert snapshot.series_retired > 100


def test_exported_means_exported_by_all_exporters(tmp_path: Path) -> None:
    hour_ns = 3600 * 10**9
    push = Push()
    exported = ExportProgress({"prometheus": Prometheus(), "otlp": push})
    page, wrapped = exported.exporters["prometheus"], exported.exporters["otlp"]
    assert isinstance(page, PageExporter)
    assert isinstance(wrapped, PushExporter)
    now_ns = START_NS
    snapshot = Host([str(tmp_path)], consume=False, clock_ns=lambda: now_ns).collect()
    assert exported(now_ns) == now_ns - hour_ns
    pieces = iter(page.page(snapshot, "")[0])
    next(pieces)
    wrapped.export(snapshot)
    assert exported(now_ns) == now_ns - hour_ns
    for _ in pieces:
        pass
    assert exported(now_ns) == now_ns
    push.fails = True
    later = Host([str(tmp_path)], consume=False, clock_ns=lambda: now_ns + 10**9).collect()
    for _ in page.page(later, "")[0]:
        pass
    try:
        wrapped.export(later)
    except OSError:
        pass
    assert exported(now_ns + 10**9) == now_ns
    assert exported(now_ns + 2 * hour_ns) == now_ns + hour_ns
