"""OpenTelemetry's variables choose the exporters; one that cannot be used is refused by name."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from opscope.errors import AgentError, ConfigError
from opscope.server.exporter import load
from opscope_exporters.otlp import sdk_exporter
from tests.exporters.otlp_receiver import Received, over_http
from tests.exporters.peers import AGENT, running
from tests.waiting import until


@pytest.fixture
def environ(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Retries for a second at most."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "1")
    return monkeypatch


@pytest.fixture
def http() -> Iterator[Received]:
    with over_http() as received:
        yield received


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "smoke", "OTEL_EXPORTER_OTLP_PROTOCOL='smoke': must be"),
        ("OTEL_METRICS_EXPORTER", "none", "OTEL_METRICS_EXPORTER='none': turns off"),
        ("OTEL_METRICS_EXPORTER", "otlp,none", "OTEL_METRICS_EXPORTER='otlp,none': turns off"),
        ("OTEL_METRICS_EXPORTER", "otlp, prometheus", "`opscope agent --exporter prometheus`"),
        ("OTEL_METRICS_EXPORTER", "otlp,nobody", "no exporter 'nobody'; known: console"),
        ("OTEL_METRICS_EXPORTER", "nobody", "no exporter 'nobody'; known: console, otlp_proto"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "0", "OTEL_METRIC_EXPORT_INTERVAL='0': must be"),
        ("OTEL_SDK_DISABLED", "true", "OTEL_SDK_DISABLED=true turns off"),
        (
            "OTEL_EXPORTER_OTLP_CERTIFICATE",
            "/nowhere",
            "OTEL_EXPORTER_OTLP_CERTIFICATE='/nowhere': No such file",
        ),
        # More than these two gRPC would end the agent.
        (
            "OTEL_EXPORTER_OTLP_METRICS_CLIENT_KEY",
            os.devnull,
            "OTEL_EXPORTER_OTLP_METRICS_CLIENT_CERTIFICATE is missing",
        ),
        (
            "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE",
            os.devnull,
            "OTEL_EXPORTER_OTLP_CLIENT_KEY is missing",
        ),
    ],
)
def test_a_variable_that_cannot_be_used_is_named(
    environ: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    environ.setenv(name, value)
    with pytest.raises((AgentError, ConfigError)) as caught:
        load("otlp", {}, {})
    assert said in str(caught.value)


def test_any_exporter_of_the_sdk_will_do(tmp_path: Path, environ: pytest.MonkeyPatch) -> None:
    environ.setenv("OTEL_METRICS_EXPORTER", "console")
    environ.setenv("OTEL_METRIC_EXPORT_INTERVAL", "100")
    command = [*AGENT, "--exporter", "otlp", "--directory", str(tmp_path)]
    with running(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "exporting to otlp\n"
        assert any('"opscope.processes"' in line for line in process.stdout)


def test_each_exporter_that_is_named_gets_the_data_also_if_another_fails(
    tmp_path: Path, http: Received, environ: pytest.MonkeyPatch
) -> None:
    environ.setenv("OTEL_METRICS_EXPORTER", "otlp, console,otlp")
    environ.setenv("OTEL_METRIC_EXPORT_INTERVAL", "100")
    environ.setenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", http.endpoint)
    http.statuses = [400] * 10_000
    command = [*AGENT, "--exporter", "otlp", "--directory", str(tmp_path)]
    out, errors = tmp_path / "out", tmp_path / "errors"
    with (
        out.open("w") as stdout,
        errors.open("w") as stderr,
        running(command, stdout=stdout, stderr=stderr),
    ):
        until(lambda: '"opscope.processes"' in out.read_text(), "an export to the console")
        until(lambda: "400" in errors.read_text(), "the report of the failure")


@pytest.mark.parametrize("given", ["otlp,otlp_proto_http", "otlp_proto_http, otlp", "otlp,otlp"])
def test_an_exporter_of_two_names_sends_once(given: str) -> None:
    environ = {"OTEL_METRICS_EXPORTER": given}
    assert sdk_exporter.names(sdk_exporter.METRICS, "otlp", environ) == ["otlp_proto_http"]
