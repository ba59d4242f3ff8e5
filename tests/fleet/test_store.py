"""Queries to a store of metrics, and the errors for invalid answers."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs

import pytest
from click.testing import CliRunner

from opscope.cli._group import main
from opscope.errors import FleetError
from opscope.fleet.store import Store
from tests.exporters.hostile_receiver import dribbling, hostile
from tests.exporters.hostile_receiver import said as saying


class Answering:
    """A server that always gives one answer, and keeps the requests."""

    def __init__(self, status: int, text: str) -> None:
        self.headers: dict[str, str] = {}
        self.asked: dict[str, list[str]] = {}
        outer = self

        class Page(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer.headers = dict(self.headers)
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.asked = {"path": [self.path]} | parse_qs(body.decode())
                self.send_response(status)
                self.end_headers()
                self.wfile.write(text.encode(errors="surrogateescape"))

            def log_message(self, format: str, *args: object) -> None:
                """Logs nothing."""

        self._server = HTTPServer(("127.0.0.1", 0), Page)
        self._thread = Thread(target=self._server.serve_forever)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@contextmanager
def answering(status: int, text: str) -> Iterator[Answering]:
    server = Answering(status, text)
    try:
        yield server
    finally:
        server.close()


def vector(*values: str) -> str:
    result: list[Any] = [
        {"metric": {"op": f"op{n}"}, "value": [1, v]} for n, v in enumerate(values)
    ]
    result.append({"metric": {}, "histogram": [1, {"count": "1"}]})
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}})


def test_values_that_are_not_finite_are_left_out() -> None:
    with answering(200, vector("1.5", "NaN", "+Inf")) as server:
        found = Store(f"{server.url}/").query('up{a="b c"}', at_s=12.5)
    assert [(one.labels, one.value) for one in found] == [({"op": "op0"}, 1.5)]
    assert server.asked == {
        "path": ["/api/v1/query"],
        "query": ['up{a="b c"}'],
        "time": ["12.500"],
    }


def test_headers_go_with_every_request() -> None:
    with answering(200, vector("1")) as server:
        words = ["fleet", "usage", "--url", server.url, "--header", "X-Scope-OrgID: team"]
        done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    headers = {name.lower(): value for name, value in server.headers.items()}
    assert headers["x-scope-orgid"] == "team"


@pytest.mark.parametrize(
    ("status", "text", "said"),
    [
        (400, '{"status":"error","error":"parse error"}', "400: parse error"),
        (401, "who are you?", "401: who are you?"),
        (200, "<html>", "does not follow Prometheus's API"),
        (200, '{"data": {}}', "does not follow Prometheus's API"),
        (200, '{"data": {"result": [{"value": 1}]}}', "does not follow Prometheus's API"),
        (200, '{"data": {"result": 5}}', "does not follow Prometheus's API"),
        (200, '{"data": {"result": {"value": 1}}}', "does not follow Prometheus's API"),
        (
            200,
            '{"data": {"result": [{"metric": {"op": 1}, "value": [1, "1"]}]}}',
            "does not follow",
        ),
        (200, '{"data": {"result": [{"metric": [], "value": [1, "1"]}]}}', "does not follow"),
        (200, '{"data": {"result": [{"metric": {}, "value": [1, []]}]}}', "does not follow"),
        (200, "[" * 100_000, "does not follow Prometheus's API"),
        (200, "\udcff", "does not follow Prometheus's API"),
        (400, "[" * 50_000, "400: "),
        (307, "", "307: .*redirects are not followed"),
    ],
)
def test_a_malformed_answer_is_reported(status: int, text: str, said: str) -> None:
    with answering(status, text) as server, pytest.raises(FleetError, match=said):
        Store(server.url).query("up")


HEAD = b"HTTP/1.1 200 OK\nContent-Length: 9999999999\n\n"


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (HEAD, b" "),
        (b"HTTP/1.1 200 OK\nX: ", b"x"),
        (b"HTTP/1.1 400 No\nContent-Length: 9999999999\n\n", b"x"),
    ],
    ids=["body", "header", "error"],
)
def test_a_slow_answer_is_given_up(head: bytes, piece: bytes) -> None:
    with hostile(dribbling(head, piece)) as store, pytest.raises(FleetError):
        Store(store.url, timeout_s=0.5).query("up")


def test_a_name_lookup_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    ended, real = threading.Event(), socket.getaddrinfo

    def hangs(*arguments: Any, **options: Any) -> Any:
        if not options.get("flags"):
            ended.wait()
        return real(*arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", hangs)
    try:
        with pytest.raises(FleetError):
            Store("http://store.invalid:9", timeout_s=0.5).query("up")
    finally:
        ended.set()


def test_an_answer_is_read_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opscope.fleet.store._ANSWER_BYTES", 3 << 20)
    endless = dribbling(HEAD, bytes(1 << 18), 0.0)
    with (
        hostile(endless) as store,
        pytest.raises(FleetError, match="3 MiB; select less with --service"),
    ):
        Store(store.url).query("up")


def test_a_truncated_answer_is_reported() -> None:
    cut = saying(b"HTTP/1.1 200 OK\nContent-Length: 9", b"{")
    with hostile(cut) as store, pytest.raises(FleetError, match="not answer: IncompleteRead"):
        Store(store.url).query("up")


def test_headers_are_given_to_no_other_server() -> None:
    with answering(200, vector("1")) as other:
        head = f"HTTP/1.1 302 Found\nLocation: {other.url}/\nContent-Length: 0".encode()
        with (
            hostile(saying(head)) as store,
            pytest.raises(FleetError, match="302: Found; redirects"),
        ):
            Store(store.url, {"Authorization": "Bearer secret"}).query("up")
        assert other.headers == {}


def test_text_of_a_store_commands_no_terminal() -> None:
    result = [{"metric": {"op": "a\x1b]0;b\x07", "instance": "x" * 5000}, "value": [1, "1"]}]
    with answering(200, json.dumps({"data": {"result": result}})) as server:
        (found,) = Store(server.url).query("up")
    assert found.labels == {"op": "a?]0;b?", "instance": "x" * 1024}
    with answering(400, "\x1b[2J") as server, pytest.raises(FleetError, match=r"400: \?\[2J"):
        Store(server.url).query("up")


@pytest.mark.parametrize("moment", ["1e300", "-1", "NaN", "Infinity"])
def test_a_moment_outside_of_those_asked_for_is_not_taken(moment: str) -> None:
    text = '{"data": {"result": [{"values": [[AT, "1"]]}]}}'.replace("AT", moment)
    with answering(200, text) as server, pytest.raises(FleetError, match="does not follow"):
        Store(server.url).last_time("up", 100.0, 200.0, 15.0)


def test_an_unreachable_store_is_reported() -> None:
    done = CliRunner().invoke(main, ["fleet", "top", "--url", "http://127.0.0.1:9"])
    assert done.exit_code == 1
    assert "http://127.0.0.1:9 does not answer" in done.output
    assert "OPSCOPE_FLEET_URL" in done.output


@pytest.mark.parametrize("url", ["127.0.0.1:9090", "file:///etc/passwd", ""])
def test_a_url_of_another_kind_is_refused(url: str) -> None:
    with pytest.raises(FleetError, match="must begin with http"):
        Store(url)
