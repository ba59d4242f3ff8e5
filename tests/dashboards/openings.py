"""The queries that Grafana sends to a Prometheus when a dashboard is opened, and their duration.

First the variables, because panels wait for them, then the panels, with six requests at a time like
a browser. Variables have their defaults, All or the first value; ranges, steps and
`$__rate_interval` are computed as Grafana does for a panel of 1,000 pixels. Excludes drawing.
"""

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

PIXELS = 1000
SCRAPE_S = 15.0
"""Grafana's default for the scrape interval of a data source."""
AT_A_TIME = 6
_TIMEOUT_S = 120
# The steps that Grafana rounds to.
_NICE_S = (1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200, 10800, 21600)
_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True)
class Question:
    panel: str
    promql: str
    is_instant: bool
    step_s: float


@dataclass(frozen=True)
class Answer:
    question: Question
    wall_s: float
    bytes: int
    series: int
    error: str = ""
    """Why there was no answer."""


@dataclass(frozen=True)
class Opening:
    board: str
    wall_s: float
    """From the first question to the last answer."""
    answers: tuple[Answer, ...]

    @property
    def sum_s(self) -> float:
        return sum(one.wall_s for one in self.answers)

    @property
    def failed(self) -> list[Answer]:
        return [one for one in self.answers if one.error]

    @property
    def worst(self) -> Answer:
        return max(self.answers, key=lambda one: one.wall_s)


def seconds(text: str) -> float:
    """Seconds of a duration such as 15s or 3h."""
    found = re.fullmatch(r"(\d+)([smhd])", text)
    assert found, text
    return float(found[1]) * _UNITS_S[found[2]]


def step_of(range_s: float, least_s: float) -> float:
    """Seconds between two points: the nearest of Grafana's steps that is not smaller."""
    nearest = min(_NICE_S, key=lambda nice: abs(nice - range_s / PIXELS))
    return max(float(nearest), least_s)


def filled(promql: str, values: dict[str, str], rate_s: float, range_s: float = 3600.0) -> str:
    """With variables and `$__rate_interval` set."""
    promql = promql.replace("$__rate_interval", f"{1000 * rate_s:.0f}ms")
    promql = promql.replace("$__range", f"{1000 * range_s:.0f}ms")
    return re.sub(r"\$(\w+)", lambda found: values[found[1]], promql)


def _selected(variable: dict[str, Any], found: list[str]) -> str:
    """The default: All, as one pattern or as all values, or else the first value."""
    if variable.get("allValue") or not variable.get("includeAll"):
        return str(variable.get("allValue") or next(iter(found), ""))
    return f"({'|'.join(re.escape(value).replace(chr(92), chr(92) * 2) for value in found)})"


def range_of(board: dict[str, Any]) -> float:
    begin = board["time"]["from"]
    return seconds(begin.removeprefix("now-"))


def questions(
    panel: dict[str, Any],
    range_s: float,
    values: dict[str, str],
    scrape_s: float = SCRAPE_S,
    pace: float = 1.0,
) -> list[Question]:
    """`pace`: the real length of a second of the queries."""
    step_s = step_of(range_s, max(scrape_s, seconds(panel.get("interval") or "1s")))
    rate_s = max(step_s + scrape_s, 4 * scrape_s) * pace
    return [
        Question(
            panel["title"],
            filled(target["expr"], values, rate_s, range_s * pace),
            bool(target.get("instant")),
            step_s * pace,
        )
        for target in panel.get("targets", ())
    ]


class Browser:
    """Opens dashboards on the Prometheus at `url`, where a second lasts as long as `pace`."""

    def __init__(self, url: str, scrape_s: float = SCRAPE_S, pace: float = 1.0) -> None:
        self._url, self._scrape_s, self._pace = url + "/api/v1/", scrape_s, pace

    def open(self, board: dict[str, Any]) -> Opening:
        range_s, end_s = range_of(board), time.time()
        begin_s = end_s - range_s * self._pace
        answers: list[Answer] = []
        began = time.perf_counter()
        values: dict[str, str] = {}
        for variable in board["templating"]["list"]:
            if variable["type"] == "query":
                answer, found = self._values(variable, values, begin_s, end_s)
                answers.append(answer)
                values[variable["name"]] = _selected(variable, found)
            elif variable["type"] == "custom":
                values[variable["name"]] = variable["current"]["value"]
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            for panel in pool.map(
                lambda panel: [
                    self._ask(one, begin_s, end_s)
                    for one in questions(panel, range_s, values, self._scrape_s, self._pace)
                ],
                board["panels"],
            ):
                answers += panel
        return Opening(board["title"], time.perf_counter() - began, tuple(answers))

    def _values(
        self, variable: dict[str, Any], values: dict[str, str], begin_s: float, end_s: float
    ) -> tuple[Answer, list[str]]:
        """The values of a variable's label."""
        asked = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"])
        assert asked, variable
        series = filled(asked[1], values, self._scrape_s)
        body, wall_s, error = self._get(
            f"label/{asked[2]}/values",
            {"match[]": series, "start": f"{begin_s:.3f}", "end": f"{end_s:.3f}"},
            method="GET",
        )
        found: list[str] = [] if error else json.loads(body)["data"]
        question = Question(f"${variable['name']}", variable["query"]["query"], True, 0)
        return Answer(question, wall_s, len(body), len(found), error), found

    def _ask(self, one: Question, begin_s: float, end_s: float) -> Answer:
        if one.is_instant:
            body, wall_s, error = self._get("query", {"query": one.promql, "time": f"{end_s:.3f}"})
        else:
            # Grafana aligns a range to whole steps.
            begin_s, end_s = (at // one.step_s * one.step_s for at in (begin_s, end_s))
            asked = {"start": f"{begin_s:.3f}", "end": f"{end_s:.3f}", "step": f"{one.step_s:.3f}"}
            body, wall_s, error = self._get("query_range", {"query": one.promql} | asked)
        return Answer(one, wall_s, len(body), body.count(b'{"metric":'), error)

    def _get(
        self, path: str, asked: dict[str, str], *, method: str = "POST"
    ) -> tuple[bytes, float, str]:
        """The answer, its duration, and the reason if it failed."""
        query = urlencode(asked)
        data = query.encode() if method == "POST" else None
        url = self._url + path + ("" if data else f"?{query}")
        began = time.perf_counter()
        try:
            with urlopen(Request(url, data, method=method), timeout=_TIMEOUT_S) as answer:
                body: bytes = answer.read()
        except HTTPError as error:
            return b"", time.perf_counter() - began, error.read(500).decode()
        except OSError as error:
            return b"", time.perf_counter() - began, str(error)
        return body, time.perf_counter() - began, ""
