"""A Prometheus with the committed rules that scrapes a simulated fleet and one real host.

Rules run every few seconds and look back seconds instead of hours, so that a test ends soon.
"""

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import yaml

from opscope.server.exporter import PageExporter, load
from tests.dashboards.documents import RULES
from tests.dashboards.fleet import Fleet
from tests.dashboards.pace import in_rules
from tests.exporters.peers import (
    TIMEOUT_S,
    Prometheus,
    Store,
    VictoriaMetrics,
    agent,
    running,
    vmalert,
    wait_for,
)

RUN = [sys.executable, "-c", "from opscope.cli import main; main()", "run", "--sampling", "1", "--"]
TRAINING = [sys.executable, str(Path(__file__).parent / "programs" / "training.py")]
REAL, CLUSTER = "real", "east"
"""The real host's instance, and the cluster of all."""
SCRAPE_S = 2
EVALUATION_S = 3
"""Evaluating all rules takes most of a second of CPU time on a busy processor."""
AGO_S = 5
"""Replaces offsets of an hour or a day, for which there is no data."""
LATER_S = 6
"""Hosts of a second version start this many seconds after the first ones."""
CHURN_S = 10
"""After this, in a fleet with churn, two hosts restart and two others are away for a while."""
ANEW, AWAY = (5, 16), (7, 18)


def counted(fleet: Fleet, host: int, seconds: int) -> int:
    """Quarters of an hour in the counters of the host's agent at that time; 0: no agent."""
    if fleet.versions and host % len(fleet.versions) and seconds < LATER_S:
        return 0
    if fleet.churn and host in AWAY and CHURN_S <= seconds < CHURN_S + 4:
        return 0
    if fleet.churn and host in ANEW and seconds >= CHURN_S:
        return 1 + seconds - CHURN_S
    return 1 + seconds


class Hosts:
    """The agents of a simulated fleet: `/3/metrics` is that of host 3, and grows with scrapes."""

    def __init__(self, fleet: Fleet) -> None:
        exporters = [load("prometheus", {"octaves": 1}, {}) for _ in range(fleet.hosts)]
        scrapes: Counter[int] = Counter()

        class Page(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                host = int(self.path.split("/")[1])
                # By its own scrapes, whose times depend on the machine.
                seconds = SCRAPE_S * scrapes[host]
                scrapes[host] += 1
                times = counted(fleet, host, seconds)
                if not times:
                    self.send_error(503)
                    return
                exporter = exporters[host]
                assert isinstance(exporter, PageExporter)
                snapshot = fleet.snapshot(host, times)
                failures = {("torch", "refused"): times if fleet.churn else host % 2}
                snapshot = replace(snapshot, attach_results={**snapshot.attach_results, **failures})
                page, kind = exporter.page(snapshot, self.headers["Accept"])
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.end_headers()
                self.wfile.writelines(page)

            def handle(self) -> None:
                # A scrape that took too long: the scraper has gone. A traceback would go into what
                # a test captures of its own program.
                with suppress(ConnectionError):
                    super().handle()

            def log_message(self, format: str, *args: object) -> None:
                """Logs nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
        self._thread = Thread(target=self._server.serve_forever)
        self._thread.start()
        self.targets: list[dict[str, object]] = [
            {
                "targets": [f"127.0.0.1:{self._server.server_port}"],
                "labels": {
                    "__metrics_path__": f"/{host}/metrics",
                    "instance": f"host{host}",
                    "cluster": CLUSTER,
                },
            }
            for host in range(fleet.hosts)
        ]

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def write_rules(directory: Path, pace: float | None = None, offsets: float | None = None) -> None:
    """The committed rules, with times that suit a test, in a new directory. `offsets`: the pace of
    offsets too, which otherwise become some seconds."""
    directory.mkdir(parents=True)
    for path in RULES.glob("*.yml"):
        text = path.read_text()
        if pace is None:
            text = re.sub(r"interval: \w+", f"interval: {EVALUATION_S}s", text)
            text = re.sub(r"for: \w+", "for: 1s", text)
        else:
            text = in_rules(text, pace)
        if offsets is None:
            text = re.sub(r"offset \w+", f"offset {AGO_S}s", text)
        (directory / path.name).write_text(text)


@contextmanager
def prometheus(
    program: Path,
    directory: Path,
    targets: list[dict[str, object]],
    *,
    native: bool,
    pace: float | None = None,
    victoria: Path | None = None,
) -> Iterator[Store]:
    """`pace`: the real length of a second of the rules; by default they run every few seconds.
    `victoria`: the store is this VictoriaMetrics, into which Prometheus writes, and vmalert
    evaluates the rules."""
    write_rules(directory / "rules", pace)
    config: dict[str, object] = {
        "global": {
            "scrape_interval": f"{SCRAPE_S}s",
            "scrape_timeout": f"{SCRAPE_S}s",
            "evaluation_interval": f"{EVALUATION_S}s",
        },
        "scrape_configs": [{"job_name": "opscope", "static_configs": targets}],
    }
    peer = VictoriaMetrics(victoria, directory / "victoria") if victoria else None
    if peer:
        url = peer.url.removesuffix("/prometheus") + "/api/v1/write"
        # Small parts, so that what was scraped is there soon.
        config["remote_write"] = [{"url": url, "queue_config": {"batch_send_deadline": "200ms"}}]
    else:
        config["rule_files"] = [str(directory / "rules" / "*.yml")]
    (directory / "prometheus.yml").write_text(yaml.safe_dump(config))
    features = ["--enable-feature=native-histograms"] if native else []
    store = Prometheus(program, directory / "prometheus.yml", *features)
    with ExitStack() as stack:
        if peer and victoria:
            stack.enter_context(running(peer.command))
            stack.enter_context(running(vmalert(victoria, directory / "rules", peer)))
        # It ends first, because it waits until its store has everything.
        stack.enter_context(running(store.command))
        yield peer or store


@contextmanager
def beside_a_real_host(
    program: Path,
    place: Path,
    fleet: Fleet,
    *,
    native: bool,
    pace: float | None = None,
    lines_every_s: int = 1,
    environ: Mapping[str, str],
    victoria: Path | None = None,
) -> Iterator[Store]:
    """That Prometheus over the fleet and the host `REAL`: its agent also writes lines, has a filter
    that drops nothing, and finds a file that is no segment; its one program trains, with this
    environment, until the end."""
    segments = place / "segments"
    segments.mkdir(mode=0o700, parents=True)
    (segments / f"1-1-{'0' * 16}.seg").write_bytes(b"no segment")
    exporters = ("--exporter", "prometheus", "--exporter", "jsonl")
    lines = ("--jsonl-file", str(place / "lines"), "--jsonl-interval-s", str(lines_every_s))
    own = {"OPSCOPE_DIR": str(segments), "OTEL_SERVICE_NAME": "training"}
    everything = {**os.environ, **own, **environ}
    hosts = Hosts(fleet)
    try:
        with (
            agent(segments, *exporters, *lines, "--drop-op", "nothing::*") as address,
            prometheus(
                program,
                place / "prometheus",
                [
                    *hosts.targets,
                    {"targets": [address], "labels": {"instance": REAL, "cluster": CLUSTER}},
                ],
                native=native,
                pace=pace,
                victoria=victoria,
            ) as store,
            subprocess.Popen([*RUN, *TRAINING], env=everything, stdin=subprocess.PIPE) as training,
        ):
            yield store
            training.communicate(timeout=TIMEOUT_S)
    finally:
        hosts.close()


def assert_answered(store: Store, asked: dict[str, str]) -> None:
    """Waits until all conditions hold; `asked` describes each for people."""
    left = dict(asked)

    def are_answered() -> bool:
        for promql in [*left]:
            if store.series(promql):
                del left[promql]
        return not left

    try:
        wait_for(are_answered, "answers")
    except AssertionError:
        raise AssertionError(f"no data: {left}") from None
