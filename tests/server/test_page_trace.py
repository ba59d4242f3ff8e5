"""A trace taken from the live page: what it holds, and who may not take one."""

import gzip
import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from opscope.errors import AgentError
from opscope.host.host import Host
from opscope.server import live, page_trace, peer
from opscope.server.exporter import PageExporter, load
from opscope.server.page_trace import PageTrace
from opscope.server.pages import Latest, Server
from tests.e2e import browser
from tests.timeline import chrome_checker
from tests.waiting import until

PROGRAM = """
import time
import opscope
opscope.attach()
print("ready", flush=True)
while True:
    with opscope.record_function("page's step"):
        time.sleep(0.002)
        with opscope.record_function("page's part"):
            pass
"""
OTHER_USER = 12345


class Observed(NamedTuple):
    url: str
    port: int
    pid: int
    traces: PageTrace


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    directory = tmp_path_factory.mktemp("segments")
    directory.chmod(0o700)
    variables = {"OPSCOPE_DIR": str(directory), "OPSCOPE_SAMPLING": "1"}
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(
        command, env=os.environ | variables, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None and program.stdout.readline() == "ready\n"
        latest = Latest(Host([str(directory)], consume=False).collect)
        page = load("prometheus")
        assert isinstance(page, PageExporter)
        traces = PageTrace([str(directory)])
        pages = live.routes(latest.snapshot, lambda _: [], can_trace=True)
        server = Server("127.0.0.1", 0, latest, page, more=pages, actions=traces.actions)
        yield Observed(server.url, server.address[1], program.pid, traces)
        server.close()
        program.kill()


def ask(observed: Observed, body: object, **changed: str | None) -> tuple[int, bytes]:
    """The status and body of a request as the page sends it; `changed`: headers, by names with _
    in place of -, None to leave one out."""
    headers: dict[str, str | None] = {
        "Host": f"127.0.0.1:{observed.port}",
        "Origin": observed.url,
        "Content-Type": "application/json",
        **{name.replace("_", "-"): value for name, value in changed.items()},
    }
    connection = http.client.HTTPConnection("127.0.0.1", observed.port, timeout=300)
    connection.putrequest("POST", page_trace.PATH, skip_host=True)
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    for name, value in headers.items():
        if value is not None:
            connection.putheader(name, value)
    connection.putheader("Content-Length", str(len(raw)))
    connection.endheaders(raw)
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def steps(packed: bytes, path: Path) -> int:
    path.write_bytes(gzip.decompress(packed))
    events = chrome_checker.load(path)["traceEvents"]
    return sum(event["name"] == "page's step" for event in events if event["ph"] == "X")


def test_the_user_of_a_process_gets_its_timeline(observed: Observed, tmp_path: Path) -> None:
    status, packed = ask(observed, {"pid": observed.pid, "seconds": 0.3})
    assert status == 200
    assert steps(packed, tmp_path / "trace.json") > 1


@pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no chromium")
def test_the_page_saves_a_trace_that_opens(observed: Observed, tmp_path: Path) -> None:
    with browser.page(tmp_path / "profile") as page:
        page.save_to(tmp_path)
        page.open(f"{observed.url}/")
        page.wait_for('document.querySelector("button.take")')
        page.ask('byId("trace-seconds").value = "1"; document.querySelector("button.take").click()')
        assert "tracing pid" in page.ask('byId("trace-said").textContent')
        page.wait_for('!byId("trace-said").textContent.startsWith("tracing")')
        assert page.ask('byId("trace-said").textContent').startswith("saved as opscope-")
        assert page.ask('!document.querySelector("button.take").disabled')
        found = tmp_path / f"opscope--c-{observed.pid}.json.gz"
        until(found.exists, "the download")
    assert steps(found.read_bytes(), tmp_path / "trace.json") > 1


@pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no chromium")
def test_the_page_lists_the_callers_of_an_operator(observed: Observed, tmp_path: Path) -> None:
    with browser.page(tmp_path / "profile") as page:
        page.open(f"{observed.url}/#operator=page%27s%20part")
        page.wait_for('document.querySelector("#operator-parts td.name")')
        page.ask('byId("callers-find").click()')
        assert "tracing pid" in page.ask('byId("callers-said").textContent')
        page.wait_for("callers.rows !== null")
        assert page.ask('byId("callers-said").textContent').startswith(f"pid {observed.pid}, ")
        rows = 'byId("operator-callers").tBodies[0].rows'
        (row,) = page.ask(f"[...{rows}].map(row => [...row.cells].map(cell => cell.textContent))")
    assert row[0] == "page's step" and int(row[1]) > 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_another_user_is_refused(observed: Observed) -> None:
    request = (
        f"POST {page_trace.PATH} HTTP/1.1\r\nHost: 127.0.0.1:{observed.port}\r\n"
        f"Origin: {observed.url}\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
        "Connection: close\r\n\r\n%s"
    )
    body = json.dumps({"pid": observed.pid, "seconds": 0.2})
    client = (
        "import socket, sys\n"
        f"with socket.create_connection(('127.0.0.1', {observed.port})) as one:\n"
        f"    one.sendall({request % (len(body), body)!r}.encode())\n"
        "    sys.stdout.write(one.makefile().read())\n"
    )
    answers = {
        user: subprocess.run(
            ["/usr/bin/python3", "-I", "-c", client],
            user=user,
            group=user,
            extra_groups=[],
            capture_output=True,
            text=True,
            errors="replace",
            check=True,
        ).stdout
        for user in (OTHER_USER, 65534)
    }
    assert " 403 " in answers[OTHER_USER]
    assert f"pid {observed.pid} belongs to uid 0; only that user and root" in answers[OTHER_USER]
    assert f"opened by uid {OTHER_USER}" in answers[OTHER_USER]
    # This one may be any user of another user namespace.
    assert "can only be taken from this host" in answers[65534]


@pytest.mark.parametrize(
    "changed",
    [
        {"Origin": None},
        {"Origin": "null"},
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        # A name that points here, by which another page reaches the agent.
        {"Origin": "http://evil.example", "Host": "evil.example"},
        {"Host": None},
        {"Content_Type": "text/plain"},
        {"Content_Type": None},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "cross-site"},
        {"X_Forwarded_For": "10.0.0.1"},
        {"Via": "1.1 proxy"},
    ],
)
def test_other_pages_and_proxies_are_refused(
    observed: Observed, changed: dict[str, str | None]
) -> None:
    status, text = ask(observed, {"pid": observed.pid, "seconds": 0.2}, **changed)
    assert status == 403
    assert b"opscope trace" in text or b"use localhost" in text


def test_only_a_post_takes_a_trace(observed: Observed) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", observed.port, timeout=300)
    for method, path, status in (
        ("GET", page_trace.PATH, 404),
        ("POST", "/metrics", 405),
        ("POST", "/nowhere", 404),
        ("PUT", page_trace.PATH, 501),
    ):
        connection.request(method, path, headers={"Origin": observed.url})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == status
        connection.close()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"[]", 400),
        (b"[" * 1000, 400),
        (b"x" * 1025, 400),
        ({"pid": 1}, 400),
        ({"pid": True, "seconds": 1}, 400),
        ({"pid": -1, "seconds": 1}, 400),
        ({"pid": 1, "seconds": 31}, 400),
        ({"pid": 1, "seconds": 0}, 400),
        ({"pid": 1, "seconds": float("nan")}, 400),
        ({"pid": 1 << 30, "seconds": 1}, 404),
    ],
)
def test_what_is_not_a_request_is_refused(observed: Observed, body: object, status: int) -> None:
    assert ask(observed, body)[0] == status


def test_one_trace_at_a_time(observed: Observed) -> None:
    long = threading.Thread(target=ask, args=(observed, {"pid": observed.pid, "seconds": 0.5}))
    long.start()
    until(observed.traces._lock.locked, "the first trace")
    status, text = ask(observed, {"pid": observed.pid, "seconds": 0.2})
    long.join()
    assert (status, b"already being taken" in text) == (409, True)
    assert not observed.traces._lock.locked()


def test_a_process_that_cannot_be_traced_gives_the_reason(
    observed: Observed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise AgentError("it did not answer")

    monkeypatch.setattr("opscope.control.trace.take", refuse)
    status, text = ask(observed, {"pid": observed.pid, "seconds": 0.2})
    assert (status, text) == (409, b"it did not answer\n")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1"])
def test_the_peers_user_is_that_of_its_socket(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with (
        socket.create_server((host, 0), family=family) as listener,
        socket.create_connection(listener.getsockname()[:2]) as client,
    ):
        accepted, peer_name = listener.accept()
        with accepted:
            assert peer.user_of(accepted.getsockname(), peer_name) == os.geteuid()
            # Not established any more: the kernel shows such sockets as root's.
            client.close()
            assert peer.user_of(accepted.getsockname(), peer_name) is None


def test_a_client_of_a_dual_socket_is_found() -> None:
    with (
        socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as listener,
        socket.create_connection(("127.0.0.1", listener.getsockname()[1])),
    ):
        accepted, peer_name = listener.accept()
        with accepted:
            assert peer_name[0] == "::ffff:127.0.0.1"
            assert peer.user_of(accepted.getsockname(), peer_name) == os.geteuid()


@pytest.mark.parametrize(
    "line",
    [
        "0: 0100007F:0001 0100007F:0002 06 0:0 0:0 0 0 0 0",
        "0: 0100007F:0001 0100007F:0002 01 0:0 0:0 0 0 0 0",
        "0: 0100007F:0002 0100007F:0001 01 0:0 0:0 0 0 0 9",
        "0: 0100007F:0001 0100007F:0002 01 0:0 0:0 0 65534 0 9",
        "0: 0100007F:0001 0100007F:0002 01",
        "",
    ],
)
def test_what_is_not_a_live_socket_of_a_known_user_is_nobody(line: str, tmp_path: Path) -> None:
    table = tmp_path / "tcp"
    table.write_text(f"  sl  local_address rem_address\n  {line}\n")
    assert peer.user_of(("127.0.0.1", 2), ("127.0.0.1", 1), str(table)) is None


def test_an_address_of_another_host_is_nobody() -> None:
    assert peer.user_of(("10.0.0.1", 2), ("10.0.0.2", 1)) is None
    assert peer.user_of(("127.0.0.1", 2), ("10.0.0.2", 1)) is None
    assert peer.user_of("", "") is None
