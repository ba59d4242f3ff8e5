"""A receiver of OTLP cannot take more of the agent's time and memory than its settings allow."""

import email.utils
import socket
import sys
import threading
import time
import tracemalloc
from pathlib import Path

import pytest
from google.rpc.error_details_pb2 import RetryInfo  # type: ignore[import-untyped]

from opscope.bench.scrape import snapshot_of
from opscope.errors import AgentError, ConfigError
from opscope.server.exporter import PushExporter, load
from tests.exporters.hostile_receiver import Hostile, dribbling, hostile, said
from tests.exporters.otlp_receiver import over_grpc, over_http
from tests.waiting import until

TIMEOUT_S = 60


@pytest.fixture(autouse=True)
def environ(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "1")
    return monkeypatch


def otlp(receiver: Hostile) -> PushExporter:
    exporter = load("otlp", {"endpoint": f"{receiver.url}/v1/metrics"}, {})
    assert isinstance(exporter, PushExporter)
    return exporter


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (b"HTTP/1.1 200 OK\nContent-Length: 1000000\n\n", b"x"),
        (b"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n", b"1\r\nx\r\n"),
        (b"HTTP/1.1 200 OK\nX: ", b"x"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
    ids=["body", "chunks", "header", "continue"],
)
def test_a_slow_answer_is_given_up(head: bytes, piece: bytes) -> None:
    with hostile(dribbling(head, piece)) as receiver:
        begun = time.monotonic()
        with pytest.raises(AgentError):
            otlp(receiver).export(snapshot_of(5, 0))
        assert time.monotonic() - begun < TIMEOUT_S


def test_a_name_lookup_that_hangs_is_given_up_and_keeps_one_thread(
    environ: pytest.MonkeyPatch,
) -> None:
    name, real = "collector.invalid", socket.getaddrinfo
    ended = threading.Event()

    def hangs(host: str, *arguments: object, **options: object) -> object:
        if host != name or options.get("flags"):
            return real(host, *arguments, **options)  # type: ignore[arg-type]
        ended.wait()
        return real("127.0.0.1", *arguments, **options)  # type: ignore[arg-type]

    environ.setattr(socket, "getaddrinfo", hangs)
    before = threading.active_count()
    lookups: list[threading.Thread] = []
    with hostile(said(b"HTTP/1.1 200 OK\nContent-Length: 0")) as receiver:
        port = receiver.url.rpartition(":")[2]
        exporter = load("otlp", {"endpoint": f"http://{name}:{port}/v1/metrics"}, {})
        assert isinstance(exporter, PushExporter)
        try:
            for _ in range(2):
                with pytest.raises(AgentError, match=name):
                    exporter.export(snapshot_of(5, 0))
                lookups = [one for one in threading.enumerate() if one.name == f"lookup of {name}"]
                assert len(lookups) == 1
        finally:
            ended.set()
        exporter.export(snapshot_of(5, 0))
        assert receiver.requests == 1
    lookups[0].join()
    # The receiver's own threads end soon after their connections.
    until(lambda: threading.active_count() <= before, "no thread is left", limit_s=60)


def test_an_answer_is_read_up_to_a_limit(environ: pytest.MonkeyPatch) -> None:
    environ.setenv("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", str(TIMEOUT_S))
    endless = dribbling(b"HTTP/1.1 200 OK\nContent-Length: 9999999999\n\n", bytes(1 << 20), 0.0)
    with hostile(endless) as receiver:
        exporter, snapshot = otlp(receiver), snapshot_of(5, 0)
        tracemalloc.start()
        try:
            with pytest.raises(AgentError, match="200: the answer has more than 1 MiB"):
                exporter.export(snapshot)
            assert tracemalloc.get_traced_memory()[1] < 16 << 20
        finally:
            tracemalloc.stop()
        assert receiver.requests == 1


@pytest.mark.parametrize("status", [b"300 Choices", b"301 Moved", b"302 Found", b"307 Temporary"])
def test_a_redirect_is_a_failure_and_is_not_followed(status: bytes) -> None:
    with hostile(said(b"HTTP/1.1 200 OK\nContent-Length: 0")) as other:
        head = b"HTTP/1.1 %b\nLocation: %b/\x1b[2J\nContent-Length: 0"
        with hostile(said(head % (status, other.url.encode()))) as receiver:
            with pytest.raises(AgentError, match=r"30. .* not followed") as caught:
                otlp(receiver).export(snapshot_of(5, 0))
            assert (receiver.requests, other.requests) == (1, 0)
    assert str(caught.value).isprintable()


PROVIDER = """
import requests

made = []

def create():
    made.append(requests.Session())
    return made[-1]
"""


@pytest.fixture
def provided(environ: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """The module of a credential provider that is installed and configured."""
    (tmp_path / "credentials_of_tests.py").write_text(PROVIDER)
    listed = tmp_path / "credentials_of_tests-1.dist-info" / "entry_points.txt"
    listed.parent.mkdir()
    listed.write_text(
        "[opentelemetry_otlp_credential_provider]\nof_tests = credentials_of_tests:create\n"
    )
    environ.syspath_prepend(tmp_path)
    environ.delitem(sys.modules, "credentials_of_tests", raising=False)
    environ.setenv("OTEL_PYTHON_EXPORTER_OTLP_HTTP_METRICS_CREDENTIAL_PROVIDER", "of_tests")
    return "credentials_of_tests"


def test_the_session_of_a_credential_provider_has_the_same_bounds(
    provided: str, environ: pytest.MonkeyPatch
) -> None:
    with hostile(said(b"HTTP/1.1 200 OK\nContent-Length: 0")) as other:
        head = b"HTTP/1.1 307 Temporary\nLocation: %b/\nContent-Length: 0"
        with hostile(said(head % other.url.encode())) as receiver:
            with pytest.raises(AgentError, match=r"307 .* not followed"):
                otlp(receiver).export(snapshot_of(5, 0))
            assert (receiver.requests, other.requests) == (1, 0)
    environ.setenv("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", str(TIMEOUT_S))
    long = said(b"HTTP/1.1 200 OK\nContent-Length: 2097152", bytes(2 << 20))
    with hostile(long) as receiver, pytest.raises(AgentError, match="more than 1 MiB"):
        otlp(receiver).export(snapshot_of(5, 0))
    assert len(sys.modules[provided].made) == 2


def test_a_missing_credential_provider_is_reported(environ: pytest.MonkeyPatch) -> None:
    environ.setenv("OTEL_PYTHON_EXPORTER_OTLP_HTTP_CREDENTIAL_PROVIDER", "missing")
    with pytest.raises(AgentError, match="missing"):
        load("otlp", {"endpoint": "http://127.0.0.1:1/v1/metrics"}, {})


PAST = email.utils.formatdate(0, usegmt=True).encode()


@pytest.mark.parametrize(
    "pause", [b"-5", b"0", b"-0.0", b"1e-9", b"-inf", b"nan", PAST, b"Mon, 99 Foo 0000", b""]
)
def test_tries_are_apart_whatever_the_receiver_says(
    pause: bytes, environ: pytest.MonkeyPatch
) -> None:
    head = b"HTTP/1.1 503 Later\nContent-Length: 0\nRetry-After: " + pause
    with hostile(said(head)) as receiver:
        with pytest.raises(AgentError):
            otlp(receiver).export(snapshot_of(5, 0))
        assert receiver.requests <= 2


@pytest.mark.parametrize("pause", [b"1e30", b"inf", b"99999999999", b"Mon, 01 Jan 9999 00:00:00"])
def test_a_pause_that_is_too_long_ends_the_export_and_not_the_exporter(pause: bytes) -> None:
    head = b"HTTP/1.1 503 Later\nContent-Length: 0\nRetry-After: " + pause
    with hostile(said(head)) as receiver:
        exporter = otlp(receiver)
        for count in (1, 2):
            with pytest.raises(AgentError):
                exporter.export(snapshot_of(5, 0))
            assert receiver.requests == count


def test_tries_over_grpc_are_apart_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "grpc")
    delay = RetryInfo()
    delay.retry_delay.seconds = -5
    with over_grpc() as received:
        received.statuses = [14] * 100
        received.retry_info = delay.SerializeToString()
        exporter = load("otlp", {"endpoint": received.endpoint}, {})
        assert isinstance(exporter, PushExporter)
        with pytest.raises(AgentError):
            exporter.export(snapshot_of(5, 0))
        assert 98 <= len(received.statuses) < 100


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "0", "soon"])
def test_an_unusable_timeout_is_refused_by_name(value: str, environ: pytest.MonkeyPatch) -> None:
    environ.setenv("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", value)
    with pytest.raises(ConfigError, match=f"OTEL_EXPORTER_OTLP_METRICS_TIMEOUT='{value}'"):
        load("otlp", {}, {})


def test_connections_are_kept_and_an_end_of_one_is_no_failure() -> None:
    with over_http() as received:
        exporter = load("otlp", {"endpoint": received.endpoint}, {})
        assert isinstance(exporter, PushExporter)
        for count in (1, 2, 3):
            exporter.export(snapshot_of(5, 0))
            assert len(received.requests) == count
        exporter.close()
