"""`opscope trace --spans`: slow ranges of a live program become children of its own SDK's span."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from opscope.cli.trace import command
from tests.exporters import otlp_receiver
from tests.exporters.otlp_receiver import Received
from tests.timeline import chrome_checker

# Clocks are read one after another: covers the counter's rate and changes of the wall clock.
CLOCK_ERROR_NS = 1_000_000
# Shorter than a slow range, and longer than a busy machine delays a fast one.
SLOW = "150ms"

# Waits for the trace, works under its own spans, and reports the times.
PROGRAM = """
import json, os, sys, threading, time
import opscope
from opscope._native import ffi, lib
from opentelemetry.sdk.trace import TracerProvider

opscope.attach()
assert opscope.attach_status().attached, opscope.attach_status()
tracer = TracerProvider().get_tracer("program")
status = ffi.new("opscope_trace_status *")
said = {}
def is_traced():
    lib.opscope_trace_read_status(status)
    return status.running
def work(name, seconds, within=None):
    around = time.time_ns()
    with opscope.record_function(name):
        begin = time.time_ns()
        while time.time_ns() < begin + seconds * 1e9:
            pass
        if within:
            within()
        end = time.time_ns()
    said[name] = [around, begin, end, time.time_ns()]
def ids(span):
    found = span.get_span_context()
    return [f"{found.trace_id:032x}", f"{found.span_id:016x}"]

print("ready", flush=True)
while not is_traced():
    with opscope.record_function("waiting"):
        pass
    time.sleep(0.001)
def within_outer():
    work("core::inner", 0.2)
    work("core::fast", 0.0)
    with tracer.start_as_current_span("second") as second:
        said["ids of second"] = ids(second)
        work("deeper", 0.2)
with tracer.start_as_current_span("first") as first, opscope.debug_info(model_id="m"):
    said["ids of first"] = ids(first)
    work("core::outer", 0.2, within_outer)
    task = opscope.fork(lambda: work("in a task", 0.2))
    opscope.wait(task)
    try:
        with opscope.record_function("fails"):
            time.sleep(0.2)
            raise ValueError
    except ValueError:
        pass
work("under none", 0.2)
print(json.dumps(said), flush=True)
{finally_}
"""


@pytest.fixture(autouse=True)
def environ(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for key in os.environ:
        if key.startswith("OTEL_"):
            monkeypatch.delenv(key)
    return monkeypatch


@contextmanager
def program(directory: Path, context: str = "opscope", finally_: str = "") -> Iterator[Any]:
    """A program that is ready to be traced: its process and, after its end, its output."""
    directory.mkdir(mode=0o700, exist_ok=True)
    environ = {
        **os.environ,
        "OPSCOPE_DIR": str(directory),
        "OTEL_SERVICE_NAME": "svc",
        "OTEL_RESOURCE_ATTRIBUTES": "service.version=1.2",
        "OTEL_PYTHON_CONTEXT": context,
    }
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM.replace("{finally_}", finally_)],
        env=environ,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def trace(directory: Path, *arguments: str) -> Result:
    return CliRunner().invoke(
        command,
        ["--service", "svc", "--seconds", "60", "--directory", str(directory), *arguments],
    )


def said_by(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    said: dict[str, Any] = json.loads(process.stdout.readline())
    return said


def sent_to(received: Received) -> dict[str, Any]:
    found = {span.name: span for _, span in otlp_receiver.spans(received.requests)}
    assert len(found) == len(otlp_receiver.spans(received.requests))
    return found


def test_slow_ranges_are_spans_under_the_active_one(
    tmp_path: Path, environ: pytest.MonkeyPatch
) -> None:
    with otlp_receiver.over_http() as received:
        environ.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", received.endpoint.removesuffix("/v1/metrics"))
        environ.setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=secret")
        with program(tmp_path) as process:
            result = trace(tmp_path, "--spans", "--slower", SLOW)
            said = said_by(process)
    assert result.exit_code == 0, result.output
    assert received.headers[0]["api-key"] == "secret"
    found = sent_to(received)
    around, _, _, after = said["core::fast"]
    held_up = {"core::fast"} if after - around >= 150e6 else set()
    assert set(found) - held_up == {"core::outer", "core::inner", "deeper", "in a task", "fails"}
    sent = f"{received.endpoint[:-8]}/traces: {len(found)} spans in 1 trace\n"
    assert sent in result.output
    # One, and those that a busy machine delayed.
    assert re.search(r"not sent: [1-9]\d* slow ranges? under no active span\n", result.output)
    trace_id, first = said["ids of first"]
    assert {span.trace_id.hex() for span in found.values()} == {trace_id}
    parents = {name: span.parent_span_id.hex() for name, span in found.items()}
    assert {name: parents[name] for name in found.keys() - held_up} == {
        "core::outer": first,
        "core::inner": found["core::outer"].span_id.hex(),
        "deeper": said["ids of second"][1],
        "in a task": first,
        "fails": first,
    }
    assert {name for name, span in found.items() if span.status.code == 2} == {"fails"}
    for name in ("core::outer", "core::inner", "deeper", "in a task"):
        around, begin, end, after = said[name]
        span = found[name]
        assert around - CLOCK_ERROR_NS <= span.start_time_unix_nano <= begin + CLOCK_ERROR_NS
        assert end - CLOCK_ERROR_NS <= span.end_time_unix_nano <= after + CLOCK_ERROR_NS
    for resource, span in otlp_receiver.spans(received.requests):
        assert resource["service.name"] == "svc"
        assert resource["service.version"] == "1.2"
        assert resource["process.pid"] == process.pid
        assert resource["host.name"]
        attributes = otlp_receiver.attributes(span)
        assert (attributes["op"], attributes["model_id"]) == (span.name, "m")
        assert attributes["framework"] == ("opscope" if "::" in span.name else "user")
        assert attributes["phase"] == "other"
        assert not {"trace_id", "span_id"} & set(attributes)


def test_they_go_over_grpc_and_into_a_file_of_all_ranges(
    tmp_path: Path, environ: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out.json"
    with otlp_receiver.over_grpc() as received:
        environ.setenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc")
        environ.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", received.endpoint)
        environ.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "2")
        with program(tmp_path / "segments"):
            result = trace(tmp_path / "segments", "--spans", "--slower", SLOW, "-o", str(path))
    assert result.exit_code == 0, result.output
    assert len(sent_to(received)) == 5
    assert len(received.requests) == 3
    assert {"core::fast", "core::outer"} <= {
        event["name"] for event in chrome_checker.load(path)["traceEvents"]
    }


def test_a_program_without_an_active_span_gets_a_hint(
    tmp_path: Path, environ: pytest.MonkeyPatch
) -> None:
    with otlp_receiver.over_http() as received:
        environ.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", received.endpoint.removesuffix("/v1/metrics"))
        with program(tmp_path, context="contextvars_context"):
            result = trace(tmp_path, "--spans", "--slower", SLOW)
    assert result.exit_code == 0, result.output
    assert not received.requests
    assert "0 spans in 0 traces" in result.output
    assert (
        "6 slow ranges under no active span; start the program with OTEL_PYTHON_CONTEXT=opscope"
        in result.output
    )
    assert "OTEL_PYTHON_CONTEXT=opscope" in result.output


def test_ranges_open_at_the_end_are_counted_but_not_sent(
    tmp_path: Path, environ: pytest.MonkeyPatch
) -> None:
    with otlp_receiver.over_http() as received:
        environ.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", received.endpoint.removesuffix("/v1/metrics"))
        die = "os.kill(os.getpid(), 9)"
        goes_on = f"with tracer.start_as_current_span('x'):\n    work('ends', 0, lambda: {die})"
        with program(tmp_path, finally_=goes_on):
            result = trace(tmp_path, "--spans", "--slower", SLOW)
    assert result.exit_code == 0, result.output
    assert "not sent: 1 slow range still open when the trace ended" in result.output
    assert len(sent_to(received)) == 5


def test_rejections_of_the_receiver_are_reported(
    tmp_path: Path, environ: pytest.MonkeyPatch
) -> None:
    with otlp_receiver.over_http() as received:
        environ.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", received.endpoint.removesuffix("/v1/metrics"))
        environ.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "3")
        received.statuses = [200, 400]
        with program(tmp_path):
            result = trace(tmp_path, "--spans", "--slower", SLOW)
        assert "sent 3 of 5 spans, then failed: " in str(result.exception)
        assert "400" in str(result.exception)
        received.partial_success = 1
        with program(tmp_path):
            result = trace(tmp_path, "--spans", "--slower", SLOW)
        assert "3 spans in 1 trace\n" in result.output
        assert "not sent: 2 slow ranges that the receiver rejected: too old" in result.output


@pytest.mark.parametrize(
    ("arguments", "variables", "said"),
    [
        ([], {}, "-o FILE, --spans, or both"),
        (["-o", "x.json", "--slower", "1s"], {}, "--slower requires --spans"),
        (["--spans", "--slower", "fast"], {}, "--slower fast: must be a time like 500us"),
        (["--spans"], {"OTEL_TRACES_EXPORTER": "none"}, "OTEL_TRACES_EXPORTER='none': turns off"),
        (["--spans"], {"OTEL_TRACES_EXPORTER": "x"}, "no exporter 'x'; known: console, otlp_proto"),
        (
            ["--spans"],
            {"OTEL_EXPORTER_OTLP_PROTOCOL": "x"},
            "OTEL_EXPORTER_OTLP_PROTOCOL='x': must",
        ),
        (["--spans"], {"OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "-1"}, "must be a whole number above 0"),
    ],
)
def test_impossible_requests_fail_before_the_recording(
    tmp_path: Path,
    environ: pytest.MonkeyPatch,
    arguments: list[str],
    variables: dict[str, str],
    said: str,
) -> None:
    for key, value in variables.items():
        environ.setenv(key, value)
    with program(tmp_path):
        result = trace(tmp_path, *arguments)
    assert result.exit_code != 0
    assert said in result.output + str(result.exception)
    assert "tracing" not in result.output
