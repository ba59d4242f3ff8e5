"""The Prometheus page: valid for its parsers, and equal to the snapshot it was made from."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from prometheus_client.samples import Sample

from opscope.agent.exporter import load
from opscope.agent.host import Host
from opscope.agent.snapshot import Snapshot
from opscope.errors import AgentError
from opscope.metrics import METRICS, Kind
from opscope_exporters.prometheus import create
from tests.agent.segment_writer import Range, SegmentWriter

OPENMETRICS = "application/openmetrics-text; version=1.0.0"
DURATIONS = (3e-8, 2e-6, 9.5e-7, 1.3e-3, 1.7e-3, 0.3, 17.0, 40.0)


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    writer = SegmentWriter(record_cost_ps=25_000, dropped_count=3).add(
        [Range("numpy::add", duration, 2, 1.25, self_s=duration) for duration in DURATIONS]
    )
    labels = (("model_id", 'a "b"\\c'), ("op", "mine"))
    writer.add([Range("aten::mm", 1.0, 3, phase=2, labels=labels, failed=True, bytes=64)])
    writer.usage("core.linalg")
    for value, kind, name in ((300, 1, "allocated"), (100, 2, "live"), (200, 3, "peak")):
        writer.metric(f"opscope.memory.{name}", "caching", value, kind)
    writer.notes({"service.name": "training", "bridge.numpy": "attached"})
    writer.write(tmp_path)
    (tmp_path / "1-1-0000000000000000.seg").touch()
    return Host([str(tmp_path)], consume=False).collect()


def page(snapshot: Snapshot, accept: str = "", **options: str) -> str:
    return create(options).page(snapshot, accept)[0].decode()


def parse_openmetrics(text: str) -> Iterator[Family]:
    families: Iterator[Family] = openmetrics.text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
    return families


def samples(text: str) -> list[Sample]:
    return [sample for family in parse_text(text) for sample in family.samples]


def test_the_strict_openmetrics_parser_takes_the_page(snapshot: Snapshot) -> None:
    families = {family.name: family for family in parse_openmetrics(page(snapshot, OPENMETRICS))}
    assert families["opscope_op_duration_seconds"].unit == "seconds"
    created = [
        sample.value
        for sample in families["opscope_op_duration_seconds"].samples
        if sample.name.endswith("_created")
    ]
    assert created == pytest.approx((snapshot.created_unix_ns / 1e9).tolist())


def test_text_and_openmetrics_say_the_same(snapshot: Snapshot) -> None:
    in_openmetrics = [
        sample
        for family in parse_openmetrics(page(snapshot, OPENMETRICS))
        for sample in family.samples
        if not sample.name.endswith("_created")
    ]
    assert samples(page(snapshot)) == in_openmetrics


def test_every_metric_of_the_table_is_on_the_page(snapshot: Snapshot) -> None:
    families = {family.name: family for family in parse_text(page(snapshot))}
    for metric in METRICS:
        family = families[metric.prometheus_name]
        assert family.type == metric.kind.value
        assert family.documentation == metric.help
        assert family.samples


def test_values_are_those_of_the_ranges(snapshot: Snapshot) -> None:
    found = {
        (sample.name, sample.labels.get("op")): sample.value for sample in samples(page(snapshot))
    }
    add, mm = "numpy::add", "aten::mm"
    assert found["opscope_op_calls_total", add] == len(DURATIONS) * 2 * 1.25
    assert found["opscope_op_samples_total", add] == len(DURATIONS) * 2
    assert found["opscope_op_self_time_seconds_total", add] == pytest.approx(
        sum(DURATIONS) * 2.5, abs=1e-8
    )
    assert ("opscope_op_self_time_seconds_total", mm) not in found
    assert found["opscope_op_errors_total", mm] == 3
    assert found["opscope_op_memory_allocated_bytes_total", mm] == 192
    assert ("opscope_op_memory_allocated_bytes_total", add) not in found
    assert found["opscope_op_duration_seconds_sum", mm] == 3.0
    assert found["opscope_recorder_dropped_total", None] == 3
    assert found["opscope_recorder_overhead_seconds_total", None] == pytest.approx(
        19 * 25e-9, abs=1e-9
    )
    assert found["opscope_processes", None] == 1
    assert found["opscope_segments_bad_total", None] == 1


@pytest.mark.parametrize("octaves", ["1", "2", "4"])
def test_buckets_are_exact_sums(snapshot: Snapshot, octaves: str) -> None:
    buckets = [
        (float(sample.labels["le"]), sample.value)
        for sample in samples(page(snapshot, octaves=octaves))
        if sample.name.endswith("_bucket") and sample.labels["op"] == "numpy::add"
    ]
    assert buckets[-1][0] == float("inf")
    assert buckets[-2][0] == 16.0
    for bound, count in buckets:
        assert count == round(sum(2.5 for duration in DURATIONS if duration <= bound))


def test_labels_say_whose_it_is(snapshot: Snapshot) -> None:
    (labels,) = (
        sample.labels
        for sample in samples(page(snapshot))
        if sample.name == "opscope_op_calls_total" and sample.labels["op"] == "aten::mm"
    )
    assert labels == {
        "service": "training",
        "op": "aten::mm",
        "phase": "backward",
        "framework": "torch",
        "model_id": 'a "b"\\c',
        "label_op": "mine",
    }


def test_no_series_stands_twice(snapshot: Snapshot) -> None:
    names = Counter((s.name, *sorted(s.labels.items())) for s in samples(page(snapshot)))
    assert max(names.values()) == 1


def test_names_follow_the_rule_for_opentelemetrys() -> None:
    names = {metric.name: metric.prometheus_name for metric in METRICS}
    assert names["opscope.op.duration"] == "opscope_op_duration_seconds"
    assert names["opscope.op.memory.allocated"] == "opscope_op_memory_allocated_bytes"
    assert all(not name.endswith("_total") for name in names.values())
    assert {metric.kind for metric in METRICS} == set(Kind)


def test_an_unknown_option_or_value_is_refused() -> None:
    with pytest.raises(AgentError, match="no option 'octave'; known: octaves"):
        load("prometheus", {"octave": "2"})
    with pytest.raises(AgentError, match="octaves='3'"):
        load("prometheus", {"octaves": "3"})
    with pytest.raises(AgentError, match=r"no exporter 'statsd'; installed: .*prometheus"):
        load("statsd")
