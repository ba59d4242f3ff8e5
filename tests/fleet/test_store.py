"""What is asked of a store of metrics, and what is said where it does not answer as it should."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs

import pytest
from click.testing import CliRunner

from opscope.cli import main
from opscope.errors import FleetError
from opscope.fleet.store import Store


class Answering:
    """A server that says one thing, and keeps what it was asked."""

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
                self.wfile.write(text.encode())

            def log_message(self, format: str, *args: object) -> None:
                """Nothing."""

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


def test_what_is_no_number_is_left_out() -> None:
    with answering(200, vector("1.5", "NaN", "+Inf")) as server:
        found = Store(f"{server.url}/").query('up{a="b c"}', at_s=12.5)
    assert [(one.labels, one.value) for one in found] == [
        ({"op": "op0"}, 1.5),
        ({"op": "op2"}, float("inf")),
    ]
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
        (200, "<html>", "is not of Prometheus's API"),
        (200, '{"data": {}}', "is not of Prometheus's API"),
        (200, '{"data": {"result": [{"value": 1}]}}', "is not of Prometheus's API"),
    ],
)
def test_an_answer_that_is_none_is_told(status: int, text: str, said: str) -> None:
    with answering(status, text) as server, pytest.raises(FleetError, match=said):
        Store(server.url).query("up")


def test_a_store_that_is_not_there_is_told() -> None:
    done = CliRunner().invoke(main, ["fleet", "top", "--url", "http://127.0.0.1:9"])
    assert done.exit_code == 1
    assert "http://127.0.0.1:9 does not answer" in done.output
    assert "OPSCOPE_FLEET_URL" in done.output


@pytest.mark.parametrize("url", ["127.0.0.1:9090", "file:///etc/passwd", ""])
def test_a_url_of_another_kind_is_refused(url: str) -> None:
    with pytest.raises(FleetError, match="must begin with http"):
        Store(url)
