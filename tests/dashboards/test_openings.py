"""The timed queries equal Grafana's: its steps, its rate interval, its variables."""

import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.dashboards.openings import Browser, filled, questions, range_of, step_of


@pytest.mark.parametrize(
    ("range_s", "least_s", "expected"),
    [(3600, 15, 15), (3 * 3600, 15, 15), (6 * 3600, 15, 20), (86400, 15, 60), (3 * 3600, 60, 60)],
)
def test_the_step_is_a_nice_number(range_s: float, least_s: float, expected: float) -> None:
    assert step_of(range_s, least_s) == expected


def test_variables_are_filled_in() -> None:
    promql = 'rate(a{op="$operator", b=~"$b"}[$__rate_interval])'
    expected = 'rate(a{op="mm", b=~".*"}[60000ms])'
    assert filled(promql, {"operator": "mm", "b": ".*"}, 60) == expected


def test_a_panel_may_want_fewer_points() -> None:
    targets = [{"expr": "a[$__rate_interval]"}, {"expr": "b", "instant": True}]
    panel = {"title": "p", "targets": targets, "interval": "1m"}
    coarse, instant = questions(panel, 3 * 3600, {})
    assert (coarse.promql, coarse.step_s, instant.is_instant) == ("a[75000ms]", 60, True)
    (fine, _) = questions(panel | {"interval": None}, 3 * 3600, {}, pace=0.1)
    assert (fine.promql, fine.step_s) == ("a[6000ms]", 1.5)


BOARD = {
    "title": "b",
    "time": {"from": "now-3h", "to": "now"},
    "templating": {
        "list": [
            {"type": "datasource", "name": "datasource"},
            {
                "type": "query",
                "name": "service",
                "allValue": ".*",
                "query": {"query": "label_values(known, service_name)"},
            },
            {
                "type": "query",
                "name": "operator",
                "query": {"query": 'label_values(known{service_name=~"$service"}, op)'},
            },
            {"type": "custom", "name": "quantile", "current": {"value": "0.5"}},
        ]
    },
    "panels": [
        {
            "title": "one",
            "targets": [{"expr": 'quantile($quantile, a{op="$operator"})', "instant": True}],
        },
        {"title": "two", "targets": [{"expr": "broken"}]},
    ],
}


def test_variables_are_asked_for_before_the_panels() -> None:
    assert range_of(BOARD) == 3 * 3600
    asked: list[tuple[str, dict[str, list[str]]]] = []

    class Store(BaseHTTPRequestHandler):
        def answer(self, query: str) -> None:
            asked.append((urlsplit(self.path).path, parse_qs(query)))
            body = json.dumps({"data": ["add", "mm"]}).encode()
            self.send_response(500 if "broken" in query else 200)
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            self.answer(urlsplit(self.path).query)

        def do_POST(self) -> None:
            self.answer(self.rfile.read(int(self.headers["Content-Length"])).decode())

        def log_message(self, format: str, *args: object) -> None:
            """Logs nothing."""

    with HTTPServer(("127.0.0.1", 0), Store) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        opening = Browser(f"http://127.0.0.1:{server.server_port}").open(BOARD)
        server.shutdown()
        thread.join()
    assert [path.removeprefix("/api/v1/") for path, _ in asked[:2]] == [
        "label/service_name/values",
        "label/op/values",
    ]
    assert asked[1][1]["match[]"] == ['known{service_name=~".*"}']
    panels = {path.removeprefix("/api/v1/"): form for path, form in asked[2:]}
    assert panels["query"]["query"] == ['quantile(0.5, a{op="add"})']
    assert panels["query_range"]["step"] == ["15.000"]
    assert [one.question.panel for one in opening.failed] == ["two"]
    assert len(opening.answers) == 4
    assert opening.sum_s >= opening.worst.wall_s > 0
