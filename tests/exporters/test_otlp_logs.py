"""API usage as log records over OTLP: once for each process and API, and never twice."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from opscope import __version__
from opscope.bench.scrape import snapshot_of
from opscope.errors import AgentError, ConfigError
from opscope.host.ended_processes import EndedProcesses
from opscope.host.health import Health
from opscope.host.host import Host
from opscope.host.snapshot import Process, Snapshot
from opscope.server.exporter import ExportRefused, PushExporter, load
from opscope_exporters.resource import SCHEMA_URL
from tests.exporters.hostile_receiver import dribbling, hostile, said
from tests.exporters.otlp_receiver import (
    LOGS_PATH,
    Received,
    attributes,
    log_records,
    over_grpc,
    over_http,
)
from tests.segments.segment_writer import Process as Program
from tests.segments.segment_writer import SegmentWriter

TIMEOUT_S = 1.0


@pytest.fixture(autouse=True)
def environ(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_LOGS_TIMEOUT", f"{TIMEOUT_S:g}")
    return monkeypatch


@pytest.fixture
def http() -> Iterator[Received]:
    with over_http() as received:
        received.endpoint = received.endpoint.replace("/v1/metrics", LOGS_PATH)
        yield received


@pytest.fixture
def sent(tmp_path: Path) -> Path:
    return tmp_path / "agent.otlp-logs"


def exporter(endpoint: str, sent: Path) -> PushExporter:
    made = load("otlp_logs", {"endpoint": endpoint, "sent_file": str(sent)}, {})
    assert isinstance(made, PushExporter)
    return made


def process(pid: int, *apis: str, group: str = "", service: str = "train") -> Process:
    notes = {"service.name": service}
    usage = tuple((api, service) for api in apis)
    return Process(pid, 1000, 7, True, 1, 1.0, 0, 0, Health(), notes, (), group=group, usage=usage)


def snapshot(*processes: Process, ended: tuple[Process, ...] = ()) -> Snapshot:
    over = tuple(one._replace(is_alive=False) for one in ended)
    return replace(snapshot_of(1, 0), processes=processes, ended=over)


def uses(received: Received) -> list[tuple[int, str]]:
    found = [attributes(record) for _, _, record in log_records(received.requests)]
    return sorted((one["process.pid"], one["api"]) for one in found)


def test_a_use_is_an_event_under_the_resource_of_its_processes(
    http: Received, sent: Path, environ: pytest.MonkeyPatch
) -> None:
    environ.setenv("OTEL_RESOURCE_ATTRIBUTES", "k8s.cluster.name=c1,service.version=7")
    one = replace(
        snapshot(process(5, "torch.compile", group="ab"), process(6, "x")),
        groups={"ab": (("k8s.pod.name", "pod-1"),)},
    )
    exporter(http.endpoint, sent).export(one)
    assert uses(http) == [(5, "torch.compile"), (6, "x")]
    (resource, scope, record), (other, _, other_record) = log_records(http.requests)
    of_pod = attributes(resource.resource)
    assert (of_pod["service.name"], of_pod["k8s.pod.name"]) == ("train", "pod-1")
    assert (of_pod["k8s.cluster.name"], of_pod["telemetry.sdk.name"]) == ("c1", "opscope")
    assert "service.version" not in of_pod
    assert "k8s.pod.name" not in attributes(other.resource)
    assert resource.schema_url == scope.schema_url == SCHEMA_URL
    assert (scope.scope.name, scope.scope.version) == ("opscope", __version__)
    assert record.event_name == "opscope.api.usage"
    assert (record.severity_number, record.severity_text) == (9, "INFO")
    # When it happened is unknown.
    assert (record.time_unix_nano, record.observed_time_unix_nano) == (0, one.time_unix_ns)
    assert record.body.string_value == "first use of torch.compile"
    found = attributes(record)
    uid = found.pop("log.record.uid")
    assert found == {"api": "torch.compile", "service_name": "train", "process.pid": 5}
    assert len(uid) == 32
    assert uid != attributes(other_record)["log.record.uid"]


@pytest.mark.parametrize("over", [over_http, over_grpc])
def test_each_use_is_sent_once_and_not_again_after_a_restart(
    over: Callable[[], AbstractContextManager[Received]],
    sent: Path,
    environ: pytest.MonkeyPatch,
) -> None:
    if over is over_grpc:
        environ.setenv("OTEL_EXPORTER_OTLP_LOGS_PROTOCOL", "grpc")
    with over() as received:
        endpoint = received.endpoint.replace("/v1/metrics", LOGS_PATH)
        first = exporter(endpoint, sent)
        first.export(snapshot(process(5, "a", "b")))
        first.export(snapshot(process(5, "a", "b")))
        assert len(received.requests) == 1
        first.export(snapshot(process(5, "a", "b", "c"), ended=(process(8, "a"),)))
        assert uses(received) == [(5, "a"), (5, "b"), (5, "c"), (8, "a")]
        first.close()
        again = exporter(endpoint, sent)
        again.export(snapshot(process(5, "a", "b", "c"), ended=(process(8, "a"),)))
        assert len(received.requests) == 2
        # Another process with the same pid.
        again.export(snapshot(process(5, "a")._replace(process_start=9)))
        assert uses(received).count((5, "a")) == 2
        # A process that was in no snapshot for an hour is forgotten.
        saved = json.loads(sent.read_text())["sent"]
        assert {*saved} == {"1000-0-5-7", "1000-0-8-7", "1000-0-5-9"}
        now = snapshot(process(5, "a", "b", "c"))
        again.export(replace(now, time_unix_ns=now.time_unix_ns + 3700 * 10**9))
        assert {*json.loads(sent.read_text())["sent"]} == {"1000-0-5-7"}
        again.close()


def test_what_was_sent_before_a_reboot_says_nothing_of_todays_pids(
    http: Received, sent: Path
) -> None:
    exporter(http.endpoint, sent).export(snapshot(process(5, "a")))
    sent.write_text(sent.read_text().replace('"boot": "', '"boot": "0'))
    exporter(http.endpoint, sent).export(snapshot(process(5, "a")))
    assert uses(http) == [(5, "a")] * 2


@pytest.mark.parametrize(
    "raw", [b"", b"\xff", b"[]", b'{"version": 1}', b"[" * 100_000, b'{"version":1,"sent":[]}']
)
def test_a_damaged_file_is_as_none(http: Received, sent: Path, raw: bytes) -> None:
    sent.write_bytes(raw)
    exporter(http.endpoint, sent).export(snapshot(process(5, "a")))
    assert uses(http) == [(5, "a")]


def test_uses_wait_until_the_receiver_takes_them(http: Received, sent: Path) -> None:
    push = exporter(http.endpoint, sent)
    http.statuses = [503] * 9
    for _ in range(2):
        with pytest.raises(AgentError, match="Failed to export") as caught:
            push.export(snapshot(process(5, "a"), ended=(process(8, "z"),)))
        assert not isinstance(caught.value, ExportRefused)
    http.statuses.clear()
    # The one that ended is in no snapshot any more.
    push.export(snapshot(process(5, "a")))
    assert uses(http) == [(5, "a"), (8, "z")]


@pytest.mark.parametrize(("over", "status"), [(over_http, 400), (over_http, 404), (over_grpc, 3)])
def test_refused_records_are_not_sent_to_that_receiver_again(
    over: Callable[[], AbstractContextManager[Received]],
    status: int,
    sent: Path,
    environ: pytest.MonkeyPatch,
) -> None:
    if over is over_grpc:
        environ.setenv("OTEL_EXPORTER_OTLP_LOGS_PROTOCOL", "grpc")
    with over() as received:
        endpoint = received.endpoint.replace("/v1/metrics", LOGS_PATH)
        push = exporter(endpoint, sent)
        received.statuses = [status]
        with pytest.raises(ExportRefused, match="rejected 1 log record"):
            push.export(snapshot(process(5, "a")))
        push.export(snapshot(process(5, "a", "b")))
        assert uses(received) == [(5, "b")]
        # A later agent may have a receiver that takes them.
        exporter(endpoint, sent).export(snapshot(process(5, "a", "b")))
        assert uses(received) == [(5, "a"), (5, "b")]


def test_partial_success_is_reported_and_not_repeated(http: Received, sent: Path) -> None:
    http.partial_success = 1
    push = exporter(http.endpoint, sent)
    with pytest.raises(ExportRefused, match="rejected 1 log records: no room"):
        push.export(snapshot(process(5, "a", "b")))
    push.export(snapshot(process(5, "a", "b")))
    assert len(http.requests) == 1


def test_the_queue_and_the_batches_are_bounded(
    http: Received, sent: Path, environ: pytest.MonkeyPatch
) -> None:
    environ.setenv("OTEL_BLRP_MAX_QUEUE_SIZE", "5")
    environ.setenv("OTEL_BLRP_MAX_EXPORT_BATCH_SIZE", "2")
    push = exporter(http.endpoint, sent)
    live = process(5, *"abcd")
    with pytest.raises(ExportRefused, match="2 log records were dropped"):
        push.export(snapshot(live, ended=(process(8, *"xyz"),)))
    assert [len(log_records([one])) for one in http.requests] == [2, 2, 1]
    # A live process's uses find room later.
    push.export(snapshot(process(5, *"abcdefgh")))
    push.export(snapshot(process(5, *"abcdefghi")))
    assert uses(http) == sorted([(5, one) for one in "abcdefghi"] + [(8, "x")])


def test_an_ended_process_is_kept_until_every_exporter_has_exported() -> None:
    ended = EndedProcesses(limit=4)
    ended.add([process(1, "a", "b"), None, process(2)], 10)
    ended.add([process(3, "a", "b")], 20)
    assert [one.pid for one in ended.left(9)] == [1, 3]
    assert [one.pid for one in ended.left(10)] == [3]
    ended.add([process(4, "a", "b", "c")], 30)
    assert ([one.pid for one in ended.left(10)], ended.gone) == ([4], 4)


def test_what_was_dropped_before_an_export_is_reported_and_nothing_else(
    http: Received, sent: Path
) -> None:
    push, ended = exporter(http.endpoint, sent), EndedProcesses(limit=2)
    now = 0

    def pass_with(*processes: Process) -> Snapshot:
        nonlocal now
        now += 1
        ended.add([one._replace(is_alive=False) for one in processes], now)
        return replace(snapshot(), ended=ended.left(0), ended_gone=ended.gone)

    push.export(pass_with(process(1, "a", "b")))
    # It gives way to the next, but was exported.
    push.export(pass_with(process(2, "a", "b")))
    pass_with(process(3, "a", "b"))
    with pytest.raises(ExportRefused, match="2 log records were dropped"):
        push.export(pass_with(process(4, "a", "b")))
    assert {pid for pid, _ in uses(http)} == {1, 2, 4}


def test_a_process_between_two_exports_is_seen(tmp_path: Path, http: Received, sent: Path) -> None:
    place = tmp_path / "segments"
    place.mkdir(mode=0o700)
    host = Host([str(place)], consume=True)
    assert host.collect().ended == ()
    writer = SegmentWriter(Program(process_start=1))
    writer.note("service.name", "short")
    writer.usage("core.linalg")
    writer.write(place)
    # A page in between takes the file away.
    host.collect()
    found = host.collect()
    assert (found.processes, [*place.iterdir()]) == ((), [])
    exporter(http.endpoint, sent).export(found)
    assert uses(http) == [(os.getpid(), "core.linalg")]


@pytest.mark.parametrize(
    "answer",
    [
        said(b"HTTP/1.1 200 OK\nContent-Length: 2097152", bytes(2 << 20)),
        dribbling(b"HTTP/1.1 200 OK\nContent-Length: 9999\n\n", b"x"),
        said(b"HTTP/1.1 2"),
        said(b"no HTTP"),
    ],
)
def test_no_answer_takes_more_than_the_timeout(
    answer: Callable[..., object], sent: Path, environ: pytest.MonkeyPatch
) -> None:
    with hostile(answer) as receiver:
        push = exporter(receiver.url, sent)
        with pytest.raises(AgentError) as caught:
            push.export(snapshot(process(5, "a")))
        assert not isinstance(caught.value, ExportRefused)
        assert str(caught.value).isprintable()
        assert 1 <= receiver.requests <= 4


def test_a_damaged_answer_of_success_is_success(sent: Path) -> None:
    with hostile(said(b"HTTP/1.1 200 OK\nContent-Length: 3", b"\xff\xff\xff")) as receiver:
        push = exporter(receiver.url, sent)
        push.export(snapshot(process(5, "a")))
        push.export(snapshot(process(5, "a")))
        assert receiver.requests == 1


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("OTEL_LOGS_EXPORTER", "none", "OTEL_LOGS_EXPORTER='none': turns off"),
        ("OTEL_LOGS_EXPORTER", "nobody", "no exporter 'nobody'; known: console, otlp_proto"),
        ("OTEL_BLRP_MAX_QUEUE_SIZE", "0", "OTEL_BLRP_MAX_QUEUE_SIZE='0': must be"),
        ("OTEL_BLRP_SCHEDULE_DELAY", "soon", "OTEL_BLRP_SCHEDULE_DELAY='soon': must be"),
        ("OTEL_EXPORTER_OTLP_LOGS_TIMEOUT", "0", "OTEL_EXPORTER_OTLP_LOGS_TIMEOUT='0': must be"),
    ],
)
def test_a_variable_that_cannot_be_used_is_named(
    environ: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    environ.setenv(name, value)
    with pytest.raises((AgentError, ConfigError), match=said):
        load("otlp_logs", {}, {})


def test_the_variables_say_where_to(
    http: Received, sent: Path, environ: pytest.MonkeyPatch
) -> None:
    environ.setenv("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", http.endpoint)
    environ.setenv("OTEL_EXPORTER_OTLP_LOGS_HEADERS", "tenant=a")
    environ.setenv("OTEL_BLRP_SCHEDULE_DELAY", "5000")
    push = exporter("", sent)
    assert push.interval_s == 5
    push.export(snapshot(process(5, "a")))
    assert http.headers[0]["tenant"] == "a"
