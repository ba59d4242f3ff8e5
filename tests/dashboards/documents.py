"""The committed files under dashboards/, and the PromQL in them."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parents[2] / "dashboards"
GRAFANA, RULES, RUNBOOK = FOLDER / "grafana", FOLDER / "rules", FOLDER / "RUNBOOK.md"


def boards() -> dict[str, Any]:
    """Each dashboard, by the name of its file."""
    return {path.name: json.loads(path.read_text()) for path in sorted(GRAFANA.glob("*.json"))}


def panel_queries() -> Iterator[tuple[str, str, str]]:
    """(dashboard, panel, PromQL) of every query of every panel."""
    for name, board in boards().items():
        for panel in board["panels"]:
            for target in panel["targets"]:
                yield name, panel["title"], target["expr"]


def variable_queries() -> Iterator[tuple[str, str, str]]:
    """(dashboard, series, label) of every variable whose values Prometheus provides."""
    for name, board in boards().items():
        for variable in board["templating"]["list"]:
            if variable["type"] == "query":
                asked = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"])
                assert asked, variable
                yield name, asked[1], asked[2]


def filled(promql: str, operator: str, chosen: Mapping[str, str] | None = None) -> str:
    """The query with the dashboard's variables set: to `chosen`, and the others to All."""
    every = dict.fromkeys(("service", "served", "host", "model"), ".*") | dict(chosen or {})
    for name, value in (
        ("__rate_interval", "30s"),
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
