"""Every query of every panel and rule has an answer in a real Prometheus, filled by a simulated
fleet and a real host; and the rules on stragglers compute there what they do in NumPy."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from opscope.cli import main
from opscope.metrics import METRICS
from tests.dashboards.documents import boards, panel_queries, rules, variable_queries
from tests.dashboards.fleet import Fleet
from tests.dashboards.live import PROGRAM, RUN, Hosts, prometheus
from tests.dashboards.statistics import alarms, slowness
from tests.exporters.conftest import debian, new_prometheus, old_prometheus  # noqa: F401
from tests.exporters.peers import Store, agent, wait_for

FLEET = Fleet(
    7,
    hosts=24,
    operators=10,
    samples=5000,
    slowdown=1.4,
    versions=("1", "2"),
    factors=(1.0, 1.02),
)
REAL = "real"


@dataclass
class Case:
    store: Store
    native: bool


@pytest.fixture(
    scope="module", params=[("old_prometheus", False), ("new_prometheus", True)], ids=lambda p: p[0]
)
def case(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Case]:
    name, native = request.param
    program: Path = request.getfixturevalue(name)
    place = tmp_path_factory.mktemp("live")
    segments = place / "segments"
    segments.mkdir(mode=0o700)
    (segments / f"1-1-{'0' * 16}.seg").write_bytes(b"no segment")
    environ = os.environ | {
        "OPSCOPE_DIR": str(segments),
        "OTEL_SERVICE_NAME": "training",
        "OTEL_RESOURCE_ATTRIBUTES": "service.version=1.2%2B3",
    }
    jsonl = ("--exporter", "prometheus", "--exporter", "jsonl")
    options = (*jsonl, "--jsonl-file", str(place / "lines"), "--jsonl-interval-s", "1")
    hosts = Hosts(FLEET)
    try:
        with (
            agent(segments, *options) as address,
            prometheus(
                program,
                place / "prometheus",
                [*hosts.targets, {"targets": [address], "labels": {"instance": REAL}}],
                native=native,
            ) as store,
            subprocess.Popen(
                [*RUN, sys.executable, "-c", PROGRAM], env=environ, stdin=subprocess.PIPE
            ) as training,
        ):
            wait_for(lambda: store.values("opscope:version_slowness:15m"), "versions")
            wait_for(lambda: store.values(f'opscope_op_calls_total{{instance="{REAL}"}}'), REAL)
            yield Case(store, native)
            training.communicate(timeout=60)
    finally:
        hosts.close()


def filled(promql: str, operator: str) -> str:
    """With the dashboards' variables set."""
    for name, value in (
        ("__rate_interval", "30s"),
        ("quantile", "0.95"),
        ("operator", operator),
        *((name, ".*") for name in ("service", "host", "model")),
    ):
        promql = promql.replace(f"${name}", value)
    return promql


OPERATORS = ("aten::operator0", "core::matmul", "numpy::add")


def test_every_panel_has_data(case: Case) -> None:
    heat_maps = {
        (name, panel["title"])
        for name, board in boards().items()
        for panel in board["panels"]
        if panel["type"] == "heatmap"
    }
    asked: dict[str, str] = {}
    for name, panel, promql in panel_queries():
        if (name, panel) in heat_maps and ("_bucket" in promql) == case.native:
            unasked = filled(promql, OPERATORS[0])
            assert case.store.series(unasked) == [], (name, panel)
            continue
        for operator in OPERATORS if "$operator" in promql else OPERATORS[:1]:
            if operator.startswith("numpy") and "memory" in promql:
                continue  # NumPy does not tell.
            asked[filled(promql, operator)] = f"{name}, {panel}"
    assert_answered(case.store, asked)


def assert_answered(store: Store, asked: dict[str, str]) -> None:
    """All of them, sooner or later; `asked`: what each is, for people."""
    left = dict(asked)

    def are_answered() -> bool:
        for promql in [*left]:
            if store.series(promql):
                del left[promql]
        return not left

    try:
        wait_for(are_answered, "answers")
    except AssertionError:
        raise AssertionError(f"no data: {left}") from None


def test_every_variable_has_values(case: Case) -> None:
    for _, series, label in variable_queries():
        found = case.store.series(f"count by ({label}) ({filled(series, OPERATORS[0])})")
        assert any(one["metric"].get(label) for one in found), (series, label)


def test_every_rule_is_computed(case: Case) -> None:
    assert_answered(case.store, {rule["record"]: "rule" for rule in rules() if "record" in rule})
    data = case.store.ask("rules")
    healths = {one["name"]: one["health"] for group in data["groups"] for one in group["rules"]}
    assert set(healths.values()) == {"ok"}, healths


def test_every_metric_is_there(case: Case) -> None:
    """So that no dashboard shows what nobody exports."""
    samples = {f'{{__name__=~"{one.prometheus_name}(_total|_count)?"}}' for one in METRICS}
    assert_answered(case.store, dict.fromkeys(samples, "metric"))


def test_the_version_of_a_real_process_is_there(case: Case) -> None:
    found = wait_for(lambda: case.store.values('opscope_service_info{service="training"}'), REAL)
    assert found == {f"opscope_service_info,{REAL},opscope,training,1.2+3": 1}


def expected(case: Case) -> Any:
    """By host, how slow it is: once all hosts have been scraped."""
    mine = slowness(FLEET, native=case.native)
    return pytest.approx({f"host{n}": mine[n] for n in range(FLEET.hosts)}, rel=1e-3)


def test_slowness_is_what_numpy_computes(case: Case) -> None:
    def by_host() -> dict[str, float]:
        found = case.store.series('opscope:host_slowness:15m{service="ranker"}')
        return {one["metric"]["instance"]: float(one["value"][1]) for one in found}

    assert wait_for(lambda: by_host() == expected(case), "the slowness of all hosts")


def test_the_straggler_is_named(case: Case) -> None:
    truth = {f"host{number}" for number in FLEET.slow}
    assert {f"host{number}" for number in alarms(FLEET, native=case.native)} == truth

    def named() -> set[str]:
        found = case.store.series('ALERTS{alertname="OpscopeStraggler", service="ranker"}')
        return {one["metric"]["instance"] for one in found}

    assert wait_for(lambda: named() == truth, "the alert")


def asked(case: Case, *words: str, status: int = 0) -> Any:
    """What `opscope fleet` says, as JSON."""
    done = CliRunner().invoke(main, ["fleet", *words, "--url", case.store.url, "--json"])
    assert done.exit_code == status, done.output
    return json.loads(done.output)


def test_the_command_ranks_operators_and_hosts(case: Case) -> None:
    operators = asked(case, "top", "--service", "ranker", "--limit", "5")
    assert len(operators) == 5
    assert [one["threads"] for one in operators] == sorted(
        (one["threads"] for one in operators), reverse=True
    )
    assert all(one["hosts"] == FLEET.hosts and one["p50_s"] < one["p99_s"] for one in operators)
    services = {one["service"] for one in asked(case, "top", "--by", "service")}
    assert services == {"ranker", "training"}


def test_the_command_names_the_straggler_as_the_rule_does(case: Case) -> None:
    def rows() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = asked(case, "stragglers", "--service", "ranker", "--all")
        return found

    def by_host() -> dict[str, float]:
        return {row["host"]: row["slowness"] for row in rows()}

    assert wait_for(lambda: by_host() == expected(case), "the slowness of all hosts")
    truth = {f"host{number}" for number in FLEET.slow}
    assert {row["host"] for row in rows() if row["is_straggler"]} == truth


def test_the_command_compares_versions(case: Case) -> None:
    pair = "diff", "--service", "ranker", "--from", "1", "--to", "2"
    changes = asked(case, *pair, "--least", "50")
    assert len(changes) == FLEET.operators - FLEET.phases.count("comm")
    assert all(change["low"] < FLEET.factors[1] < change["high"] for change in changes[2:-2])
    assert {change["verdict"] for change in changes} == {"same"}


def test_the_command_lists_the_use_of_apis(case: Case) -> None:
    def hosts() -> dict[tuple[str, str], int]:
        return {(use["api"], use["service"]): use["hosts"] for use in asked(case, "usage")}

    # Where the machine is busy, a scrape may fail now and then.
    assert wait_for(lambda: hosts()["torch.compile", "ranker"] == FLEET.hosts, "all hosts")
    assert hosts()["program.train", "training"] == 1


def test_the_command_shows_tables(case: Case) -> None:
    for words in (
        ["top"],
        ["top", "--by", "model_id"],
        ["stragglers", "--all"],
        ["diff", "--service", "ranker", "--from", "1", "--to", "2"],
        ["usage"],
    ):
        done = CliRunner().invoke(main, ["fleet", *words, "--url", case.store.url])
        assert done.exit_code == 0, done.output
        assert "nothing found" not in done.output


def test_a_version_that_never_was_is_told(case: Case) -> None:
    words = ["diff", "--service", "ranker", "--from", "1", "--to", "9", "--url", case.store.url]
    done = CliRunner().invoke(main, ["fleet", *words])
    assert done.exit_code == 1
    assert "no host ran ranker 9" in done.output
    assert "now there are: 1, 2" in done.output
