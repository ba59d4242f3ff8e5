"""The measurement of a large fleet, on a small one with accelerated time."""

from pathlib import Path

import pytest

from opscope.host.snapshot import Snapshot
from opscope.server.exporter import PageExporter, load
from tests.dashboards.documents import RULES, boards
from tests.dashboards.many_hosts import Growing, doubled, fleets, series_of_an_operator
from tests.dashboards.pace import in_rules
from tests.dashboards.scale import Plan, measure, report
from tests.exporters.conftest import debian, new_prometheus  # noqa: F401

PROTOBUF = (
    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
)


def test_an_operator_has_as_many_series_as_its_page_has_samples() -> None:
    (fleet,) = fleets(1, 200, 1, native=False)
    exporter = load("prometheus", {}, {})
    assert isinstance(exporter, PageExporter)
    pieces, _ = exporter.page(fleet.snapshot(0, 1), "text/plain")
    lines = [line for line in b"".join(pieces).splitlines() if line.startswith(b"opscope_op_")]
    each = len(lines) / fleet.operators
    assert each == pytest.approx(series_of_an_operator(native=False), rel=0.1)
    assert series_of_an_operator(native=True) == 7


def test_a_growing_page_is_what_the_exporter_writes() -> None:
    (fleet,) = fleets(1, 300, 1, native=True)
    exporter = load("prometheus", {}, {})
    assert isinstance(exporter, PageExporter)

    def written(snapshot: Snapshot) -> bytes:
        return b"".join(exporter.page(snapshot, PROTOBUF)[0])

    once = fleet.snapshot(0, 1)
    growing = Growing(written(once), written(doubled(once)))
    assert growing.at(1) == written(once)
    assert growing.at(2) == written(doubled(once))
    assert growing.at(8) == written(doubled(doubled(doubled(once))))


def test_rules_are_paced_whole() -> None:
    text = "interval: 1m\n record: a:rate5m\n expr: rate(a[5m] offset 1h)\n for: 10m"
    assert in_rules(text, 0.1) == (
        "interval: 6000ms\n record: a:rate5m\n expr: rate(a[30000ms] offset 360000ms)\n"
        " for: 60000ms"
    )
    for path in RULES.glob("*.yml"):
        assert in_rules(path.read_text(), 1).count("000ms") > 10


@pytest.mark.usefixtures("new_prometheus")
def test_a_small_fleet_is_measured_whole(tmp_path: Path) -> None:
    plan = Plan(hosts=4, series=150, services=2, seconds=60, pace=0.1, spare_mib=0)
    result = measure(plan, tmp_path)
    assert not result.stopped
    assert result.scrapes_up == 1
    assert 4 * 120 < result.series < 4 * 300
    assert result.samples_per_s > result.histograms_per_s > 0
    assert result.resident_mib > 0
    assert result.chunk_bytes_per_sample > 0
    assert result.index_bytes_per_series > 0
    assert all(group.interval_s > 0 for group in result.groups.values())
    assert [one.board for one in result.openings] == [one["title"] for one in boards().values()]
    assert not [failed for one in result.openings for failed in one.failed]
    said = report(result)
    assert all(f"| {one.board} |" in said for one in result.openings)
    assert all(f"| {name.rpartition(';')[2]} |" in said for name in result.groups)
