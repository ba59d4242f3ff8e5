"""Agents that push to Prometheus, directly or through a collector, give it the same names, labels
and numbers as a scrape, and the dashboards show them."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from opscope.metrics import METRICS
from opscope_exporters.samples import sample_name
from tests.dashboards.documents import filled, panel_queries
from tests.dashboards.live import RUN, TRAINING, assert_answered
from tests.deployment.configured import STATIC, configuration, prometheus
from tests.exporters import observed_program
from tests.exporters.peers import (
    TIMEOUT_S,
    Store,
    VictoriaMetrics,
    agent,
    free_port,
    running,
    wait_for,
)

pytestmark = pytest.mark.slow

NATIVE = "native-histograms"
# The agent's own series continue without observed processes; a store keeps series of live processes
# for five minutes after the last push.
OF_THE_AGENT = "opscope_agent_.*"
LASTING = "opscope_(op|api|attachment|build|memory_allocated)_.*"
KEPT = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
NAMES = {sample_name(metric) for metric in METRICS} | {
    f"opscope_op_duration_seconds_{part}" for part in ("bucket", "sum", "count")
}
OVERVIEW, OPERATOR = "opscope-fleet.json", "opscope-operator.json"


@contextmanager
def otelcol(program: Path, directory: Path, store_url: str) -> Iterator[str]:
    """OpenTelemetry's collector; returns its endpoint."""
    ports = {f"0.0.0.0:{known}": f"127.0.0.1:{free_port()}" for known in (4317, 4318)}
    url = {"http://prometheus.example:9090": store_url, "timeout: 5s": "timeout: 200ms"}
    settings = directory / "otel-collector.yml"
    # Disabled, because every collector serves its own metrics on the same port.
    quiet = "service:\n  telemetry: {metrics: {level: none}}\n"
    settings.write_text(configuration(settings.name, ports | url | {"service:\n": quiet}))
    with running([str(program), "--config", str(settings)], stderr=subprocess.DEVNULL):
        yield f"http://{ports['0.0.0.0:4318']}"


@pytest.mark.external
@pytest.mark.parametrize("way", ["alone", "collector"])
def test_prometheus_has_what_is_pushed_as_if_scraped(
    way: str, tmp_path: Path, otlp_prometheus: Path, request: pytest.FixtureRequest
) -> None:
    options = ["--web.enable-otlp-receiver", f"--enable-feature={NATIVE}"]
    with ExitStack() as stack:
        pushed = stack.enter_context(
            prometheus(otlp_prometheus, tmp_path / "p", "prometheus-receiver.yml", options=options)
        )
        if way == "alone":
            endpoint = "METRICS_ENDPOINT", f"{pushed.url}/api/v1/otlp/v1/metrics"
        else:
            program: Path = request.getfixturevalue("collector")
            endpoint = "ENDPOINT", stack.enter_context(otelcol(program, tmp_path, pushed.url))
        settings = {f"OTEL_EXPORTER_OTLP_{endpoint[0]}": endpoint[1]}
        address = stack.enter_context(pushing_agent(tmp_path / "segments", settings))
        known = {STATIC: address}
        scraped = stack.enter_context(
            prometheus(otlp_prometheus, tmp_path / "s", "prometheus.yml", known, options[1:])
        )
        with training(tmp_path / "segments"):
            check_panels(pushed)
        wait_for(lambda: scraped.values("opscope_processes == 0"), "the program's end")
        check_series(pushed, scraped)
        check_resources(pushed)


def test_victoria_metrics_has_the_names_and_numbers_of_the_page(
    tmp_path: Path, victoria_metrics: Path
) -> None:
    segments = tmp_path / "segments"
    peer = VictoriaMetrics(victoria_metrics, tmp_path / "store")
    settings = {"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": peer.otlp_url}
    with running(peer.command), pushing_agent(segments, settings) as address:
        observed_program.run(segments, "training", tmp_path / "log", 300)

        def is_same() -> bool:
            with urlopen(f"http://{address}/metrics", timeout=TIMEOUT_S) as answer:
                page = answer.read().decode()
            of_page = dict(re.findall(r"^(opscope_\w+)(?:{.*})? (\S+)$", page, re.MULTILINE))
            pushed = peer.flushed().values("count by (__name__) ({__name__=~'opscope_.*'})")
            # It still exports the program's counters after its end.
            if not of_page.keys() <= pushed.keys() <= NAMES:
                return False
            counted = "opscope_op_.*(_total|_sum|_count)"
            totals = [name for name in of_page if re.match(counted, name)]
            return len(totals) > 3 and all(
                peer.values(f"sum({name})") == {"": pytest.approx(float(of_page[name]))}
                for name in totals
            )

        wait_for(is_same, "the names and totals of the page")


@contextmanager
def pushing_agent(segments: Path, settings: dict[str, str]) -> Iterator[str]:
    """The address of its page."""
    environ = {
        "OTEL_METRIC_EXPORT_INTERVAL": "500",
        "OTEL_RESOURCE_ATTRIBUTES": "host.name=node-1,service.instance.id=node-1",
    }
    both = "--exporter", "prometheus", "--exporter", "otlp"
    with agent(segments, *both, env=KEPT | environ | settings) as address:
        yield address


@contextmanager
def training(segments: Path) -> Iterator[None]:
    environ = {
        "OPSCOPE_DIR": str(segments),
        "OTEL_SERVICE_NAME": "training",
        "OTEL_RESOURCE_ATTRIBUTES": "service.version=1.2",
    }
    with subprocess.Popen([*RUN, *TRAINING], env=KEPT | environ, stdin=subprocess.PIPE) as program:
        yield
        program.communicate(timeout=TIMEOUT_S)


def check_panels(store: Store) -> None:
    """All queries of the overview, and those of histograms."""
    asked = {
        filled(promql, "core::conv2d"): f"{board}, {panel}"
        for board, panel, promql in panel_queries()
        if board == OVERVIEW or (board == OPERATOR and "histogram_quantile" in promql)
    }
    assert len(asked) > 10
    assert_answered(store, asked)


def check_series(pushed: Store, scraped: Store) -> None:
    wanted = f'{{__name__=~"{LASTING}"}}'
    wait_for(lambda: series(pushed, wanted) == series(scraped, wanted), "the same numbers")
    assert {"opscope_op_calls_total", "opscope_op_duration_seconds"} <= {
        dict(labels)["__name__"] for labels in series(pushed, wanted)
    }
    # The agent's own metrics exist in both, with different values.
    own = f'{{__name__=~"{OF_THE_AGENT}", __name__!="opscope_agent_requests_total"}}'
    assert set(series(pushed, own)) == set(series(scraped, own)) != set()


def check_resources(pushed: Store) -> None:
    instances = {one["metric"]["instance"] for one in pushed.series('{__name__=~"opscope_.*"}')}
    assert instances == {"node-1"}
    jobs = {one["metric"]["job"] for one in pushed.series("opscope_op_calls_total")}
    assert jobs == {"training"}
    (host,) = pushed.series('target_info{job="opscope-agent"}')
    assert host["metric"]["host_name"] == "node-1"


def series(store: Store, promql: str) -> dict[tuple[tuple[str, str], ...], Any]:
    """Values by all labels except those in which a push differs from a scrape."""
    found = {}
    for one in store.series(promql):
        labels = dict(one["metric"])
        del labels["job"], labels["instance"]
        key = tuple(sorted(labels.items()))
        assert key not in found
        value = one["value"] if "value" in one else one["histogram"]
        found[key] = value[1]
    return found
