"""`opscope trace` on live programs: every range once; several processes; failures."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from opscope.cli.trace import command
from opscope.fleet.annotation import CAPTURE
from opscope.host.host import Host
from opscope.segments import directories
from tests.ci.test_annotate import Grafana, grafana  # noqa: F401
from tests.timeline import chrome_checker

TIMEOUT_S = 300

# Works while a trace is taken, for as many steps as it was told, then ends.
PROGRAM = """
import os, sys, time
import opscope
from opscope._native import ffi, lib
{setup}
opscope.attach()
assert opscope.attach_status().attached, opscope.attach_status()
status = ffi.new("opscope_trace_status *")
def is_traced():
    lib.opscope_trace_read_status(status)
    return status.running
print("ready", flush=True)
while not is_traced():
    with opscope.record_function("waiting"):
        time.sleep(0.001)
for _ in range({steps}):
    step()
{finally_}
"""

NUMPY = """
import numpy as np
a = np.ones((8, 8))
def step():
    np.matmul(a + a, a)
"""
CORE = """
import opscope.tensor as T
def step():
    x = T.ones([4, 8])
    x.requires_grad_(True)
    with opscope.debug_info(model_id="m"):
        (x * x).relu().sum().backward()
    opscope.wait(opscope.fork(lambda: x.detach() + 1))
"""
TORCH = """
import torch
model = torch.nn.Linear(4, 2)
x = torch.ones(3, 4)
def step():
    model(x).sum().backward()
"""
PLAIN = """
def step():
    with opscope.record_function("step"):
        pass
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    path = tmp_path / "segments"
    path.mkdir(mode=0o700)
    return path


@contextmanager
def program(
    directory: Path,
    setup: str = PLAIN,
    steps: int = 20,
    sampling: str = "1",
    service: str = "svc",
    finally_: str = "",
) -> Iterator[subprocess.Popen[str]]:
    """A program that is ready to be traced; ended at the latest with the block."""
    environ = {
        **os.environ,
        "OPSCOPE_DIR": str(directory),
        "OPSCOPE_SAMPLING": sampling,
        "OTEL_SERVICE_NAME": service,
    }
    text = PROGRAM.format(setup=setup, steps=steps, finally_=finally_)
    with subprocess.Popen(
        [sys.executable, "-c", text], env=environ, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def trace(directory: Path, path: Path, *arguments: str) -> Result:
    return CliRunner().invoke(command, [*arguments, "-o", str(path), "--directory", str(directory)])


def ranges(trace: dict[str, Any]) -> Counter[str]:
    return Counter(
        event["name"]
        for event in trace["traceEvents"]
        if event["ph"] in "XBbi" and event["cat"] not in ("fork", "task", "opscope")
    )


def recorded(directory: Path) -> Counter[str]:
    """Calls of each operator, from the segments of ended programs."""
    snapshot = Host(directories.exactly([str(directory)]), consume=False).collect()
    calls: Counter[str] = Counter()
    for key, count in zip(snapshot.keys, snapshot.calls, strict=True):
        calls[key.op] += int(count)
    return calls


@pytest.mark.parametrize("setup", [NUMPY, CORE, TORCH], ids=["numpy", "core", "torch"])
def test_a_trace_shows_each_call_that_the_recorder_counts(
    directory: Path, tmp_path: Path, setup: str
) -> None:
    path = tmp_path / "out.json"
    with program(directory, setup) as process:
        result = trace(directory, path, str(process.pid), "--seconds", "60")
        assert result.exit_code == 0, result.output
        assert process.wait(TIMEOUT_S) == 0
    found = chrome_checker.load(path)
    assert found["otherData"]["lost_events"] == 0
    there, counted = ranges(found), recorded(directory)
    for calls in (there, counted):
        del calls["waiting"]
    assert there == counted
    assert sum(there.values()) >= 40
    assert not list(directory.glob("*.trace"))


def test_arrows_and_labels_cross_threads(directory: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    with program(directory, CORE, steps=3) as process:
        assert trace(directory, path, str(process.pid), "--seconds", "60").exit_code == 0
    events = chrome_checker.load(path)["traceEvents"]
    assert Counter(chrome_checker.arrows(events, "fwdbwd")) == {
        ("core::mul", "core::MulBackward"): 3,
        ("core::relu", "core::ReluBackward"): 3,
        ("core::sum", "core::SumBackward"): 3,
    }
    assert chrome_checker.arrows(events, "fork") == [("opscope::fork", "opscope::task")] * 3
    labelled = [e for e in events if e.get("args", {}).get("model_id") == "m"]
    assert {e["name"] for e in labelled} >= {"core::mul", "core::MulBackward"}


def test_all_processes_of_a_service_come_into_one_file(directory: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.json.gz"
    with program(directory) as one, program(directory) as two, program(directory, service="other"):
        result = trace(directory, path, "--service", "svc", "--seconds", "60")
        assert result.exit_code == 0, result.output
        assert "2 processes, 2 threads" in result.output
        assert "0 events lost" in result.output
    import gzip

    found = json.loads(gzip.decompress(path.read_bytes()))
    by_process = Counter(e["pid"] for e in found["traceEvents"] if e["name"] == "step")
    assert by_process == {one.pid: 20, two.pid: 20}
    assert [p["name"] for p in found["otherData"]["processes"]] == ["svc", "svc"]


@pytest.mark.parametrize("sampling", ["windows", "0.001", "0"])
def test_a_trace_has_every_range_with_any_sampling(
    directory: Path, tmp_path: Path, sampling: str
) -> None:
    path = tmp_path / "out.json"
    with program(directory, sampling=sampling) as process:
        result = trace(directory, path, str(process.pid), "--seconds", "60")
        assert result.exit_code == 0, result.output
    assert ranges(chrome_checker.load(path))["step"] == 20


def test_a_process_that_works_on_ends_its_trace_by_itself(directory: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    goes_on = "while not is_traced(): step()\nprint('again', flush=True)\nsys.stdin.read()"
    until_over = "while is_traced(): step()\nprint('over', flush=True)\n" + goes_on
    with program(directory, finally_=until_over) as process:
        result = trace(directory, path, str(process.pid), "--seconds", "0.2")
        assert result.exit_code == 0, result.output
        assert process.stdout is not None
        assert process.stdout.readline() == "over\n"
        first = chrome_checker.load(path)
        assert first["otherData"]["processes"][0]["is_whole"]
        # And can be traced again.
        assert trace(directory, path, str(process.pid), "--seconds", "0.1").exit_code == 0
        assert process.stdout.readline() == "again\n"
    assert not list(directory.glob("*.trace"))


def test_a_process_that_is_killed_leaves_what_it_had_done(directory: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    kill = f"os.kill(os.getpid(), {int(signal.SIGKILL)})"
    with program(directory, finally_=kill) as process:
        result = trace(directory, path, str(process.pid), "--seconds", "60")
        assert result.exit_code == 0, result.output
    found = chrome_checker.load(path)
    assert ranges(found)["step"] == 20
    assert not found["otherData"]["processes"][0]["is_whole"]


def test_a_full_buffer_is_reported_with_a_remedy(directory: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    with program(directory, steps=60_000) as process:
        result = trace(directory, path, str(process.pid), "--seconds", "60", "--buffer", "1")
        assert result.exit_code == 0, result.output
    assert "use a larger --buffer" in result.output
    found = chrome_checker.load(path)
    lost = found["otherData"]["lost_events"]
    assert lost > 0
    assert ranges(found)["step"] + lost == 60_000


@pytest.mark.parametrize(("service", "asked"), [("svc", "s[uv]*"), ("svc[1]", "svc[1]")])
def test_a_glob_or_a_whole_name_selects_services(
    directory: Path, tmp_path: Path, service: str, asked: str
) -> None:
    path = tmp_path / "out.json"
    with program(directory, service=service):
        result = trace(directory, path, "--service", asked, "--seconds", "60")
    assert result.exit_code == 0, result.output
    assert ranges(chrome_checker.load(path))


def test_shapes_are_recorded_on_request(directory: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    with program(directory, NUMPY, steps=1) as process:
        arguments = [str(process.pid), "--seconds", "60", "--shapes"]
        assert trace(directory, path, *arguments).exit_code == 0
    events = chrome_checker.load(path)["traceEvents"]
    (add,) = (event for event in events if event["name"] == "numpy::add")
    assert add["args"]["Input Dims"] == [[8, 8], [8, 8]]


def test_a_process_that_profiles_itself_says_so(directory: Path, tmp_path: Path) -> None:
    profiled = PLAIN + "profiling = opscope.profile()\nprofiling.start()\n"
    with program(directory, profiled, steps=10**12) as process:
        result = trace(directory, tmp_path / "out.json", str(process.pid), "--seconds", "5")
    assert result.exit_code != 0
    assert "is already recording a trace of it" in result.output
    assert not list(directory.glob("*.trace"))


def test_missing_processes_are_named(directory: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    nobody = CliRunner().invoke(command, ["-o", str(path)])
    assert nobody.exit_code == 2
    assert "PIDs or --service GLOB" in nobody.output
    with program(directory):
        for arguments, text in (
            (["1"], "pid 1: no such observed process; `opscope ps` lists them"),
            (["--service", "none"], "no live process of the service 'none'; known: svc"),
        ):
            result = trace(directory, path, *arguments)
            assert result.exit_code != 0
            assert text in str(result.exception)
    assert not path.exists()


@pytest.mark.parametrize(("status", "said"), [(200, ""), (403, "not annotated:")])
def test_a_trace_is_marked_on_the_graphs_of_grafana(
    directory: Path,
    tmp_path: Path,
    grafana: Grafana,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    said: str,
) -> None:
    monkeypatch.setenv("GRAFANA_TOKEN", "secret")
    grafana.status = status
    path = tmp_path / "out.json"
    began_ms = time.time() * 1000
    with program(directory) as process:
        words = [str(process.pid), "--seconds", "60", "--annotate", grafana.url]
        result = trace(directory, path, *words)
    assert result.exit_code == 0 and said in result.output, result.output
    assert grafana.body["tags"] == [CAPTURE, "service:svc"]
    assert grafana.body["text"] == "trace of svc out.json"
    begin, end = grafana.body["time"], grafana.body["timeEnd"]
    assert isinstance(begin, int) and isinstance(end, int)
    assert began_ms - 1 <= begin < end
    assert grafana.headers["Authorization"] == "Bearer secret"
