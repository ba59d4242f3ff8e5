"""The dashboards: generated from the code, complete, with names from the table of metrics."""

import json
import re
from importlib.util import find_spec
from typing import Any

import pytest

from opscope.cli import annotate
from opscope.fleet.annotation import CAPTURE
from opscope.metric_definition import Kind
from opscope.metrics import METRICS
from tests.dashboards.documents import (
    ALL,
    GRAFANA,
    boards,
    panel_queries,
    panels,
    rules,
    variable_queries,
)

# Labels of the series besides those in the table.
ADDED_LABELS = {"cluster", "instance", "model_id", "model_version", "le", "job"}
OF_ALERTS = {"alertname", "alertstate", "severity"}
# Of opscope_resource_info: attributes of the processes' resource.
OF_RESOURCES = {"k8s_namespace_name", "job_id"}
# A label value that no series has: see dashboards/source/queries.py.
NO_LABEL = {"every_host"}


def known_names() -> set[str]:
    """Samples in Prometheus: of the agent's page, of rules, and its own."""
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


needs_sdk = pytest.mark.skipif(
    not find_spec("grafana_foundation_sdk"),
    reason="no grafana-foundation-sdk: the dependency group dashboards is not installed",
)


@needs_sdk
def test_grafanas_own_reader_keeps_all_of_them() -> None:
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.cog.plugins import register_default_plugins
    from grafana_foundation_sdk.models.dashboard import Dashboard

    register_default_plugins()
    for name, board in boards().items():
        read = json.loads(JSONEncoder().encode(Dashboard.from_json(board)))
        # In 10.1, the SDK's version, a heat map's tooltip is on or off; later versions have a mode.
        known = {f"/panels/{n}/options/tooltip/mode" for n in range(len(board["panels"]))}
        # The SDK does not know what the data source Prometheus wants of an annotation.
        of_prometheus = ("expr", "step", "textFormat", "titleFormat", "useValueForTime")
        known |= {f"/annotations/list/2/{key}" for key in of_prometheus}
        assert lost(board, read) <= known, name


def lost(whole: Any, read: Any, path: str = "") -> set[str]:
    """The paths in the document whose value is missing or different after it was read."""
    if isinstance(whole, dict) and isinstance(read, dict):
        return {
            place
            for key, value in whole.items()
            for place in lost(value, read.get(key), f"{path}/{key}")
        }
    if isinstance(whole, list) and isinstance(read, list) and len(whole) == len(read):
        return {
            place
            for number, (one, other) in enumerate(zip(whole, read, strict=True))
            for place in lost(one, other, f"{path}/{number}")
        }
    return set() if whole == read else {path}


@needs_sdk
def test_the_json_is_what_the_code_makes() -> None:
    from dashboards.source.__main__ import documents

    found = {path.name: path.read_text() for path in GRAFANA.glob("*.json")}
    assert found == documents(), "run: make dashboards"


def test_every_metric_name_is_in_the_table_or_a_rule() -> None:
    pattern = r"\bopscope[_:][\w:]+|\bnv_\w+|\bALERTS\b"
    used = {name for promql in all_promql() for name in re.findall(pattern, promql)}
    assert used
    assert used - known_names() == set()


def test_every_label_is_of_the_table() -> None:
    known = ADDED_LABELS | OF_ALERTS | OF_RESOURCES
    known = known.union(*(metric.labels for metric in METRICS))
    used = set()
    for promql in all_promql():
        for names in re.findall(r"\b(?:by|on|group_left) \(([\w, ]*)\)", promql):
            used |= set(re.findall(r"\w+", names))
        used |= set(re.findall(r"(\w+) *(?:=~|!~|!=|=)\"", promql))
    assert {"service_name", "phase"} < used
    assert used - known == NO_LABEL


def test_every_panel_has_a_description_and_a_unit() -> None:
    for name, board in boards().items():
        for panel in panels(board):
            where = name, panel["title"]
            assert panel["description"].endswith("."), where
            assert panel["fieldConfig"]["defaults"]["unit"], where
            assert panel["targets"], where


def test_the_overview_reads_only_recorded_sums() -> None:
    """A dashboard must open as fast for a thousand hosts as for ten (tests/dashboards/scale.py)."""
    board = "opscope-fleet.json"
    asked = [promql for name, _, promql in panel_queries() if name == board]
    asked += [series for name, series, _ in variable_queries() if name == board]
    assert asked
    # The names of series per host contain "host".
    of_rules = r"opscope:(?!host_)\w+:\w+|ALERTS\b"
    for promql in asked:
        named = re.findall(r"\bopscope[_:][\w:]+|\bALERTS\b", promql)
        assert named and all(re.fullmatch(of_rules, name) for name in named), promql


def test_no_graph_of_sums_queries_between_two_evaluations() -> None:
    graphs = [
        (panel, [target["expr"] for target in panel["targets"]])
        for board in boards().values()
        for panel in board["panels"]
        if panel["type"] == "timeseries"
    ]
    of_sums = [
        panel
        for panel, exprs in graphs
        if all("opscope:" in expr and "[" not in expr for expr in exprs)
    ]
    assert of_sums
    assert {panel.get("interval") for panel in of_sums} == {"1m"}


def test_dashboards_are_linked_and_have_distinct_titles() -> None:
    found = boards()
    assert len(found) == 7
    for name, board in found.items():
        assert name == f"{board['uid']}.json"
        assert board["links"][0]["tags"] == board["tags"] == ["opscope"]
        variables = [one["name"] for one in board["templating"]["list"]]
        assert variables[:5] == ["datasource", "cluster", "namespace", "job", "service"]
    text = "".join(path.read_text() for path in GRAFANA.glob("*.json"))
    linked = set(re.findall(r"/d/([\w-]+)\?", text))
    assert linked
    assert linked <= {board["uid"] for board in found.values()}


def test_panels_lead_deeper() -> None:
    """Links from each dashboard about several objects to the dashboard about one of them."""
    links: dict[str, set[str]] = {}
    for name, board in boards().items():
        found = re.findall(r"/d/([\w-]+)\?", json.dumps(board["panels"]))
        links[name.removesuffix(".json")] = set(found)
    assert links["opscope-fleet"] >= {"opscope-operator", "opscope-model"}
    assert links["opscope-model"] >= {"opscope-operator"}
    assert links["opscope-hosts"] >= {"opscope-hosts", "opscope-operator"}
    assert links["opscope-operator"] >= {"opscope-hosts"}


def test_variables_have_descriptions_and_query_the_chosen_source() -> None:
    for name, board in boards().items():
        source, *others = board["templating"]["list"]
        assert source["type"] == "datasource" and source["query"] == "prometheus", name
        for variable in others:
            assert variable["label"] and variable["description"].endswith("."), (name, variable)
            if variable["type"] == "query":
                assert variable["datasource"]["uid"] == "${datasource}", (name, variable)
        for panel in panels(board):
            assert panel["datasource"]["uid"] == "${datasource}", (name, panel["title"])


def test_each_dashboard_shows_what_opscope_annotate_posts() -> None:
    for name, board in boards().items():
        releases, captures, versions = board["annotations"]["list"]
        for shown, tag in ((releases, annotate._TAG), (captures, CAPTURE)):
            assert shown["enable"] and shown["datasource"]["type"] == "grafana", name
            assert shown["target"]["tags"] == [tag], name
        assert "opscope:version_first_seen:timestamp" in versions["expr"], name


def test_panels_do_not_overlap_and_stay_within_the_page() -> None:
    for name, board in boards().items():
        taken: set[tuple[int, int]] = set()
        for panel in board["panels"]:
            x, y, w, h = (panel["gridPos"][key] for key in "xywh")
            assert x + w <= 24, (name, panel["title"])
            cells = {(column, row) for column in range(x, x + w) for row in range(y, y + h)}
            assert not cells & taken, (name, panel["title"])
            taken |= cells


def test_links_and_queries_name_existing_variables() -> None:
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
            used = set(re.findall(r"\$(\w+)", expr)) - {"__rate_interval", "__range"}
            assert used <= by_uid[path.stem], (path.name, expr)


def test_each_dashboard_begins_with_its_question() -> None:
    for name, board in boards().items():
        first = board["panels"][0]
        assert first["type"] == "text" and first["gridPos"]["y"] == 0, name
        assert re.match(r"### [^\n]+\?\n", first["options"]["content"]), name


def test_numbers_are_coloured_by_thresholds_over_their_line() -> None:
    numbers = [
        (name, panel)
        for name, board in boards().items()
        for panel in panels(board)
        if panel["type"] == "stat"
    ]
    assert {name for name, _ in numbers} == set(boards())
    for name, panel in numbers:
        where = name, panel["title"]
        steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
        assert steps[0]["value"] is None and len(steps) > 1, where
        values = [step["value"] for step in steps[1:]]
        assert values == sorted(values), where
        assert panel["options"]["graphMode"] == "area", where
        assert not panel["targets"][0].get("instant"), where


def test_links_between_dashboards_keep_the_selection() -> None:
    """All that both have, or a value from the row that was clicked."""
    for path in GRAFANA.glob("*.json"):
        for uid, rest in re.findall(r"/d/([\w-]+)\?([^\"]*)", path.read_text()):
            told = set(re.findall(r"\$\{(\w+):queryparam\}|&var-(\w+)=", rest))
            for name in ("datasource", "cluster", "namespace", "job", "service"):
                assert any(name in pair for pair in told), (path.name, uid, name)


def test_the_largest_service_does_not_flatten_the_others() -> None:
    """Lines of services and models that are not shares have a logarithmic axis."""
    scales = [
        panel["fieldConfig"]["defaults"]["custom"].get("scaleDistribution")
        for board in boards().values()
        for panel in panels(board)
        if panel["type"] == "timeseries"
        and panel["title"].startswith(("Time by service", "Time by model", "Steps"))
    ]
    assert scales == [{"type": "log", "log": 10}] * 3


def test_every_variable_of_several_values_is_set_in_these_tests() -> None:
    several = {
        one["name"]
        for board in boards().values()
        for one in board["templating"]["list"]
        if one.get("multi")
    }
    assert several == set(ALL)
