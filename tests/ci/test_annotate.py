"""`opscope annotate` against a real HTTP server that keeps what it gets."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from opscope.cli._group import main


class Grafana:
    """Answers as Grafana does."""

    def __init__(self) -> None:
        self.status, self.answer = 200, '{"message":"Annotation added","id":7}'
        self.path = ""
        self.headers: dict[str, str] = {}
        self.body: dict[str, object] = {}
        outer = self

        class Page(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer.path, outer.headers = self.path, dict(self.headers)
                outer.body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(outer.status)
                self.send_header("Location", "http://127.0.0.1:1/")
                self.end_headers()
                self.wfile.write(outer.answer.encode())

            def log_message(self, format: str, *args: object) -> None:
                """Logs nothing."""

        self.server = HTTPServer(("127.0.0.1", 0), Page)
        self.url = f"http://127.0.0.1:{self.server.server_port}/grafana"


@pytest.fixture
def grafana() -> Iterator[Grafana]:
    found = Grafana()
    thread = threading.Thread(target=found.server.serve_forever)
    thread.start()
    yield found
    found.server.shutdown()
    thread.join()
    found.server.server_close()


def annotate(grafana: Grafana, *words: str, token: str = "secret") -> Result:
    environ = {"GRAFANA_URL": grafana.url, "GRAFANA_TOKEN": token}
    return CliRunner().invoke(main, ["annotate", *words], env=environ)


def test_a_release_has_its_tags_and_the_token(grafana: Grafana) -> None:
    done = annotate(grafana, "--service=ranker", "--version=1.4.2", "--at=2026-01-31T12:00:00Z")
    assert (done.exit_code, done.output) == (0, "annotated: id 7\n")
    assert grafana.path == "/grafana/api/annotations"
    assert grafana.headers["Authorization"] == "Bearer secret"
    assert grafana.body == {
        "time": 1769860800000,
        "tags": ["opscope", "release", "service:ranker", "version:1.4.2"],
        "text": "release ranker 1.4.2",
    }


def test_a_span_of_one_dashboard(grafana: Grafana, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("other\n")
    words = ("--at=1000", "--until=1060.5", "--dashboard=opscope-fleet", "--tag=maintenance", "new")
    assert annotate(grafana, f"--token-file={path}", *words).exit_code == 0
    assert grafana.headers["Authorization"] == "Bearer other"
    assert grafana.body == {
        "time": 1000000,
        "timeEnd": 1060500,
        "tags": ["opscope", "maintenance"],
        "text": "new",
        "dashboardUID": "opscope-fleet",
    }


@pytest.mark.parametrize(
    ("status", "remedy"),
    [(401, "--token-file"), (403, "annotations:create"), (404, "--url"), (302, "not followed")],
)
def test_a_refusal_has_its_reason_and_a_remedy(grafana: Grafana, status: int, remedy: str) -> None:
    grafana.status, grafana.answer = status, '{"message":"no\\u001b[31m way"}'
    done = annotate(grafana, "text")
    assert done.exit_code == 1
    assert "no" in done.output and "way" in done.output and remedy in done.output
    assert "\x1b" not in done.output
    assert "secret" not in done.output


@pytest.mark.parametrize("answer", ["<html>Sign in</html>", "", "[7]", "7", "null", "[" * 100_000])
def test_an_answer_that_is_not_grafanas_is_a_failure(grafana: Grafana, answer: str) -> None:
    """The page of a proxy that wants a login, for example, with status 200."""
    grafana.answer = answer
    done = annotate(grafana, "text")
    assert done.exit_code == 1
    assert f"{grafana.url}: not Grafana's answer; --url or GRAFANA_URL must be" in done.output


def test_an_answer_without_an_id_is_a_success(grafana: Grafana) -> None:
    grafana.answer = '{"message":"Annotation added"}'
    done = annotate(grafana, "text")
    assert (done.exit_code, done.output) == (0, "annotated\n")


def test_no_grafana_is_one_line(grafana: Grafana) -> None:
    done = annotate(grafana, "text", "--url=http://127.0.0.1:1")
    assert done.exit_code == 1
    assert done.output.startswith("Error: http://127.0.0.1:1 does not answer: ")


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ((), "Give TEXT or --version"),
        (("x", "--at=soon"), "is not a time"),
        (("x", "--at=nan"), "is not a time"),
        (("x", "--at=20", "--until=10"), "before the start"),
    ],
)
def test_usage_errors(grafana: Grafana, words: tuple[str, ...], what: str) -> None:
    done = annotate(grafana, *words)
    assert done.exit_code == 2
    assert what in done.output
    assert grafana.body == {}
