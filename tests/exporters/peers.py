"""Real programs that take what the agent exports, started for a test: and the agent itself."""

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import urlopen

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
def agent(directory: Path, *options: str, **settings: Any) -> Iterator[str]:
    """Its address."""
    command = [*AGENT, "--listen", "127.0.0.1:0", "--directory", str(directory), *options]
    with running(command, stdout=subprocess.PIPE, **settings) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split("//")[1].partition("/")[0]


def wait_for(look: Callable[[], T], what: str) -> T:
    """The first answer that is true."""
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        found = look()
        if found:
            return found
        time.sleep(0.2)
    raise AssertionError(f"never seen: {what}")


class Store:
    """Something that answers PromQL, over HTTP, at `url`."""

    def __init__(self, url: str) -> None:
        self.url = url

    def ask(self, path: str, **parameters: str) -> Any:
        """What the API has; None while it does not answer."""
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
        """Each value by its labels' values, in order of their names."""
        return {
            ",".join(one["metric"][name] for name in sorted(one["metric"])): float(one["value"][1])
            for one in self.series(promql)
        }

    def wait(self, promql: str) -> dict[str, float]:
        return wait_for(lambda: self.values(promql), promql)

    def wait_until(self, promql: str, expected: Mapping[str, float]) -> None:
        """Until that is the answer: not more, and it must not go beyond."""
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
    """A Prometheus with a configuration, that can be killed and started again: its data lies beside
    it."""

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
    """One of `target`. `native`: with native histograms; `classic_too`: and with the classic ones
    beside them, which versions from 2.45 on can."""
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
        """Itself, once all that was taken in is visible to queries."""
        url = self.url.removesuffix("/prometheus") + "/internal/force_flush"
        with suppress(URLError, ConnectionError), urlopen(url, timeout=TIMEOUT_S):
            pass
        return self


class Rotel:
    """A collector that takes OTLP over gRPC and HTTP, and passes it on over HTTP."""

    def __init__(self, program: Path, to_url: str, pid_file: Path) -> None:
        self.grpc_port = free_port()
        self.command = [
            str(program),
            "start",
            f"--otlp-grpc-endpoint=127.0.0.1:{self.grpc_port}",
            f"--otlp-http-endpoint=127.0.0.1:{free_port()}",
            "--exporter=otlp",
            "--otlp-exporter-protocol=http",
            # All three kinds want one; only metrics come.
            f"--otlp-exporter-endpoint={to_url}",
            f"--otlp-exporter-metrics-endpoint={to_url}",
            "--batch-timeout=200ms",
            f"--pid-file={pid_file}",
        ]
