"""Every query of every panel and rule has an answer in a real Prometheus, filled by a simulated
fleet and a real host; and its rules on stragglers give the same results as NumPy."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
from click.testing import CliRunner

from opscope.cli._group import main
from opscope.metrics import METRICS
from opscope_exporters.samples import CLASSIC_METRICS
from tests.dashboards.documents import boards, filled, panel_queries, rules, variable_queries
from tests.dashboards.fleet import Fleet
from tests.dashboards.live import (
    ANEW,
    AWAY,
    CLUSTER,
    REAL,
    assert_answered,
    beside_a_real_host,
)
from tests.dashboards.statistics import alarms, slowness
from tests.exporters.conftest import (  # noqa: F401
    debian,
    new_prometheus,
    newest_prometheus,
    old_prometheus,
)
from tests.exporters.peers import Store, wait_for

pytestmark = pytest.mark.slow

FLEET = Fleet(
    7,
    hosts=24,
    operators=10,
    samples=5000,
    slowdown=1.4,
    versions=("1", "2"),
    factors=(1.0, 1.02),
    churn=True,
    attributes=(("job.id", "7"), ("k8s.namespace.name", "ml")),
)
T = TypeVar("T")


@dataclass
class Case:
    store: Store
    native: bool


@pytest.fixture(
    scope="module",
    params=[
        # In `make test`, test_rules.py judges classic histograms, and an old Prometheus draws the
        # dashboard of test_serving_board.py.
        pytest.param(("old_prometheus", False), marks=pytest.mark.long),
        ("new_prometheus", True),
        pytest.param(("newest_prometheus", True), marks=pytest.mark.external),
    ],
    ids=lambda p: p[0],
)
def case(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Case]:
    name, native = request.param
    program: Path = request.getfixturevalue(name)
    environ = {
        "OPSCOPE_MAX_OVERHEAD": "90%",  # a budget, for the panel that shows it
        "OTEL_RESOURCE_ATTRIBUTES": "service.version=1.2%2B3",
    }
    place = tmp_path_factory.mktemp("live")
    with beside_a_real_host(program, place, FLEET, native=native, environ=environ) as store:
        wait_for(lambda: store.values("opscope:version_slowness:15m"), "versions")
        wait_for(lambda: store.values(f'opscope_op_samples_total{{instance="{REAL}"}}'), REAL)
        yield Case(store, native)


REAL_OPERATORS = ("core::conv2d", "numpy::dot", "aten::mm")
OPERATORS = ("aten::native_layer_norm", *REAL_OPERATORS)


def _has(operator: str, promql: str, *, native: bool) -> bool:
    """Whether the operator has the requested data."""
    if "host_op_typical" in promql and not native and operator in REAL_OPERATORS:
        # Shows nothing if all its durations are in one bucket, which depends on the machine.
        return False
    if "_op_slowness" in promql and "host_op" not in promql and operator in REAL_OPERATORS:
        return False  # Compared between hosts, of which it has one.
    if "memory" in promql:
        return operator != "numpy::dot"  # NumPy does not report them.
    # The operator that fails.
    return operator == "aten::mm" or "errors" not in promql


def once(look: Callable[[], T], holds: Callable[[T], bool], what: str) -> T:
    """The first answer for which that holds. On a busy machine a scrape sometimes fails, and a host
    is missing for a while."""

    def found() -> list[T]:
        with suppress(AssertionError):  # from a command that found nothing
            answer = look()
            return [answer] if holds(answer) else []
        return []

    return wait_for(found, what)[0]


def test_every_panel_has_data(case: Case) -> None:
    heat_maps = {
        (name, panel["title"])
        for name, board in boards().items()
        for panel in board["panels"]
        if panel["type"] == "heatmap"
    }
    asked: dict[str, str] = {}
    for name, panel, promql in panel_queries():
        if name == SERVING:
            continue
        if (name, panel) in heat_maps and ("_bucket" in promql) == case.native:
            unasked = filled(promql, OPERATORS[0])
            assert case.store.series(unasked) == [], (name, panel)
            continue
        for operator in OPERATORS if "$operator" in promql else OPERATORS[:1]:
            if not _has(operator, promql, native=case.native):
                continue
            asked[filled(promql, operator)] = f"{name}, {panel}"
    assert_answered(case.store, asked)


# No host here serves models; test_serving_board.py has one that does.
SERVING = "opscope-serving.json"

# One real host cannot show these; the others can.
NEEDS_A_FLEET = {
    ("opscope-hosts.json", "Operators that are slow on a host"): "others to be slower than",
    ("opscope-model.json", "Newest version compared to the previous one"): "a version before",
    ("opscope-model.json", "Operators that changed most with the version"): "a version before",
    ("opscope-model.json", "Surely slower than in the last version"): "a version before",
    ("opscope-model.json", "Against the last version"): "a version before",
    ("opscope-operator.json", "Against the last version"): "a version before",
    ("opscope-operator.json", "Against last week"): "five hosts",
    ("opscope-fleet.json", "Slower than in the last version"): "a version before",
    ("opscope-fleet.json", "Slower than last week"): "five hosts",
    **{
        ("opscope-model.json", panel): "a program that compiles"
        for panel in (
            "Time spent compiling",
            "Compilations by reason",
            "Graph breaks by reason",
            "Hits of the compilation cache",
            "JAX: time spent compiling",
            "JAX: compilations by stage",
            "JAX: hits of the persistent cache",
        )
    },
}
OF_REAL = {"service": "training", "host": REAL, "model": "digits-.*"}


def test_every_panel_has_data_of_a_real_program(case: Case) -> None:
    """A program that trains with the tensor core, NumPy and PyTorch, on one host."""
    asked = {}
    assert NEEDS_A_FLEET.keys() <= {(name, panel) for name, panel, _ in panel_queries()}
    for name, panel, promql in panel_queries():
        if name == SERVING or (name, panel) in NEEDS_A_FLEET or "absent(" in promql:
            continue
        if panel == "Durations" and not case.native:
            continue
        for operator in REAL_OPERATORS if "$operator" in promql else REAL_OPERATORS[:1]:
            if not _has(operator, promql, native=case.native):
                continue
            asked[filled(promql, operator, OF_REAL)] = f"{name}, {panel}"
    assert_answered(case.store, asked)


def test_a_real_program_is_seen_whole(case: Case) -> None:
    """Each way to learn with its phases, and an operator that fails."""

    def phases() -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for one in case.store.series("opscope_op_samples_total{" + f'instance="{REAL}"' + "}"):
            labels = one["metric"]
            found.setdefault(labels.get("model_id", ""), set()).add(labels["phase"])
        return found

    training = {"forward", "backward", "optimizer"}
    seen = once(
        phases,
        lambda found: (
            training <= found.get("digits-core", set())
            and training | {"data"} <= found.get("digits-torch", set())
            and "digits-numpy" in found
        ),
        "the phases of the three",
    )
    assert not training & seen["digits-numpy"] - {"forward"}
    case.store.wait('opscope_op_errors_total{op="aten::mm", model_id="digits-torch"} > 0')


def test_durations_are_of_the_sums_or_of_the_chosen_hosts(case: Case) -> None:
    """Queries by a value that no series has return no host, and no sum for chosen hosts."""
    hosts = f"opscope_op_duration_seconds{'' if case.native else '_bucket'}"
    sums = "opscope:op_duration_seconds:rate5m"
    for chosen, read, unread in (
        (".*", f'{sums}{{instance=~".*"}}', f'{hosts}{{every_host!~".*"}}'),
        ("host1", f'{hosts}{{every_host!~"host1"}}', f'{sums}{{instance=~"host1"}}'),
    ):
        case.store.wait(f"count({read})")
        assert case.store.series(unread) == [], chosen


def test_every_variable_has_values(case: Case) -> None:
    for name, series, label in variable_queries():
        if name == SERVING:
            continue
        promql = f"count by ({label}) ({filled(series, OPERATORS[0])})"

        def values(promql: str = promql, label: str = label) -> list[str]:
            found = (one["metric"].get(label, "") for one in case.store.series(promql))
            return [value for value in found if value]

        assert wait_for(values, f"{series}, {label}")


def test_every_rule_is_computed(case: Case) -> None:
    assert_answered(case.store, {rule["record"]: "rule" for rule in rules() if "record" in rule})

    def not_well() -> list[Any] | None:
        data = case.store.ask("rules")
        every = [one for group in data["groups"] for one in group["rules"]] if data else []
        return [one for one in every if one["health"] != "ok"] if every else None

    # Before its first evaluation a rule's health is unknown.
    assert once(not_well, lambda found: found == [], "all rules computed without an error") == []


# These processes have no identity of their own (tests/e2e/test_identity.py) and run in no container
# (tests/host/test_containers.py). Nor do they serve models (tests/serving/test_observed.py).
NOT_HERE = ("opscope.resource.info", "opscope.container.info")
COUNTED_ELSEWHERE = ("nv_inference_",)


def test_every_metric_is_there(case: Case) -> None:
    """No dashboard uses a metric that is not exported."""
    there = METRICS if case.native else CLASSIC_METRICS
    samples = {
        f'{{__name__=~"{one.prometheus_name}(_total|_count)?"}}'
        for one in there
        if one.name not in NOT_HERE and not one.name.startswith(COUNTED_ELSEWHERE)
    }
    assert_answered(case.store, dict.fromkeys(samples, "metric"))


def test_the_version_of_a_real_process_is_there(case: Case) -> None:
    found = wait_for(
        lambda: case.store.values('opscope_service_info{service_name="training"}'), REAL
    )
    assert found == {f"opscope_service_info,{CLUSTER},{REAL},opscope,training,1.2+3": 1}


def expected(case: Case) -> Any:
    """Slowness by host, once all hosts have been scraped."""
    mine = slowness(FLEET, native=case.native)
    return pytest.approx({f"host{n}": mine[n] for n in range(FLEET.hosts)}, rel=1e-3)


def test_hosts_restarted_and_were_absent(case: Case) -> None:
    """All other hosts are fine."""
    anew = 'count by (instance) (resets(opscope_op_samples_total{service_name="ranker"}[1h]) > 0)'
    away = 'count by (instance) (min_over_time(up{instance=~"host.+"}[1h]) == 0)'
    case.store.wait_until(anew, {f"host{number}": FLEET.operators for number in ANEW})
    later = {number for number in range(FLEET.hosts) if number % len(FLEET.versions)}
    missed = {f"host{number}": 1.0 for number in later | {*AWAY}}
    # On a busy machine, others are slow for a moment, too.
    assert wait_for(lambda: missed.items() <= case.store.values(away).items(), "those away")


def test_slowness_is_what_numpy_computes(case: Case) -> None:
    def by_host() -> dict[str, float]:
        found = case.store.series('opscope:host_slowness:15m{service_name="ranker"}')
        return {one["metric"]["instance"]: float(one["value"][1]) for one in found}

    assert wait_for(lambda: by_host() == expected(case), "the slowness of all hosts")


def test_the_straggler_is_named(case: Case) -> None:
    truth = {f"host{number}" for number in FLEET.slow}
    assert {f"host{number}" for number in alarms(FLEET, native=case.native)} == truth

    def named() -> set[str]:
        found = case.store.series('ALERTS{alertname="OpscopeStraggler", service_name="ranker"}')
        return {one["metric"]["instance"] for one in found}

    assert wait_for(lambda: named() == truth, "the alert")


def asked(case: Case, *words: str, status: int = 0) -> Any:
    """The output of `opscope fleet`, as JSON."""
    done = CliRunner().invoke(main, ["fleet", *words, "--url", case.store.url, "--json"])
    assert done.exit_code == status, done.output
    return json.loads(done.stdout)


def test_the_command_ranks_operators_and_hosts(case: Case) -> None:
    operators = once(
        lambda: asked(case, "top", "--service", "ranker", "--limit", "5"),
        lambda found: [one["hosts"] for one in found] == [FLEET.hosts] * 5,
        "five operators of all hosts",
    )
    assert [one["threads"] for one in operators] == sorted(
        (one["threads"] for one in operators), reverse=True
    )
    assert all(one["p50_s"] < one["p99_s"] for one in operators)
    services = once(
        lambda: {one["service"] for one in asked(case, "top", "--by", "service")},
        lambda found: len(found) > 1,
        "both services",
    )
    assert services == {"ranker", "training"}


def test_the_command_names_the_straggler_as_the_rule_does(case: Case) -> None:
    rows = once(
        lambda: asked(case, "stragglers", "--service", "ranker", "--all"),
        lambda found: {row["host"]: row["slowness"] for row in found} == expected(case),
        "the slowness of all hosts",
    )
    truth = {f"host{number}" for number in FLEET.slow}
    assert {row["host"] for row in rows if row["is_straggler"]} == truth


def test_the_command_compares_versions(case: Case) -> None:
    pair = "diff", "--service", "ranker", "--from", "1", "--to", "2"
    changes = once(
        lambda: asked(case, *pair, "--min-change", "150"),
        lambda found: len(found) == FLEET.operators - FLEET.phases.count("comm"),
        "all operators but those that wait for others",
    )
    assert all(change["low"] < FLEET.factors[1] < change["high"] for change in changes[2:-2])
    assert {change["verdict"] for change in changes} == {"same"}


def test_the_command_lists_the_use_of_apis(case: Case) -> None:
    def hosts() -> dict[tuple[str, str], int]:
        return {(use["api"], use["service"]): use["hosts"] for use in asked(case, "usage")}

    used = {("torch.compile", "ranker"): FLEET.hosts, ("program.train", "training"): 1}
    assert once(hosts, lambda found: used.items() <= found.items(), "the use on all hosts")


def test_the_command_shows_tables(case: Case) -> None:
    for words in (
        ["top"],
        ["top", "--by", "model_id"],
        ["stragglers", "--all"],
        ["diff", "--service", "ranker", "--from", "1", "--to", "2"],
        ["usage"],
    ):
        command = ["fleet", *words, "--url", case.store.url]

        def said(command: list[str] = command) -> str:
            done = CliRunner().invoke(main, command)
            return done.output if done.exit_code == 0 else ""

        assert "nothing found" not in wait_for(said, f"an answer to {words}")


def test_an_unknown_version_is_reported(case: Case) -> None:
    words = ["diff", "--service", "ranker", "--from", "1", "--to", "9", "--url", case.store.url]
    done = CliRunner().invoke(main, ["fleet", *words])
    assert done.exit_code == 1
    assert "no host ran ranker 9" in done.output
    assert "running now: 1, 2" in done.output
