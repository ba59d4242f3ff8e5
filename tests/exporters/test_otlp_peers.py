"""Real receivers of OTLP: VictoriaMetrics over HTTP, also behind the collector rotel over gRPC.

Each is killed and restarted while a program runs; afterwards the totals are correct.
"""

import os
import subprocess
from pathlib import Path

from tests.exporters import observed_program
from tests.exporters.peers import TIMEOUT_S, Rotel, VictoriaMetrics, agent, running, wait_for

CALLS, DURATION = "opscope_op_calls_total", "opscope_op_duration_seconds"


def environ(**settings: str) -> dict[str, str]:
    """Settings of an agent that exports often."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    return kept | {
        "OTEL_METRIC_EXPORT_INTERVAL": "300",
        "OTEL_EXPORTER_OTLP_TIMEOUT": "5",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=test,k8s.node.name=node%201",
        **settings,
    }


def check(store: VictoriaMetrics, truth: observed_program.Log) -> None:
    """Totals, sums and quantiles equal the program's own."""
    count = len(truth.took_s)

    def is_whole() -> bool:
        return store.flushed().values(f"sum({CALLS})") == {"": count}

    wait_for(is_whole, f"{count} calls")
    assert store.values(f"sum({DURATION}_count)") == {"": count}
    total = store.values(f"sum({DURATION}_sum)")[""]
    assert truth.took_s.sum() < total * 1.001 and total < truth.around_s.sum() * 1.001
    for quantile in (0.1, 0.5, 0.9, 0.99):
        promql = f"histogram_quantile({quantile}, sum by (vmrange) ({DURATION}_bucket))"
        least, most = truth.quantile_within(quantile, 0.045)
        assert least < store.values(promql)[""] < most


def test_victoria_metrics_over_http(tmp_path: Path, victoria_metrics: Path) -> None:
    segments, log = tmp_path / "segments", tmp_path / "log"
    store = VictoriaMetrics(victoria_metrics, tmp_path / "store")
    settings = environ(OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=store.otlp_url)
    with (
        agent(segments, "--exporter", "prometheus", "--exporter", "otlp", env=settings),
        observed_program.start(segments, "training", log, 10**9) as program,
    ):
        with running(store.command) as process:
            wait_for(lambda: store.flushed().values(CALLS), CALLS)
            process.kill()
            process.wait(TIMEOUT_S)
        with running(store.command):
            check(store, observed_program.stop(program, log))
            (labels,) = (one["metric"] for one in store.series(CALLS))
            # It turns all attributes of a resource into labels.
            assert {
                "op": "core::work",
                "service_name": "training",
                "deployment_environment": "test",
                "k8s_node_name": "node 1",
            }.items() <= labels.items()


def test_rotel_takes_grpc_and_passes_it_on(
    tmp_path: Path, victoria_metrics: Path, rotel: Path
) -> None:
    segments, log = tmp_path / "segments", tmp_path / "log"
    store = VictoriaMetrics(victoria_metrics, tmp_path / "store")
    collector = Rotel(rotel, store.otlp_url, tmp_path / "rotel.pid")
    settings = environ(
        OTEL_EXPORTER_OTLP_PROTOCOL="grpc",
        OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{collector.grpc_port}",
        OTEL_EXPORTER_OTLP_COMPRESSION="gzip",
    )
    with (
        running(store.command),
        agent(segments, "--exporter", "prometheus", "--exporter", "otlp", env=settings),
        observed_program.start(segments, "training", log, 10**9) as program,
    ):
        with running(collector.command, stderr=subprocess.DEVNULL) as process:
            wait_for(lambda: store.flushed().values(CALLS), CALLS)
            process.kill()
            process.wait(TIMEOUT_S)
        with running(collector.command, stderr=subprocess.DEVNULL):
            check(store, observed_program.stop(program, log))
