"""The dashboards: made from the code, whole, and with names from the one table of metrics."""

import re
from importlib.util import find_spec

import pytest

from opscope.metrics import METRICS, Kind
from tests.dashboards.documents import GRAFANA, boards, panel_queries, rules, variable_queries

# What the series have beside the labels of the table.
ADDED_LABELS = {"instance", "model_id", "le", "job", "alertname"}


def known_names() -> set[str]:
    """Samples that Prometheus has: of the agent's page, of rules, and its own."""
    names = {rule["record"] for rule in rules() if "record" in rule} | {"up", "ALERTS"}
    for metric in METRICS:
        name = metric.prometheus_name
        if metric.kind is Kind.HISTOGRAM:
            names |= {name, f"{name}_bucket", f"{name}_sum", f"{name}_count"}
        else:
            names.add(name + ("_total" if metric.kind is Kind.COUNTER else ""))
    return names


def all_promql() -> list[str]:
    return [
        *(rule["expr"] for rule in rules()),
        *(expr for _, _, expr in panel_queries()),
        *(series for _, series, _ in variable_queries()),
    ]


@pytest.mark.skipif(
    not find_spec("grafana_foundation_sdk"),
    reason="no grafana-foundation-sdk: the dependency group dashboards is not installed",
)
def test_the_json_is_what_the_code_makes() -> None:
    from dashboards.source.__main__ import documents

    found = {path.name: path.read_text() for path in GRAFANA.glob("*.json")}
    assert found == documents(), "run: make dashboards"


def test_every_name_is_of_the_table_or_of_a_rule() -> None:
    pattern = r"\bopscope[_:][\w:]+|\bALERTS\b"
    used = {name for promql in all_promql() for name in re.findall(pattern, promql)}
    assert used
    assert used - known_names() == set()


def test_every_label_is_of_the_table() -> None:
    known = ADDED_LABELS.union(*(metric.labels for metric in METRICS))
    used = set()
    for promql in all_promql():
        for names in re.findall(r"\b(?:by|on|group_left) \(([\w, ]*)\)", promql):
            used |= set(re.findall(r"\w+", names))
        used |= set(re.findall(r"(\w+) *(?:=~|!~|!=|=)\"", promql))
    assert {"service", "phase"} < used
    assert used - known == set()


def test_every_panel_says_what_it_shows_and_in_which_unit() -> None:
    for name, board in boards().items():
        for panel in board["panels"]:
            where = name, panel["title"]
            assert panel["description"].endswith("."), where
            assert panel["fieldConfig"]["defaults"]["unit"], where
            assert panel["targets"], where


def test_dashboards_are_linked_and_can_be_told_apart() -> None:
    found = boards()
    assert len(found) == 6
    for name, board in found.items():
        assert name == f"{board['uid']}.json"
        assert board["links"][0]["tags"] == board["tags"] == ["opscope"]
        variables = [one["name"] for one in board["templating"]["list"]]
        assert variables[:2] == ["datasource", "service"]
    text = "".join(path.read_text() for path in GRAFANA.glob("*.json"))
    linked = set(re.findall(r"/d/([\w-]+)\?", text))
    assert linked
    assert linked <= {board["uid"] for board in found.values()}


def test_links_and_queries_name_variables_that_there_are() -> None:
    by_uid = {
        board["uid"]: {one["name"] for one in board["templating"]["list"]}
        for board in boards().values()
    }
    for path in GRAFANA.glob("*.json"):
        text = path.read_text()
        for uid, rest in re.findall(r"/d/([\w-]+)\?([^\"]*)", text):
            assert set(re.findall(r"&var-(\w+)=", rest)) <= by_uid[uid], (path.name, rest)
            kept = set(re.findall(r"\$\{(\w+):queryparam\}", rest))
            assert kept <= by_uid[uid] & by_uid[path.stem], (path.name, rest)
        for _, _, expr in (one for one in panel_queries() if one[0] == path.name):
            used = set(re.findall(r"\$(\w+)", expr)) - {"__rate_interval"}
            assert used <= by_uid[path.stem], (path.name, expr)
