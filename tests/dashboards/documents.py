"""The committed files under dashboards/, and the PromQL in them."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parents[2] / "dashboards"
GRAFANA, RULES, RUNBOOK = FOLDER / "grafana", FOLDER / "rules", FOLDER / "RUNBOOK.md"


ALL = ("cluster", "namespace", "job", "service", "served", "host", "model", "version")
"""Variables of which several values, or all, may be selected."""


def boards() -> dict[str, Any]:
    """Each dashboard, by the name of its file."""
    return {path.name: json.loads(path.read_text()) for path in sorted(GRAFANA.glob("*.json"))}


def panels(board: dict[str, Any]) -> list[dict[str, Any]]:
    """Those with data; the others are text."""
    return [panel for panel in board["panels"] if panel["type"] != "text"]


def panel_queries(*, exemplars: bool = False) -> Iterator[tuple[str, str, str]]:
    """(dashboard, panel, PromQL) of every query of every panel; `exemplars`: of those queries that
    have no data but exemplars, instead."""
    for name, board in boards().items():
        for panel in panels(board):
            for target in panel["targets"]:
                if bool(target.get("exemplar")) == exemplars:
                    yield name, panel["title"], target["expr"]


def query_of(board: str, panel: str) -> str:
    """The first query of that panel."""
    return next(expr for name, title, expr in panel_queries() if (name, title) == (board, panel))


def variable_queries() -> Iterator[tuple[str, str, str]]:
    """(dashboard, series, label) of every variable whose values Prometheus provides."""
    for name, board in boards().items():
        for variable in board["templating"]["list"]:
            if variable["type"] == "query":
                asked = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"])
                assert asked, variable
                yield name, asked[1], asked[2]


def filled(
    promql: str, operator: str, chosen: Mapping[str, str] | None = None, *, sure: bool = False
) -> str:
    """The query with the dashboard's variables set: to `chosen`, and the others to All. Unless
    `sure`, without the condition that a change be sure: most fleets have none that is."""
    if "_error:" in promql and not sure:
        promql = promql.replace(" > 1", " > 0")
    every = dict.fromkeys(ALL, ".*") | dict(chosen or {})
    for name, value in (
        ("__rate_interval", "30s"),
        ("__range", "5m"),
        ("quantile", "0.95"),
        ("operator", operator),
        *every.items(),
    ):
        promql = promql.replace(f"${name}", value)
    return promql


def rules() -> Iterator[dict[str, Any]]:
    for path in sorted(RULES.glob("*.yml")):
        for group in yaml.safe_load(path.read_text())["groups"]:
            yield from group["rules"]


def alerts() -> list[dict[str, Any]]:
    return [rule for rule in rules() if "alert" in rule]
