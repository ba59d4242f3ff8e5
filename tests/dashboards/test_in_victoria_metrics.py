"""Every query of every panel has an answer in VictoriaMetrics, into which a Prometheus writes
classic histograms, and whose vmalert evaluates the rules."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dashboards.documents import filled, panel_queries, rules, variable_queries
from tests.dashboards.live import REAL, assert_answered, beside_a_real_host
from tests.dashboards.test_in_prometheus import FLEET, OPERATORS, SERVING, _has
from tests.exporters.conftest import (  # noqa: F401
    debian,
    newest_victoria_metrics,
    old_prometheus,
    victoria_metrics,
)
from tests.exporters.peers import Store, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.external]


@pytest.fixture(scope="module", params=["victoria_metrics", "newest_victoria_metrics"])
def store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Store]:
    prometheus: Path = request.getfixturevalue("old_prometheus")
    victoria: Path = request.getfixturevalue(request.param)
    environ = {
        "OPSCOPE_MAX_OVERHEAD": "90%",
        "OTEL_RESOURCE_ATTRIBUTES": "service.version=1",
    }
    place = tmp_path_factory.mktemp("victoria")
    with beside_a_real_host(
        prometheus, place, FLEET, native=False, environ=environ, victoria=victoria
    ) as found:
        wait_for(lambda: found.values(f'opscope_op_samples_total{{instance="{REAL}"}}'), REAL)
        yield found


def test_every_panel_has_data(store: Store) -> None:
    asked = {
        filled(promql, operator): f"{board}, {panel}"
        for board, panel, promql in panel_queries()
        # Of the heat map, the query of native histograms has none.
        if board != SERVING and not (panel == "Durations" and "_bucket" not in promql)
        for operator in (OPERATORS if "$operator" in promql else OPERATORS[:1])
        if _has(operator, promql, native=False)
    }
    assert len(asked) > 80
    assert_answered(store, asked)


def test_every_variable_and_every_rule_has_data(store: Store) -> None:
    asked = {rule["record"]: "rule" for rule in rules() if "record" in rule}
    for board, series, label in variable_queries():
        if board != SERVING:
            asked[f"count by ({label}) ({filled(series, OPERATORS[0])})"] = label
    assert_answered(store, asked)
