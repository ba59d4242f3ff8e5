"""A real Prometheus scrapes a real agent over a real recorder: what PromQL answers is the truth."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

PROMETHEUS = shutil.which("prometheus") or "prometheus"
TIMEOUT_S = 120

PROGRAM = """
import sys
import opscope
from opscope.record import recorder

recorder.start(sys.argv[1])
recorder.note("service.name", "training")
for number in range(1000):
    with opscope.debug_info(model_id="a" if number % 4 else "b"):
        with opscope.record_function("core::outer"):
            for _ in range(3):
                with opscope.record_function("core::inner"):
                    pass
"""

SCRAPE = """
global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: opscope
    static_configs: [{{targets: ["{target}"]}}]
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def running(command: list[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(command, text=True, **options) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(TIMEOUT_S)


@contextmanager
def agent(directory: Path) -> Iterator[str]:
    """Its address."""
    code = "from opscope.cli import main; main()"
    options = ["--listen", "127.0.0.1:0", "--directory", str(directory)]
    command = [sys.executable, "-c", code, "agent", *options]
    with running(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split("//")[1].partition("/")[0]


@contextmanager
def prometheus(directory: Path, target: str) -> Iterator[Callable[[str], dict[str, float]]]:
    """A query: value by the value of the first label that is not the target's."""
    directory.mkdir()
    config = directory / "prometheus.yml"
    config.write_text(SCRAPE.format(target=target))
    port = free_port()
    command = [
        PROMETHEUS,
        f"--config.file={config}",
        f"--storage.tsdb.path={directory / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=error",
    ]

    def query(promql: str) -> dict[str, float]:
        url = f"http://127.0.0.1:{port}/api/v1/query?{urlencode({'query': promql})}"
        try:
            with urlopen(url, timeout=TIMEOUT_S) as answer:
                result = json.load(answer)["data"]["result"]
        except URLError:
            return {}
        return {
            ",".join(one["metric"][name] for name in sorted(one["metric"])): float(one["value"][1])
            for one in result
        }

    with running(command):
        yield query


def wait_for(query: Callable[[str], dict[str, float]], promql: str) -> dict[str, float]:
    """The first answer that is not empty."""
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        found = query(promql)
        if found:
            return found
        time.sleep(0.2)
    pytest.fail(f"Prometheus has no {promql}")


def test_promql_answers_the_truth(tmp_path: Path) -> None:
    segments = tmp_path / "segments"
    for _ in range(2):
        subprocess.run([sys.executable, "-c", PROGRAM, str(segments)], check=True)
    assert len(os.listdir(segments)) == 2
    with agent(segments) as target, prometheus(tmp_path / "prometheus", target) as query:
        calls = "sum by (op, model_id) (opscope_op_calls_total)"
        assert wait_for(query, calls) == {
            "a,core::outer": 1500,
            "b,core::outer": 500,
            "a,core::inner": 4500,
            "b,core::inner": 1500,
        }
        by_op = "sum by (op) ({})"
        truth = {"core::outer": 2000.0, "core::inner": 6000.0}
        duration = "opscope_op_duration_seconds"
        assert query(by_op.format(f"{duration}_count")) == truth
        assert query(by_op.format(f'{duration}_bucket{{le="+Inf"}}')) == truth
        # Time in the outer one is its own and the inner ones'.
        own, total = "opscope_op_self_time_seconds_total", f"{duration}_sum"
        parts = query(f"sum({own})")[""], query(f'sum({total}{{op="core::outer"}})')[""]
        assert parts[0] == pytest.approx(parts[1], rel=1e-3)
        middle = f"histogram_quantile(0.5, sum by (op, le) ({duration}_bucket))"
        assert 0 < query(middle)["core::inner"] < query(middle)["core::outer"]
        assert query("opscope_processes == 0")
        assert query('{__name__="opscope_op_calls_total", service!="training"}') == {}
    assert os.listdir(segments) == []


def test_promtool_finds_nothing_wrong(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path / "segments")], check=True)
    with (
        agent(tmp_path / "segments") as target,
        urlopen(f"http://{target}/metrics", timeout=TIMEOUT_S) as answer,
    ):
        page = answer.read()
    assert b"core::outer" in page
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=page, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
