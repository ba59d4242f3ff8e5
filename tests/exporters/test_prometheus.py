"""The Prometheus page: valid for its parsers, and equal to its snapshot."""

import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from prometheus_client.samples import Sample

from opscope.bench.scrape import snapshot_of
from opscope.host.host import Host
from opscope.host.snapshot import Exemplar, SeriesKey, Snapshot
from opscope.metric_definition import Kind
from opscope.metrics import METRICS
from opscope_exporters.prometheus.exporter import Prometheus
from opscope_exporters.samples import CLASSIC_METRICS, OCTAVES, ClassicBuckets, of_host
from tests.examples import examples
from tests.segments.segment_writer import Range, SegmentWriter

# Any text, with more characters that need escaping than by chance.
TEXT = st.text(max_size=20) | st.text(st.sampled_from('\\"\n\0%{},é☃'), max_size=9)
OPENMETRICS = "application/openmetrics-text; version=1.0.0"
ADD = "numpy::add"
DURATIONS = (3e-8, 2e-6, 9.5e-7, 1.3e-3, 1.7e-3, 0.3, 17.0, 40.0)


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    writer = SegmentWriter(record_cost_ps=25_000, dropped_count=3).add(
        [Range("numpy::add", duration, 2, 1.25, self_s=duration) for duration in DURATIONS]
    )
    labels = (("model_id", 'a "b"\\c'), ("op", "mine"))
    writer.op_id("aten::mm", extra_cost_ps=200_000)
    writer.add([Range("aten::mm", 1.0, 3, phase=2, labels=labels, failed=True, bytes=64)])
    writer.usage("core.linalg")
    for value, kind, name in ((300, 1, "allocated"), (100, 2, "live"), (200, 3, "peak")):
        writer.metric(f"opscope.memory.{name}", "caching", value, kind)
    writer.notes({"service.name": "training", "bridge.numpy": "attached"})
    writer.write(tmp_path)
    (tmp_path / "1-1-0000000000000000.seg").touch()
    found = Host([str(tmp_path)], consume=False).collect()
    return replace(found, exports={("otlp", "sent"): 3})


def page(snapshot: Snapshot, accept: str = "", octaves: float = 1) -> str:
    return b"".join(Prometheus(octaves).page(snapshot, accept)[0]).decode()


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
    for metric in CLASSIC_METRICS:
        family = families[metric.prometheus_name]
        assert family.type == metric.kind.value
        assert family.documentation == metric.help
        assert bool(family.samples) == (metric.of_series or bool(of_host(metric, snapshot)))


def test_values_are_those_of_the_ranges(snapshot: Snapshot) -> None:
    found = {
        (sample.name, sample.labels.get("op")): sample.value for sample in samples(page(snapshot))
    }
    add, mm = "numpy::add", "aten::mm"
    assert found["opscope_op_duration_seconds_count", add] == len(DURATIONS) * 2 * 1.25
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
        19 * 25e-9 + 3 * 200e-9, abs=1e-9
    )
    assert found["opscope_processes", None] == 1
    assert found["opscope_segments_bad_total", None] == 1


@pytest.mark.parametrize("octaves", OCTAVES.choices)
def test_buckets_are_exact_sums(snapshot: Snapshot, octaves: float) -> None:
    buckets = [
        (float(sample.labels["le"]), sample.value)
        for sample in samples(page(snapshot, octaves=octaves))
        if sample.name.endswith("_bucket") and sample.labels["op"] == "numpy::add"
    ]
    assert buckets[-1][0] == float("inf")
    assert buckets[-2][0] == 16.0
    for bound, count in buckets:
        assert count == round(sum(2.5 for duration in DURATIONS if duration <= bound))


def bounds(text: str, op: str) -> list[float]:
    """The upper bounds of the operator's buckets."""
    return [
        float(sample.labels["le"])
        for sample in samples(text)
        if sample.name.endswith("_bucket") and sample.labels["op"] == op
    ]


def test_bounds_are_powers_of_two_and_the_same_on_every_machine() -> None:
    assert ClassicBuckets().bounds == [2.0**power for power in range(-22, 5)]
    for octaves in OCTAVES.choices:
        assert isinstance(octaves, float)
        found = np.array(ClassicBuckets(octaves).bounds)
        assert found == pytest.approx(16 / 2 ** (octaves * np.arange(len(found))[::-1]), rel=1e-15)
        # Bounds of a coarse setting are exactly bounds of a finer one, so that hosts can be summed.
        assert {*map(repr, found.tolist())} <= {*map(repr, ClassicBuckets(0.125).bounds)}


def test_buckets_below_the_shortest_range_are_left_out(snapshot: Snapshot) -> None:
    """One of them stays: without it PromQL assumes that the shortest range's bucket begins at 0."""
    of_mm = bounds(page(snapshot), "aten::mm")
    # Its bucket spans 1 s to 2 s.
    assert of_mm == [1.0, 2.0, 4.0, 8.0, 16.0, float("inf")]
    assert bounds(page(snapshot), "numpy::add") == [*ClassicBuckets().bounds, float("inf")]
    # The same in OpenMetrics, and sums over series are complete.
    assert bounds(page(snapshot, OPENMETRICS), "aten::mm") == of_mm


def with_durations(*octaves: int) -> Snapshot:
    """One series with a range of 2^octave s for each of these."""
    snapshot = snapshot_of(1, 0)
    buckets = np.zeros((1, 40, 8), np.uint64)
    for octave in octaves:
        buckets[0, octave + 30, 0] += 65536
    return replace(snapshot, buckets=buckets, first_octave=10)


def test_a_bucket_once_written_stays() -> None:
    earlier: set[float] = set()
    ran: list[int] = []
    for octave in (-5, -3, -9, -9, 2, -20, -28, 7):
        ran.append(octave)
        text = page(with_durations(*ran))
        (op,) = {sample.labels["op"] for sample in samples(text) if "op" in sample.labels}
        now = set(bounds(text, op))
        assert earlier <= now
        earlier = now


def test_quantiles_of_sums_do_not_depend_on_what_is_left_out() -> None:
    """As PromQL computes them: adds the counts of series by bound."""
    short, long = with_durations(*[-15] * 60), with_durations(*[-4] * 30, *[-2] * 10)
    summed: Counter[float] = Counter()
    for one in (short, long):
        for sample in samples(page(one)):
            if sample.name.endswith("_bucket"):
                summed[float(sample.labels["le"])] += round(sample.value)
    both = with_durations(*[-15] * 60, *[-4] * 30, *[-2] * 10)
    truth = {
        float(sample.labels["le"]): round(sample.value)
        for sample in samples(page(both))
        if sample.name.endswith("_bucket")
    }
    assert summed == Counter(truth)


def test_values_that_were_always_zero_are_absent(snapshot: Snapshot) -> None:
    idle = replace(
        snapshot,
        counters=np.zeros_like(snapshot.counters),
        buckets=np.zeros_like(snapshot.buckets),
        variances=np.zeros_like(snapshot.variances),
    )
    for accept in ("", OPENMETRICS):
        assert [line for line in page(idle, accept).splitlines() if "op=" in line] == []
    names = {sample.name for sample in samples(page(snapshot)) if sample.labels.get("op") == ADD}
    assert "opscope_op_errors_total" not in names
    assert "opscope_op_samples_total" in names


def test_calls_are_on_the_page_once(snapshot: Snapshot) -> None:
    """For classic histograms this is the count."""
    assert "opscope_op_calls_total" not in page(snapshot)
    assert "opscope_op_calls_total" not in page(snapshot, OPENMETRICS)


def test_labels_say_whose_it_is(snapshot: Snapshot) -> None:
    (labels,) = (
        sample.labels
        for sample in samples(page(snapshot))
        if sample.name == "opscope_op_duration_seconds_count" and sample.labels["op"] == "aten::mm"
    )
    assert labels == {
        "service_name": "training",
        "op": "aten::mm",
        "phase": "backward",
        "framework": "torch",
        "model_id": 'a "b"\\c',
        "label_op": "mine",
    }


def test_no_series_occurs_twice(snapshot: Snapshot) -> None:
    names = Counter((s.name, *sorted(s.labels.items())) for s in samples(page(snapshot)))
    assert max(names.values()) == 1


def test_names_follow_the_rule_for_opentelemetrys() -> None:
    names = {metric.name: metric.prometheus_name for metric in METRICS}
    assert names["opscope.op.duration"] == "opscope_op_duration_seconds"
    assert names["opscope.op.memory.allocated"] == "opscope_op_memory_allocated_bytes"
    assert all(not name.endswith("_total") for name in names.values())
    assert {metric.kind for metric in METRICS} == set(Kind)


def test_exemplars_follow_their_bucket_in_openmetrics_only(snapshot: Snapshot) -> None:
    row = [key.op for key in snapshot.keys].index("aten::mm")
    slow = Exemplar(1.0, 1_700_000_000_500_000_000, "ab" * 16, "cd" * 8)
    with_one = replace(snapshot, exemplars={row: (slow,)})
    found = {
        sample.labels["le"]: sample.exemplar
        for family in parse_openmetrics(page(with_one, OPENMETRICS))
        for sample in family.samples
        if sample.exemplar
    }
    assert set(found) == {"1.0"}
    assert found["1.0"].labels == {"trace_id": slow.trace_id, "span_id": slow.span_id}
    assert found["1.0"].value == 1.0
    assert str(found["1.0"].timestamp) == "1700000000.500000000"
    assert page(with_one) == page(snapshot)


@examples(20)
@given(TEXT, TEXT)
def test_any_label_value_is_read_back(service: str, value: str) -> None:
    key = SeriesKey(service, "a", "forward", (("model", value),))
    snapshot = replace(snapshot_of(1, 0), keys=(key,))
    # Characters that no text can contain, half a surrogate pair or NUL, become "?".
    expected = [
        text.encode(errors="replace").decode().replace("\0", "?") for text in (service, value)
    ]
    for text in (page(snapshot), page(snapshot, OPENMETRICS)):
        # The parser splits lines at more than \n, which Prometheus does not.
        lines = [
            line
            for line in text.split("\n")
            if line.startswith("opscope_op_duration_seconds_count{")
        ]
        (line,) = lines
        assert _unescaped(line) == ["forward", *expected]


def _unescaped(line: str) -> list[str]:
    found = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', line))
    plain = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}
    return [
        re.sub(r'\\[\\"n]', lambda escape: plain[escape[0]], found[name])
        for name in ("phase", "service_name", "model")
    ]


def test_target_info_is_the_resource(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "k8s.node.name=node%201,service.name=no")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "mine")
    for accept, kind in (("", "gauge"), (OPENMETRICS, "info")):
        text = page(snapshot, accept)
        assert f"# TYPE target{'_info' * (kind == 'gauge')} {kind}\n" in text
        (line,) = [line for line in text.splitlines() if line.startswith("target_info{")]
        assert 'k8s_node_name="node 1"' in line
        assert 'service_name="mine"' in line
        assert line.endswith("} 1")


@pytest.mark.parametrize("accept", ["text/plain", OPENMETRICS])
def test_the_page_has_the_metrics_that_every_program_has(tmp_path: Path, accept: str) -> None:
    text = page(Host([str(tmp_path)], consume=False).collect(), accept)
    found = {name: float(value) for name, value in re.findall(r"^(process_\w+) (\S+)$", text, re.M)}
    assert [*(parse_openmetrics(text) if accept == OPENMETRICS else parse_text(text))]
    assert found["process_cpu_seconds_total"] > 0
    assert found["process_resident_memory_bytes"] > 1 << 20
    assert found["process_virtual_memory_bytes"] > found["process_resident_memory_bytes"]
    assert 3 <= found["process_open_fds"] < found["process_max_fds"]
    with open("/proc/uptime") as uptime:
        booted = time.time() - float(uptime.read().split()[0])
    assert booted <= found["process_start_time_seconds"] <= time.time()
