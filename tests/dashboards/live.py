"""A Prometheus with the committed rules that scrapes a simulated fleet and one real host.

Rules run every second and look back seconds where they would an hour: else a test would last one.
"""

import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import yaml

from opscope.agent.exporter import PageExporter, load
from tests.dashboards.documents import RULES
from tests.dashboards.fleet import Fleet
from tests.exporters.peers import Store, free_port, running

LATER_S = 6
"""Hosts of a second version come so many seconds after the first ones."""


class Hosts:
    """The agents of a simulated fleet: `/3/metrics` is the page of host 3, and grows with time."""

    def __init__(self, fleet: Fleet) -> None:
        exporters = [load("prometheus", {}, {}) for _ in range(fleet.hosts)]
        began: list[float] = []

        class Page(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                host = int(self.path.split("/")[1])
                # From the first scrape on: how soon that is depends on the machine.
                began.append(time.monotonic())
                seconds = int(began[-1] - began[0])
                if fleet.versions and host % len(fleet.versions) and seconds < LATER_S:
                    self.send_error(503)
                    return
                exporter = exporters[host]
                assert isinstance(exporter, PageExporter)
                snapshot = fleet.snapshot(host, 1 + seconds)
                failures = {("torch", "refused"): 1 + seconds}
                snapshot = replace(snapshot, attach_results={**snapshot.attach_results, **failures})
                page, kind = exporter.page(snapshot, self.headers["Accept"])
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.end_headers()
                self.wfile.write(page)

            def log_message(self, format: str, *args: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
        self._thread = Thread(target=self._server.serve_forever)
        self._thread.start()
        self.targets: list[dict[str, object]] = [
            {
                "targets": [f"127.0.0.1:{self._server.server_port}"],
                "labels": {"__metrics_path__": f"/{host}/metrics", "instance": f"host{host}"},
            }
            for host in range(fleet.hosts)
        ]

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@contextmanager
def prometheus(
    program: Path, directory: Path, targets: list[dict[str, object]], *, native: bool
) -> Iterator[Store]:
    directory.mkdir()
    for path in RULES.glob("*.yml"):
        text = re.sub(r"interval: \w+", "interval: 1s", path.read_text())
        (directory / path.name).write_text(text.replace("offset 1h", "offset 5s"))
    config = {
        "global": {"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "1s"},
        "rule_files": [str(directory / path.name) for path in RULES.glob("*.yml")],
        "scrape_configs": [{"job_name": "opscope", "static_configs": targets}],
    }
    (directory / "prometheus.yml").write_text(yaml.safe_dump(config))
    port = free_port()
    command = [
        str(program),
        f"--config.file={directory / 'prometheus.yml'}",
        f"--storage.tsdb.path={directory / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=error",
        *(["--enable-feature=native-histograms"] if native else []),
    ]
    with running(command):
        yield Store(f"http://127.0.0.1:{port}")


# Trains in NumPy, in the tensor core and, where there is one, in PyTorch, until its input ends.
PROGRAM = """
import select, sys
import numpy as np
import opscope
from opscope import tensor
try:
    import torch
except ImportError:
    torch = None

opscope.log_api_usage_once("program.train")
a = np.random.rand(64, 64).astype("f4")
while not select.select([sys.stdin], [], [], 0)[0]:
    with opscope.debug_info(model_id="digits"):
        np.tanh(np.add(a, a))
        x = tensor.tensor(a, requires_grad=True)
        (x @ x).sum().backward()
        if torch is not None:
            y = torch.from_numpy(a).requires_grad_()
            torch.relu(y @ y).sum().backward()
"""
RUN = [sys.executable, "-c", "from opscope.cli import main; main()", "run", "--sampling", "1", "--"]
