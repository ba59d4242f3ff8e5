"""Exports to OpenTelemetry receivers, and the handling of failures."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opscope import __version__
from opscope.bench.scrape import snapshot_of
from opscope.errors import AgentError
from opscope.host.snapshot import Exemplar, SeriesKey, Snapshot
from opscope.metric_definition import Kind
from opscope.metrics import METRICS
from opscope.server.exporter import ExportRefused, PushExporter, load
from tests.exporters.otlp_receiver import Received, over_grpc, over_http, points
from tests.server.test_access import make_certificate

DURATION = "opscope.op.duration"


@pytest.fixture(autouse=True)
def environ(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Retries for a second at most, unless a test sets another time."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "1")
    return monkeypatch


@pytest.fixture
def http() -> Iterator[Received]:
    with over_http() as received:
        yield received


def otlp(received: Received, **options: object) -> PushExporter:
    exporter = load("otlp", {"endpoint": received.endpoint, **options}, {})
    assert isinstance(exporter, PushExporter)
    return exporter


def later(snapshot: Snapshot, seconds: int, factor: int) -> Snapshot:
    """The same host later, with this multiple of its counts."""
    return replace(
        snapshot,
        time_unix_ns=snapshot.time_unix_ns + seconds * 10**9,
        counters=snapshot.counters * np.uint64(factor),
        buckets=snapshot.buckets * np.uint64(factor),
    )


def calls(request: Any) -> dict[str, float]:
    return {
        attribute(point, "op"): point.as_double
        for (_, name), found in points(request).items()
        if name == "opscope.op.calls"
        for point in found
    }


def attribute(point: Any, name: str) -> str:
    (value,) = [one.value.string_value for one in point.attributes if one.key == name]
    return str(value)


def test_everything_is_sent_under_the_resource_of_its_service(
    http: Received, environ: pytest.MonkeyPatch
) -> None:
    environ.setenv("OTEL_RESOURCE_ATTRIBUTES", "k8s.node.name=node%201,service.version=7")
    snapshot = replace(snapshot_of(40, 0), usage={("core.linalg", "service-3"): 2})
    otlp(http).export(snapshot)
    (request,) = http.requests
    resources = {
        attributes["service.name"]: attributes
        for one in request.resource_metrics
        for attributes in [{each.key: each.value.string_value for each in one.resource.attributes}]
    }
    assert set(resources) == {"opscope-agent", *(f"service-{number}" for number in range(20))}
    assert all(one["k8s.node.name"] == "node 1" for one in resources.values())
    # The given version is the agent's.
    assert [one.get("service.version") for one in resources.values()].count("7") == 1
    assert resources["opscope-agent"]["service.version"] == "7"
    assert all(one["host.name"] == one["service.instance.id"] for one in resources.values())
    found = points(request)
    for row, key in enumerate(snapshot.keys):
        (point,) = [p for p in found[key.service, DURATION] if attribute(p, "op") == key.op]
        assert attribute(point, "service_name") == key.service
        assert attribute(point, "model_id") == "m"
        assert point.start_time_unix_nano == snapshot.created_unix_ns[row]
        assert point.time_unix_nano == snapshot.time_unix_ns
    assert found["service-3", "opscope.api.usage"][0].as_double == 2
    assert ("opscope-agent", "opscope.processes") in found
    kinds = {
        metric.name: metric
        for resource in request.resource_metrics
        for metric in resource.scope_metrics[0].metrics
    }
    for metric in METRICS:
        if metric.name in kinds:
            sent = kinds[metric.name]
            assert (sent.unit, sent.description) == (metric.unit, metric.help)
            if metric.kind is Kind.COUNTER:
                assert sent.sum.is_monotonic
                assert sent.sum.aggregation_temporality == 2
            else:
                assert sent.WhichOneof("data") == (
                    "gauge" if metric.kind is Kind.GAUGE else "exponential_histogram"
                )


def test_histograms_are_the_recorders(http: Received) -> None:
    slow = Exemplar(0.3, 1_700_000_000_000_000_000, "ab" * 16, "cd" * 8)
    snapshot = replace(snapshot_of(7, 1), exemplars={2: (slow,)})
    exporter = otlp(http)
    exporter.export(snapshot)
    weights = snapshot.buckets.reshape(7, -1) / 65536
    for row, key in enumerate(snapshot.keys):
        (point,) = points(http.requests[0])[key.service, DURATION]
        assert (point.scale, point.zero_count, point.HasField("min")) == (3, 0, False)
        assert point.sum == snapshot.total_s[row]
        first = np.flatnonzero(np.rint(weights[row]))[0]
        assert point.positive.offset == snapshot.bucket_offset + first
        counts = list(point.positive.bucket_counts)
        assert counts == np.rint(weights[row, first : first + len(counts)]).tolist()
        assert point.count == sum(counts) == np.rint(weights[row]).sum()
        assert len(point.exemplars) == (row == 2)
    (point,) = points(http.requests[0])["service-2", DURATION]
    assert point.exemplars[0].trace_id == bytes.fromhex(slow.trace_id)
    assert point.exemplars[0].span_id == bytes.fromhex(slow.span_id)
    assert point.exemplars[0].as_double == 0.3
    # Each is sent once.
    exporter.export(later(snapshot, 60, 2))
    assert not points(http.requests[1])["service-2", DURATION][0].exemplars


@pytest.mark.parametrize("over", [over_http, over_grpc])
def test_partial_success_is_not_retried(
    environ: pytest.MonkeyPatch, over: Callable[[], AbstractContextManager[Received]]
) -> None:
    protocol = "grpc" if over is over_grpc else "http/protobuf"
    environ.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
    environ.setenv("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "20")
    with over() as received:
        received.partial_success = 3
        exporter = otlp(received)
        for minute in range(2):
            if minute and over is over_grpc:
                # A lost connection: the exporter opens another.
                received.statuses = [503]
            with pytest.raises(
                ExportRefused, match="the receiver rejected 3 points: too many labels"
            ):
                exporter.export(later(snapshot_of(5, 0), 60 * minute, 1 + minute))
        received.partial_success = 0
        exporter.export(later(snapshot_of(5, 0), 180, 3))
        exporter.close()
    assert len(received.requests) == 3
    assert list(calls(received.requests[1]).values()) == (snapshot_of(5, 0).calls * 2).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("count", [2000, 20_000])
def test_a_large_host_is_sent_in_parts_that_receivers_take(
    environ: pytest.MonkeyPatch, count: int
) -> None:
    environ.setenv("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "60")
    environ.setenv("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "grpc")
    snapshot = snapshot_of(count, 0)
    with over_grpc() as received:
        exporter = otlp(received)
        exporter.export(snapshot)
        exporter.close()
    assert len(received.requests) > 1
    # The sizes that gRPC's servers accept by default.
    assert max(one.ByteSize() for one in received.requests) < 4 * 2**20
    by_metric = Counter(
        name for one in received.requests for (_, name), found in points(one).items() for _ in found
    )
    assert by_metric["opscope.op.calls"] == by_metric[DURATION] == count
    assert by_metric["opscope.processes"] == 1
    assert total(received.requests, "service-3", "opscope.op.calls") == sum(
        calls
        for key, calls in zip(snapshot.keys, snapshot.calls.tolist(), strict=True)
        if key.service == "service-3"
    )
    assert all(
        one.scope_metrics[0].metrics for r in received.requests for one in r.resource_metrics
    )


def test_parts_of_the_longest_names_and_fullest_histograms_are_taken(
    environ: pytest.MonkeyPatch,
) -> None:
    environ.setenv("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "60")
    environ.setenv("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "grpc")
    count, octaves = 2000, 40
    # The maximum length in a segment (native/SEGMENT.md).
    keys = tuple(
        SeriesKey("s" * 63, f"{row}".ljust(127, "o"), "forward", (("k" * 31, "v" * 64),) * 2)
        for row in range(count)
    )
    buckets = np.full((count, octaves, 8), 1 << 56, np.uint64)
    with over_grpc() as received:
        exporter = otlp(received)
        exporter.export(replace(snapshot_of(count, 0), keys=keys, buckets=buckets))
        exporter.close()
    assert 3 * 2**20 < max(one.ByteSize() for one in received.requests) < 4 * 2**20


def test_a_rejected_part_does_not_stop_the_others(
    http: Received, environ: pytest.MonkeyPatch
) -> None:
    environ.setenv("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "60")
    exporter = otlp(http)
    snapshot = snapshot_of(5000, 0)
    exporter.export(snapshot)
    parts = len(http.requests)
    assert parts > 5
    http.statuses = [200, 400, 200, 400, 200]
    with pytest.raises(AgentError, match="400"):
        exporter.export(later(snapshot, 60, 2))
    assert len(http.requests) == 2 * parts - 2
    # After two failures in a row, the receiver counts as unreachable.
    http.statuses = [500] * parts
    with pytest.raises(AgentError, match="500"):
        exporter.export(later(snapshot, 120, 3))
    assert len(http.statuses) == parts - 2


def test_the_variables_of_opentelemetry_apply(environ: pytest.MonkeyPatch) -> None:
    with over_http() as received:
        environ.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", received.endpoint.removesuffix("/v1/metrics"))
        environ.setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=secret%201")
        environ.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
        environ.setenv("OTEL_METRIC_EXPORT_INTERVAL", "1500")
        exporter = load("otlp", {}, {})
        assert isinstance(exporter, PushExporter)
        exporter.export(snapshot_of(1, 0))
        assert exporter.interval_s == 1.5
        (headers,) = received.headers
        assert headers["api-key"] == "secret 1"
        assert headers["content-encoding"] == "gzip"
    with over_grpc() as received:
        environ.setenv("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "grpc")
        environ.setenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", received.endpoint)
        exporter = load("otlp", {}, {})
        assert isinstance(exporter, PushExporter)
        exporter.export(snapshot_of(3, 0))
        assert calls(received.requests[0]) == {
            key.op: value
            for key, value in zip(snapshot_of(3, 0).keys, snapshot_of(3, 0).calls, strict=True)
        }
        assert received.headers[0]["api-key"] == "secret 1"
        exporter.close()


def test_a_receiver_with_tls_needs_the_given_certificate(
    tmp_path: Path, environ: pytest.MonkeyPatch
) -> None:
    environ.setenv("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "10")
    certificate = make_certificate(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    environ.setenv("REQUESTS_CA_BUNDLE", make_certificate(other)[0])
    with over_http(certificate) as received:
        environ.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", certificate[0])
        otlp(received).export(snapshot_of(5, 0))
        assert len(received.requests) == 1
        environ.delenv("OTEL_EXPORTER_OTLP_CERTIFICATE")
        environ.setenv("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "2")
        with pytest.raises(AgentError, match="CERTIFICATE_VERIFY_FAILED"):
            otlp(received).export(snapshot_of(5, 0))
        assert len(received.requests) == 1


def test_each_resource_names_the_sdk_and_the_version_of_the_conventions(http: Received) -> None:
    otlp(http).export(snapshot_of(5, 0))
    resources = http.requests[0].resource_metrics
    assert len(resources) > 1
    for one in resources:
        of_one = {pair.key: pair.value.string_value for pair in one.resource.attributes}
        assert of_one["telemetry.sdk.name"] == "opscope"
        assert of_one["telemetry.sdk.language"] == "python"
        assert of_one["telemetry.sdk.version"] == __version__
        assert one.schema_url.startswith("https://opentelemetry.io/schemas/1.")


@pytest.mark.parametrize("status", [400, 401, 404, 413, 500])
def test_a_refusal_loses_nothing_of_what_is_cumulative(http: Received, status: int) -> None:
    exporter = otlp(http)
    first = snapshot_of(5, 0)
    http.statuses = [status]
    with pytest.raises(AgentError, match=str(status)):
        exporter.export(first)
    second = later(first, 60, 2)
    exporter.export(second)
    assert list(calls(http.requests[-1]).values()) == second.calls.tolist()
    assert len(http.requests) == 1


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_retryable_failures_are_retried(
    http: Received, environ: pytest.MonkeyPatch, status: int
) -> None:
    http.statuses = [status]
    environ.setenv("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "60")
    http.retry_after = "0"
    otlp(http).export(snapshot_of(5, 0))
    assert (len(http.headers), len(http.requests)) == (2, 1)


def test_the_export_to_a_hanging_or_missing_receiver_ends(
    http: Received, environ: pytest.MonkeyPatch
) -> None:
    environ.setenv("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "0.2")
    exporter = otlp(http)
    http.go_on.clear()
    with pytest.raises(AgentError):
        exporter.export(snapshot_of(5, 0))
    http.go_on.set()
    nowhere = Received()
    nowhere.endpoint = "http://127.0.0.1:9/v1/metrics"
    # Long enough to retry, and to report the reason.
    environ.setenv("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "2")
    with pytest.raises(AgentError, match=r"http://127\.0\.0\.1:9/v1/metrics: .*refused"):
        otlp(nowhere).export(snapshot_of(5, 0))


def total(requests: list[Any], service: str, name: str) -> float:
    """The sum of all that was sent of a metric."""
    found = (point for one in requests for point in points(one).get((service, name), ()))
    return float(sum(p.count if hasattr(p, "count") else p.as_double for p in found))


@pytest.mark.parametrize("preference", ["delta", "lowmemory"])
def test_deltas_add_up_over_refusals_and_restarts(
    http: Received, environ: pytest.MonkeyPatch, tmp_path: Path, preference: str
) -> None:
    environ.setenv("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", preference)
    file = str(tmp_path / "delta")
    first = snapshot_of(20, 0)
    usage = {("otlp", "failed"): 1}
    exporter = otlp(http, delta_file=file)
    exporter.export(first)
    second = replace(later(first, 60, 2), exports=usage)
    http.statuses = [500]
    with pytest.raises(AgentError):
        exporter.export(second)
    third = replace(later(first, 120, 3), exports=usage)
    exporter.export(third)
    exporter.close()
    # Another agent, which has the first one's sums.
    fourth = replace(later(first, 180, 5), exports={("otlp", "failed"): 4})
    otlp(http, delta_file=file).export(fourth)
    assert len(http.requests) == 3
    for row, key in enumerate(fourth.keys):
        assert total(http.requests, key.service, "opscope.op.calls") == fourth.calls[row]
        weights = fourth.buckets[row] / 65536
        assert total(http.requests, key.service, DURATION) == np.rint(weights).sum()
    assert total(http.requests, "opscope-agent", "opscope.agent.exports") == 4
    starts = [points(one)["service-0", DURATION][0].start_time_unix_nano for one in http.requests]
    assert starts == [first.created_unix_ns[0], first.time_unix_ns, third.time_unix_ns]
    metric = http.requests[0].resource_metrics[0].scope_metrics[0].metrics[0]
    assert metric.sum.aggregation_temporality == 1


def test_deltas_of_halves_add_up_to_the_cumulative_values(
    http: Received, environ: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    halves = np.array([0.5, 1.5, 2.5, 3.5]) * 65536
    first = snapshot_of(4, 0)
    first.buckets[:] = halves.astype(np.uint64)[:, None, None]
    second = later(first, 60, 3)
    otlp(http).export(second)
    environ.setenv("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta")
    exporter = otlp(http, delta_file=str(tmp_path / "delta"))
    exporter.export(first)
    exporter.export(second)
    for key in first.keys:
        told = total(http.requests[1:], key.service, DURATION)
        assert told == total(http.requests[:1], key.service, DURATION)


def test_deltas_after_restarted_sums_are_not_sent_twice(
    http: Received, environ: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    environ.setenv("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta")
    file = str(tmp_path / "delta")
    first = later(snapshot_of(3, 0), 60, 1)
    otlp(http, delta_file=file).export(first)
    # The sums are lost: series 0 continues with an old process, 1 with a new one, 2 unchanged.
    created = first.created_unix_ns + np.array([10**9, 100 * 10**9, 0])
    second = replace(later(first, 120, 2), created_unix_ns=created)
    exporter = otlp(http, delta_file=file)
    exporter.export(second)
    told = calls(http.requests[1])
    # Nothing for series 0: its increase is unknown, and zero is not sent.
    assert list(told.values()) == [second.calls[1], first.calls[2]]
    third = replace(later(first, 180, 3), created_unix_ns=created)
    exporter.export(third)
    assert list(calls(http.requests[2]).values()) == list(first.calls[:3])


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"no file of ours"])
def test_a_damaged_file_of_deltas_is_ignored(
    http: Received, environ: pytest.MonkeyPatch, tmp_path: Path, content: bytes
) -> None:
    environ.setenv("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta")
    file = tmp_path / "delta"
    file.write_bytes(content)
    snapshot = snapshot_of(3, 0)
    otlp(http, delta_file=str(file)).export(snapshot)
    assert list(calls(http.requests[0]).values()) == snapshot.calls.tolist()
