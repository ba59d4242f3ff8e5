"""The agent's pages, their errors, and the server's end."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from opscope.errors import AgentError
from opscope.host.host import Host
from opscope.host.snapshot import Snapshot
from opscope.server.exporter import PageExporter, load
from opscope.server.pages import Latest, Server
from tests.segments.segment_writer import Range, SegmentWriter

OPSCOPE = [sys.executable, "-c", "from opscope.cli import main; main()"]
TIMEOUT_S = 300


def prometheus() -> PageExporter:
    exporter = load("prometheus")
    assert isinstance(exporter, PageExporter)
    return exporter


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    SegmentWriter().add([Range("numpy::add", 1e-3)]).write(tmp_path)
    host = Host([str(tmp_path)], consume=False)
    server = Server("127.0.0.1", 0, Latest(host.collect), prometheus())
    yield server
    server.close()


def get(url: str, accept: str = "*/*") -> tuple[str, str]:
    with urlopen(Request(url, headers={"Accept": accept}), timeout=TIMEOUT_S) as answer:
        return answer.read().decode(), answer.headers["Content-Type"]


def test_metrics_as_text_or_openmetrics(server: Server) -> None:
    text, kind = get(f"{server.url}/metrics")
    assert 'op="numpy::add"' in text
    assert kind.startswith("text/plain; version=0.0.4")
    text, kind = get(f"{server.url}/metrics", "application/openmetrics-text; version=1.0.0")
    assert text.endswith("# EOF\n")
    assert kind.startswith("application/openmetrics-text")


def test_health_and_unknown_pages(server: Server) -> None:
    assert get(f"{server.url}/healthz")[0] == "ok\n"
    with pytest.raises(HTTPError, match="404"):
        get(f"{server.url}/nothing")


def test_a_failing_pass_is_an_error_to_the_client_and_no_end_of_the_server() -> None:
    def fail() -> Snapshot:
        raise ValueError("no luck")

    server = Server("127.0.0.1", 0, Latest(fail), prometheus())
    for _ in range(2):
        with pytest.raises(HTTPError, match="500") as error:
            get(f"{server.url}/metrics")
        assert error.value.read() == b"no luck\n"
    server.close()


def test_a_taken_port_is_named_with_the_way_out(server: Server) -> None:
    port = server.address[1]
    with pytest.raises(AgentError, match=f"port {port} on 127.0.0.1 is taken.*--listen"):
        Server("127.0.0.1", port, Latest(lambda: pytest.fail("read")), prometheus())


def test_a_closed_server_gives_its_port_back(tmp_path: Path) -> None:
    latest = Latest(Host([str(tmp_path)], consume=False).collect)
    server = Server("127.0.0.1", 0, latest, prometheus())
    server.close()
    Server("127.0.0.1", server.address[1], latest, prometheus()).close()


def test_requests_during_a_pass_share_the_next_one() -> None:
    passes = 0
    first_runs, go_on = threading.Event(), threading.Event()

    def collect() -> Snapshot:
        nonlocal passes
        passes += 1
        if passes == 1:
            first_runs.set()
            assert go_on.wait(TIMEOUT_S)
        return passes  # type: ignore[return-value]

    class Asked(Latest):
        """Reports when a caller has its number and waits."""

        def __init__(self) -> None:
            super().__init__(collect)
            lock: Any = self._lock
            waiting = self.waiting = threading.Semaphore(0)

            class Lock:
                def __enter__(self) -> None:
                    waiting.release()
                    lock.acquire()

                def __exit__(self, *_: object) -> None:
                    lock.release()

            self._lock = Lock()  # type: ignore[assignment]

    latest = Asked()
    seen: list[object] = []
    threads = [threading.Thread(target=lambda: seen.append(latest.snapshot())) for _ in range(4)]
    threads[0].start()
    assert first_runs.wait(TIMEOUT_S)
    for thread in threads[1:]:
        thread.start()
    for _ in threads:
        assert latest.waiting.acquire(timeout=TIMEOUT_S)
    go_on.set()
    for thread in threads:
        thread.join(TIMEOUT_S)
    assert sorted(map(str, seen)) == ["1", "2", "2", "2"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_agent_serves_and_ends_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    SegmentWriter().add([Range("numpy::add", 1e-3)]).write(tmp_path)
    command = [*OPSCOPE, "agent", "--listen", "127.0.0.1:0", "--directory", str(tmp_path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as agent:
        assert agent.stdout is not None
        page, metrics = (agent.stdout.readline().split()[-1] for _ in range(2))
        assert metrics == f"{page}metrics"
        assert 'op="numpy::add"' in get(metrics)[0]
        agent.send_signal(number)
        _, errors = agent.communicate(timeout=TIMEOUT_S)
    assert (agent.returncode, errors) == (0, "")


def test_the_agent_says_in_one_line_that_its_port_is_taken(tmp_path: Path) -> None:
    dead = SegmentWriter(version=1)
    dead.process.process_start = 1
    path = dead.add([Range("a", 1.0)]).write(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            [*OPSCOPE, "agent", "--listen", f"127.0.0.1:{port}", "--directory", str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert f"port {port} on 127.0.0.1 is taken" in done.stderr
    assert path.exists()


SERVING = """
import sys, urllib.request
import opscope
from opscope.record import recorder

recorder.start(sys.argv[1])
with opscope.record_function("mine"):
    pass
with opscope.serve(port=0) as page:
    with urllib.request.urlopen(page.url) as answer:
        print(answer.read().decode())
"""


def test_serve_shows_this_process_and_no_other(tmp_path: Path) -> None:
    other = SegmentWriter().add([Range("foreign", 1.0)]).write(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", SERVING, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
    )
    lines = [
        line
        for line in done.stdout.splitlines()
        if line.startswith("opscope_op_duration_seconds_count")
    ]
    assert len(lines) == 1
    assert 'op="mine"' in lines[0]
    assert lines[0].endswith(" 1")
    assert other.exists()
    assert len(os.listdir(tmp_path)) == 2
