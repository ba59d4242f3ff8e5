"""Servers and task queues with their own kinds of workers: they serve as if unobserved, and every
request's work is counted, in whichever process it ran."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from tests.e2e.observed_host import TIMEOUT_S, ObservedHost
from tests.exporters.peers import free_port

SCRIPTS = Path(sysconfig.get_path("scripts"))
REQUESTS = 30
PER_REQUEST = 11
AT_IMPORT = 4

APP = f"""
import os
import numpy as np

a = np.ones(10)
for _ in range({AT_IMPORT}):
    np.add(a, a)

def work():
    for _ in range({PER_REQUEST}):
        np.add(a, a)
    return str(os.getpid()).encode()

def wsgi(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [work()]

async def asgi(scope, receive, send):
    if scope["type"] != "http":
        return
    start = {{"type": "http.response.start", "status": 200, "headers": []}}
    await send(start)
    await send({{"type": "http.response.body", "body": work()}})
"""


@contextmanager
def served(host: ObservedHost, place: Path, port: int, *command: str) -> Iterator[None]:
    """Waits until the server answers, and at the end until it and its workers have ended
    regularly."""
    (place / "app.py").write_text(APP)
    with (
        (place / "log").open("w") as log,
        host.start(*command, cwd=place, stdout=log, stderr=log) as process,
    ):
        try:
            deadline = time.monotonic() + TIMEOUT_S
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                    break
                except OSError:
                    assert process.poll() is None, (place / "log").read_text()
                    assert time.monotonic() < deadline
                    time.sleep(0.05)
            yield
        finally:
            process.send_signal(signal.SIGTERM)
        process.wait(timeout=TIMEOUT_S)
    said = (place / "log").read_text()
    assert process.returncode in (0, -signal.SIGTERM), said
    assert "opscope" not in said
    assert "Traceback" not in said


def request_all(port: int) -> set[bytes]:
    """The pids of the workers that answered."""
    found = set()
    for _ in range(REQUESTS):
        try:
            with urlopen(f"http://127.0.0.1:{port}/", timeout=TIMEOUT_S) as answer:
                assert answer.status == 200
                found.add(answer.read())
        except URLError as error:
            raise AssertionError("a request went unanswered") from error
    return found


@pytest.mark.parametrize("preload", [True, False])
def test_gunicorn_with_preforked_workers(host: ObservedHost, tmp_path: Path, preload: bool) -> None:
    port = free_port()
    options = ["--bind", f"127.0.0.1:{port}", "--workers", "2", "--max-requests", "12"]
    command = (sys.executable, "-m", "gunicorn", *options, *["--preload"] * preload, "app:wsgi")
    with served(host, tmp_path, port, *command):
        pids = request_all(port)
    # Workers end after some requests and are replaced.
    assert len(pids) > 2
    calls = host.calls()["numpy::add"] - REQUESTS * PER_REQUEST
    if preload:
        assert calls == AT_IMPORT
    else:
        booted = (tmp_path / "log").read_text().count("Booting worker")
        assert calls == booted * AT_IMPORT


@pytest.mark.parametrize("workers", [1, 2])
def test_uvicorn(host: ObservedHost, tmp_path: Path, workers: int) -> None:
    port = free_port()
    options = ["--host", "127.0.0.1", "--port", str(port), "--workers", str(workers)]
    command = (sys.executable, "-m", "uvicorn", *options, "--log-level", "info", "app:asgi")
    with served(host, tmp_path, port, *command):
        request_all(port)
    imports = len(
        set(re.findall(r"Started server process \[(\d+)\]", (tmp_path / "log").read_text()))
    )
    assert imports == workers
    assert host.calls()["numpy::add"] == REQUESTS * PER_REQUEST + workers * AT_IMPORT


CELERY = f"""
import numpy as np
from celery import Celery

app = Celery(broker="filesystem://", backend="file://./results")
folder = {{name: "./queue" for name in ("data_folder_in", "data_folder_out")}}
app.conf.update(
    broker_transport_options=folder | {{"control_folder": "./control"}},
    worker_hijack_root_logger=False,
    worker_max_tasks_per_child=8,
)
a = np.ones(10)

@app.task
def work(n):
    for _ in range({PER_REQUEST}):
        np.add(a, a)
    return n * n
"""
CLIENT = f"""
import sys
from tasks import work
results = [work.delay(n) for n in range({REQUESTS})]
print([result.get(timeout=300, interval=0.05) for result in results])
"""


def test_celery_with_preforked_workers(host: ObservedHost, tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_text(CELERY)
    for folder in ("queue", "control", "results"):
        (tmp_path / folder).mkdir()
    worker = (sys.executable, "-m", "celery", "-A", "tasks", "worker", "--pool", "prefork")
    options = ("--concurrency", "2", "--without-mingle", "--without-gossip", "--without-heartbeat")
    environ = {**os.environ, **host.environ, "C_FORCE_ROOT": "1"}
    host.environ["C_FORCE_ROOT"] = "1"
    with (
        (tmp_path / "log").open("w") as log,
        host.start(*worker, *options, cwd=tmp_path, stdout=log, stderr=log) as process,
    ):
        try:
            # Unobserved, so that the client's own operators are not counted.
            client = subprocess.run(
                [sys.executable, "-c", CLIENT],
                cwd=tmp_path,
                env=environ,
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
            )
        finally:
            process.terminate()
        process.wait(timeout=TIMEOUT_S)
    assert client.stdout == f"{[n * n for n in range(REQUESTS)]}\n", client.stderr
    said = (tmp_path / "log").read_text()
    assert process.returncode == 0, said
    assert "Traceback" not in said
    assert host.calls()["numpy::add"] == REQUESTS * PER_REQUEST
