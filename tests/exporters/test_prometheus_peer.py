"""A real Prometheus scrapes a real agent over a real recorder: PromQL returns the true numbers."""

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import pytest

from opscope.bench.scrape import snapshot_of
from opscope.host.snapshot import Exemplar, Snapshot
from opscope.server.exporter import PageExporter, load
from opscope.server.pages import Latest, Server
from tests.dashboards.documents import filled, panel_queries
from tests.exporters import observed_program
from tests.exporters.peers import (
    AGENT,
    TIMEOUT_S,
    Store,
    agent,
    free_port,
    running,
    scraping,
    wait_for,
)

pytestmark = pytest.mark.slow

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
DURATION = "opscope_op_duration_seconds"
COUNT = f"{DURATION}_count"
# The ratio of a classic bucket's bounds.
CLASSIC = 2.0
QUANTILES = (0.1, 0.5, 0.9, 0.99)
RANGES = 5000
"""Some seconds of work, so that there are several scrapes."""


def test_promql_answers_the_truth(tmp_path: Path, old_prometheus: Path) -> None:
    segments = tmp_path / "segments"
    for _ in range(2):
        subprocess.run([sys.executable, "-c", PROGRAM, str(segments)], check=True)
    assert len(list(segments.glob("*.seg"))) == 2
    with agent(segments) as target:
        store = scraping(old_prometheus, tmp_path / "prometheus", target)
        with running(store.command):
            calls = f"sum by (op, model_id) ({COUNT})"
            assert store.wait(calls) == {
                "a,core::outer": 1500,
                "b,core::outer": 500,
                "a,core::inner": 4500,
                "b,core::inner": 1500,
            }
            by_op = "sum by (op) ({})"
            truth = {"core::outer": 2000.0, "core::inner": 6000.0}
            assert store.values(by_op.format(f"{DURATION}_count")) == truth
            assert store.values(by_op.format(f'{DURATION}_bucket{{le="+Inf"}}')) == truth
            # The outer range's total time includes the inner ranges'.
            own, total = "opscope_op_self_time_seconds_total", f"{DURATION}_sum"
            parts = (
                store.values(f"sum({own})")[""],
                store.values(f'sum({total}{{op="core::outer"}})')[""],
            )
            assert parts[0] == pytest.approx(parts[1], rel=1e-3)
            middle = f"histogram_quantile(0.5, sum by (op, le) ({DURATION}_bucket))"
            found = store.values(middle)
            assert 0 < found["core::inner"] < found["core::outer"]
            assert store.values("opscope_processes == 0")
            assert store.values(f'{COUNT}{{service_name!="training"}}') == {}
    assert not list(segments.glob("*.seg"))


@pytest.mark.parametrize(
    ("version", "native", "classic"),
    [
        ("old_prometheus", False, True),
        ("old_prometheus", True, False),
        ("new_prometheus", True, True),
    ],
)
def test_quantiles_and_rates_are_the_programs_own(
    version: str, native: bool, classic: bool, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    program_path: Path = request.getfixturevalue(version)
    segments, log = tmp_path / "segments", tmp_path / "log"
    with agent(segments) as target:
        store = scraping(
            program_path,
            tmp_path / "prometheus",
            target,
            native=native,
            classic_too=native and classic,
        )
        with (
            running(store.command),
            observed_program.start(segments, "training", log, RANGES) as program,
        ):
            # Scraped from its beginning, because a rate needs several samples.
            calls = COUNT if classic else "opscope_op_calls_total"
            store.wait(calls)
            assert program.wait(TIMEOUT_S) == 0
            truth = observed_program.read(log)
            store.wait_until(f"sum({calls})", {"": RANGES})
            if classic:
                _check_classic(store, truth)
            if native:
                _check_native(store, truth)
            _check_rate(store, calls, truth)


def _check_classic(store: Store, truth: observed_program.Log) -> None:
    for quantile in QUANTILES:
        promql = f"histogram_quantile({quantile}, sum by (le) ({DURATION}_bucket))"
        least, most = truth.quantile_within(quantile, 0.0)
        assert least / CLASSIC < store.values(promql)[""] < most * CLASSIC


def _check_native(store: Store, truth: observed_program.Log) -> None:
    for quantile in QUANTILES:
        promql = f"histogram_quantile({quantile}, sum({DURATION}))"
        least, most = truth.quantile_within(quantile, 0.045)
        assert least < store.values(promql)[""] < most
    assert store.values(f"sum(histogram_count({DURATION}))") == {"": len(truth.took_s)}
    total = store.values(f"sum(histogram_sum({DURATION}))")[""]
    assert truth.took_s.sum() < total * 1.001
    assert total < truth.around_s.sum() * 1.001


def _check_rate(store: Store, calls: str, truth: observed_program.Log) -> None:
    """Each sample is the log's count, and the rate is that of the samples."""

    def several() -> list[tuple[float, float]]:
        (found,) = store.series(f"{calls}[1h]")
        samples = [(time_s, float(count)) for time_s, count in found["values"]]
        return samples if len(samples) > 1 else []

    samples = wait_for(several, "two samples")
    for time_s, count in samples:
        # Its time is the begin of its scrape, up to Prometheus' shift. The pass
        # over segments comes later, within the timeout of 1 s; and the log may note a range
        # that has just ended even later.
        assert truth.count_at(time_s - 0.01) <= count <= truth.count_at(time_s + 1.01) + 1
    (begin, first), (end, last) = samples[0], samples[-1]
    # Barely longer than from one to the other, as it reaches out to the ends of what it is asked.
    window = f"{(end - begin) * 1000 + 10:.0f}ms"
    data = store.ask("query", query=f"rate({calls}[{window}])", time=str(end))
    rate = float(data["result"][0]["value"][1])
    assert rate == pytest.approx((last - first) / (end - begin), rel=0.02)


def test_totals_are_right_after_prometheus_and_the_agent_were_killed(
    tmp_path: Path, old_prometheus: Path
) -> None:
    segments, log = tmp_path / "segments", tmp_path / "log"
    port = free_port()
    command = [*AGENT, "--listen", f"127.0.0.1:{port}", "--directory", str(segments)]
    store = scraping(old_prometheus, tmp_path / "store", f"127.0.0.1:{port}")
    calls = f"sum({COUNT})"
    observed_program.run(segments, "training", tmp_path / "log of one before", 100)
    with observed_program.start(segments, "training", log, 10**9) as program:
        with running(command, stdout=subprocess.DEVNULL) as first:
            with running(store.command) as prometheus:
                store.wait(calls)
                prometheus.kill()
                prometheus.wait(TIMEOUT_S)
            # By now it has read the first program, whose file is removed.
            assert len(list(segments.glob("*.seg"))) == 1
            first.kill()
            first.wait(TIMEOUT_S)
        with running(command, stdout=subprocess.DEVNULL), running(store.command):
            truth = observed_program.stop(program, log)
            store.wait_until(calls, {"": 100 + len(truth.took_s)})
            # Before and after are one counter, which never falls.
            assert store.values(f"sum(resets({COUNT}[1h]))") == {"": 0}


class Exemplary:
    """The agent's server over snapshots with one slow range in a trace."""

    def __init__(self) -> None:
        self.trace_id = "ab" * 16
        server_page = load("prometheus", {}, {})
        assert isinstance(server_page, PageExporter)
        self._calls = 0
        self.server = Server("127.0.0.1", 0, Latest(self._snapshot), server_page)

    def _snapshot(self) -> Snapshot:
        self._calls += 1
        snapshot = snapshot_of(1, 0)
        slow = Exemplar(0.3, time.time_ns(), self.trace_id, "cd" * 8)
        counters = snapshot.counters + np.uint64(self._calls)
        return replace(snapshot, counters=counters, exemplars={0: (slow,)})


@pytest.mark.parametrize("version", ["old_prometheus", "new_prometheus"])
def test_exemplars_are_stored(version: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    agent_like = Exemplary()
    host, port = agent_like.server.address
    is_new = version == "new_prometheus"
    program: Path = request.getfixturevalue(version)
    store = scraping(program, tmp_path / "store", f"{host}:{port}", native=is_new)

    def stored(promql: str = DURATION if is_new else f"{DURATION}_bucket") -> list[Any]:
        found: list[Any] = store.ask("query_exemplars", query=promql, start="0", end="1e10")
        return found or []

    try:
        with running(store.command):
            found = wait_for(stored, "an exemplar")
            # The queries of the dashboard *Operator* for exemplars find it, and read no histograms.
            operator = found[0]["seriesLabels"]["op"]
            asked = [filled(promql, operator) for _, _, promql in panel_queries(exemplars=True)]
            assert asked and any(stored(promql) == found for promql in asked)
            assert not any(store.series(promql) for promql in asked)
    finally:
        agent_like.server.close()
    exemplar = found[0]["exemplars"][0]
    assert exemplar["labels"] == {"trace_id": agent_like.trace_id, "span_id": "cd" * 8}
    assert float(exemplar["value"]) == 0.3


def test_promtool_finds_nothing_wrong(tmp_path: Path, promtool: str) -> None:
    subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path / "segments")], check=True)
    with (
        agent(tmp_path / "segments") as target,
        urlopen(f"http://{target}/metrics", timeout=TIMEOUT_S) as answer,
    ):
        page = answer.read()
    assert b"core::outer" in page
    done = subprocess.run(
        [promtool, "check", "metrics"], input=page, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
