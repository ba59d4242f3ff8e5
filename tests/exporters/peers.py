"""Real programs that receive the agent's exports, started for a test; and the agent itself."""

import itertools
import json
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import urlopen

from tests.waiting import until

TIMEOUT_S = 300
T = TypeVar("T")

AGENT = [sys.executable, "-c", "from opscope.cli import main; main()", "agent"]

_SCRAPE = """
global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs:
  - job_name: opscope
    {settings}
    static_configs: [{{targets: ["{target}"]}}]
"""


# Below the ports that Linux assigns. Each worker of pytest-xdist has its own
# range, in random order, because another user may run the tests too.
_PORTS_OF_WORKER = 500
_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_FIRST_PORT = 20_000 + _WORKER % 24 * _PORTS_OF_WORKER
_ports = itertools.cycle(
    random.sample(range(_FIRST_PORT, _FIRST_PORT + _PORTS_OF_WORKER), _PORTS_OF_WORKER)
)


def free_port() -> int:
    """A port without a listener, which no other test gets for a long time."""
    for port in itertools.islice(_ports, _PORTS_OF_WORKER):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError(f"every port from {_FIRST_PORT} on is taken")


@contextmanager
def running(command: list[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(command, text=True, **options) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(TIMEOUT_S)


@contextmanager
def agent(directory: Path, *options: str, **settings: Any) -> Iterator[str]:
    """Yields its address."""
    command = [*AGENT, "--listen", "127.0.0.1:0", "--directory", str(directory), *options]
    with running(command, stdout=subprocess.PIPE, **settings) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split("//")[1].partition("/")[0]


def wait_for(look: Callable[[], T], what: str) -> T:
    """The first answer that is true."""
    return until(look, what, pause_s=0.2, limit_s=TIMEOUT_S)


class Store:
    """A program that answers PromQL over HTTP, at `url`."""

    def __init__(self, url: str) -> None:
        self.url = url

    def ask(self, path: str, **parameters: str) -> Any:
        """The data of the API's answer; None while it does not answer."""
        try:
            query = f"{self.url}/api/v1/{path}?{urlencode(parameters)}"
            with urlopen(query, timeout=TIMEOUT_S) as answer:
                return json.load(answer)["data"]
        except HTTPError as error:
            if error.code >= 500:
                return None
            raise AssertionError(error.read().decode()) from error
        except (URLError, ConnectionError):
            return None

    def series(self, promql: str) -> list[dict[str, Any]]:
        data = self.ask("query", query=promql)
        return data["result"] if data else []

    def values(self, promql: str) -> dict[str, float]:
        """Each value by the values of its labels, in order of the labels' names."""
        return {
            ",".join(one["metric"][name] for name in sorted(one["metric"])): float(one["value"][1])
            for one in self.series(promql)
        }

    def wait(self, promql: str) -> dict[str, float]:
        return wait_for(lambda: self.values(promql), promql)

    def wait_until(self, promql: str, expected: Mapping[str, float]) -> None:
        """Waits until the answer equals `expected`, and checks that it never exceeds it."""
        last: dict[str, float] = {}

        def is_so() -> bool:
            last.clear()
            last.update(self.values(promql))
            return last == expected

        try:
            wait_for(is_so, promql)
        except AssertionError:
            raise AssertionError(f"{promql} is {last}, not {expected}") from None


class Prometheus(Store):
    """A Prometheus with a configuration, which can be killed and restarted: its data is in a
    directory beside it."""

    def __init__(self, program: Path, config: Path, *options: str) -> None:
        port = free_port()
        super().__init__(f"http://127.0.0.1:{port}")
        self.command = [
            str(program),
            f"--config.file={config}",
            f"--storage.tsdb.path={config.parent / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--log.level=error",
            *options,
        ]


def scraping(
    program: Path, directory: Path, target: str, *, native: bool = False, classic_too: bool = False
) -> Prometheus:
    """A Prometheus that scrapes `target`. `native`: with native histograms; `classic_too`: also
    with the classic ones, which versions from 2.45 on support."""
    directory.mkdir(exist_ok=True)
    config = directory / "prometheus.yml"
    settings = "scrape_classic_histograms: true" if classic_too else ""
    config.write_text(_SCRAPE.format(target=target, settings=settings))
    features = ["exemplar-storage"] + ["native-histograms"] * native
    return Prometheus(program, config, f"--enable-feature={','.join(features)}")


class VictoriaMetrics(Store):
    def __init__(self, program: Path, directory: Path) -> None:
        port = free_port()
        super().__init__(f"http://127.0.0.1:{port}/prometheus")
        self.otlp_url = f"http://127.0.0.1:{port}/opentelemetry/v1/metrics"
        self.command = [
            str(program),
            f"-storageDataPath={directory}",
            f"-httpListenAddr=127.0.0.1:{port}",
            "-opentelemetry.usePrometheusNaming",
            "-search.latencyOffset=0s",
            "-search.disableCache",
            "-loggerLevel=ERROR",
            "-retentionPeriod=100y",
        ]

    def flushed(self) -> "VictoriaMetrics":
        """The store, once all received data is visible to queries."""
        url = self.url.removesuffix("/prometheus") + "/internal/force_flush"
        with suppress(URLError, ConnectionError), urlopen(url, timeout=TIMEOUT_S):
            pass
        return self


def vmalert(victoria_metrics: Path, rules: Path, store: VictoriaMetrics) -> list[str]:
    """The command that evaluates these rules in that store, each second."""
    base = store.url.removesuffix("/prometheus")
    return [
        str(victoria_metrics.with_name("vmalert")),
        f"-rule={rules / '*.yml'}",
        f"-datasource.url={base}",
        f"-remoteWrite.url={base}",
        f"-httpListenAddr=127.0.0.1:{free_port()}",
        "-evaluationInterval=1s",
        "-rule.evalDelay=0s",
        "-remoteWrite.flushInterval=200ms",
        "-notifier.blackhole",
        "-loggerLevel=ERROR",
    ]


class Rotel:
    """A collector that receives OTLP over gRPC and HTTP, and forwards it over HTTP."""

    def __init__(self, program: Path, to_url: str, pid_file: Path) -> None:
        self.grpc_port = free_port()
        self.command = [
            str(program),
            "start",
            f"--otlp-grpc-endpoint=127.0.0.1:{self.grpc_port}",
            f"--otlp-http-endpoint=127.0.0.1:{free_port()}",
            "--exporter=otlp",
            "--otlp-exporter-protocol=http",
            # All three signals need a pipeline; only metrics are sent.
            f"--otlp-exporter-endpoint={to_url}",
            f"--otlp-exporter-metrics-endpoint={to_url}",
            "--batch-timeout=200ms",
            f"--pid-file={pid_file}",
        ]
