"""The examples in dashboards/scale: rules of one cluster, sums before the store, Mimir, Thanos."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from click.testing import CliRunner

from opscope.cli._group import main
from opscope.fleet.cluster_rules import of_cluster
from tests.dashboards import live
from tests.dashboards.documents import FOLDER, RULES
from tests.dashboards.fleet import Fleet
from tests.dashboards.planted import FAULTS, document, whole
from tests.dashboards.test_rules import promtool
from tests.exporters.peers import VictoriaMetrics, free_port, running, wait_for

SCALE = FOLDER / "scale"


@pytest.fixture
def east(tmp_path: Path) -> list[Path]:
    """The rules of the cluster east."""
    made = []
    for path in sorted(RULES.glob("*.yml")):
        made.append(tmp_path / path.name)
        made[-1].write_text(of_cluster(path.read_text(), "east"))
    return made


def test_the_rules_of_a_cluster_are_rules(east: list[Path]) -> None:
    promtool("check", "rules", *east)
    for path in east:
        groups = yaml.safe_load(path.read_text())["groups"]
        assert all(group["name"].endswith("-east") for group in groups)
        records = [rule.get("record") for group in groups for rule in group["rules"]]
        every = yaml.safe_load((RULES / path.name).read_text())["groups"]
        assert records == [rule.get("record") for group in every for rule in group["rules"]]


def test_a_selector_has_the_cluster_and_nothing_else_changes() -> None:
    text = """\
groups:
  - name: a
    rules:
      - record: opscope:b:c
        # opscope_d, which is no expression
        expr: |
          sum by (cluster) (opscope_d{e="up opscope_f"}[5m])
          / on (cluster) group_left () opscope:g:h offset 1h
        labels: {up: "yes"}
      - alert: I
        expr: up{job="opscope"} == 0
"""
    expected = (
        text.replace("name: a", "name: a-x")
        .replace('opscope_d{e="up', 'opscope_d{cluster="x", e="up')
        .replace("opscope:g:h", 'opscope:g:h{cluster="x"}')
        .replace("expr: up{", 'expr: up{cluster="x", ')
    )
    assert of_cluster(text, "x") == expected


@pytest.mark.slow
def test_the_rules_of_a_cluster_find_its_faults(east: list[Path], tmp_path: Path) -> None:
    text = json.dumps(document(*FAULTS))
    # Hosts of the cluster; the same ones in another cluster are none of its business.
    here = json.loads(text.replace('instance=\\"', 'cluster=\\"east\\",instance=\\"'))
    there = json.loads(text.replace('instance=\\"', 'cluster=\\"west\\",instance=\\"'))
    test = json.loads(text)
    test["input_series"] = here["input_series"] + there["input_series"]
    # What panels show, and the alerts, without the clusters, of which there is one.
    test["promql_expr_test"] = test["promql_expr_test"][:1]
    written = tmp_path / "planted.json"
    written.write_text(json.dumps(whole(test) | {"rule_files": [str(path) for path in east]}))
    promtool("test", "rules", written)


def test_the_command_writes_the_rules_of_a_cluster(tmp_path: Path) -> None:
    words = ["dashboards", "export", str(tmp_path), "--cluster", "east"]
    assert CliRunner().invoke(main, words).exit_code == 0
    rules = (tmp_path / "rules" / "fleet.yml").read_text()
    assert "name: opscope-sums-east" in rules
    assert 'cluster="east"' not in (tmp_path / "grafana" / "opscope-fleet.json").read_text()
    for wrong in ("", 'a"b', "a b"):
        assert CliRunner().invoke(main, [*words[:-1], wrong]).exit_code == 2


@contextmanager
def aggregating(
    program: Path, directory: Path, fleet: Fleet
) -> Iterator[tuple[VictoriaMetrics, VictoriaMetrics]]:
    """A vmagent over that fleet that writes sums to the first store, and all to the second."""
    hosts = live.Hosts(fleet)
    stores = [VictoriaMetrics(program, directory / name) for name in ("sums", "all")]
    scrape = {"job_name": "opscope", "static_configs": hosts.targets}
    config = {"global": {"scrape_interval": "1s"}, "scrape_configs": [scrape]}
    (directory / "scrape.yml").write_text(yaml.safe_dump(config))
    text = (SCALE / "vmagent-aggregation.yml").read_text()
    (directory / "sums.yml").write_text(text.replace("interval: 15s", "interval: 2s"))
    command = [
        str(program.with_name("vmagent")),
        f"-promscrape.config={directory / 'scrape.yml'}",
        f"-remoteWrite.tmpDataPath={directory / 'agent'}",
        f"-httpListenAddr=127.0.0.1:{free_port()}",
        "-loggerLevel=ERROR",
    ]
    for store, sums in zip(stores, (directory / "sums.yml", ""), strict=True):
        url = store.url.removesuffix("/prometheus") + "/api/v1/write"
        command += [f"-remoteWrite.url={url}", f"-remoteWrite.streamAggr.config={sums}"]
    try:
        with running(stores[0].command), running(stores[1].command), running(command):
            yield stores[0], stores[1]
    finally:
        hosts.close()


@pytest.mark.external
@pytest.mark.parametrize("name", ["victoria_metrics", "newest_victoria_metrics"])
def test_vmagent_sends_sums_in_place_of_the_hosts_operators(
    name: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Then all counters stand still.
    monkeypatch.setattr(live, "counted", lambda fleet, host, seconds: min(1 + seconds, 13))
    fleet = Fleet(7, hosts=6, operators=6, samples=5000)
    program: Path = request.getfixturevalue(name)
    with aggregating(program, tmp_path, fleet) as (sums, everything):
        for metric in (
            "opscope_op_duration_seconds_count",
            "opscope_op_self_time_seconds_total",
            "opscope_op_samples_total",
            "opscope_op_duration_seconds_bucket",
        ):
            by = "op, le" if "bucket" in metric else "op"
            grown = f"max_over_time({metric}[1h]) - min_over_time({metric}[1h])"

            def are_same(metric: str = metric, by: str = by, grown: str = grown) -> bool:
                # A bucket that begins later than its series grew from 0.
                if "bucket" in metric:
                    return len(sums.flushed().values(f"sum by ({by}) ({metric})")) > 0
                wanted = everything.flushed().values(f"sum by ({by}) ({grown})")
                found = sums.flushed().values(f"sum by ({by}) ({metric})")
                return len(wanted) == fleet.operators and found == pytest.approx(wanted, rel=1e-6)

            wait_for(are_same, metric)
        of_hosts = sums.values('count({__name__=~"opscope_op_.+", instance!=""})')
        assert of_hosts == {}
        assert sums.values('count({__name__="opscope_processes", instance!=""})') == {"": 6.0}


def test_vmagent_takes_the_configuration(victoria_metrics: Path) -> None:
    command = [
        str(victoria_metrics.with_name("vmagent")),
        "-dryRun",
        "-remoteWrite.url=http://127.0.0.1:9/",
        f"-remoteWrite.streamAggr.config={SCALE / 'vmagent-aggregation.yml'}",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


TEXT, FLAG, COUNT = {"type": "string"}, {"type": "boolean"}, {"type": "integer", "minimum": 1}
TIME = {"type": "string", "pattern": r"^[0-9]+(s|m|h|d|w|y)$"}
LIMITS = closed(
    max_global_series_per_user=COUNT,
    ingestion_rate={"type": "number"},
    ingestion_burst_size=COUNT,
    max_label_names_per_series=COUNT,
    native_histograms_ingestion_enabled=FLAG,
    max_global_exemplars_per_user=COUNT,
    ruler_tenant_shard_size=COUNT,
    ruler_max_rule_groups_per_tenant=COUNT,
    ruler_max_rules_per_rule_group=COUNT,
    ruler_evaluation_delay_duration=TIME,
    compactor_blocks_retention_period=TIME,
)
# The parameters that are used, of
# https://grafana.com/docs/mimir/latest/configure/configuration-parameters/.
MIMIR = closed(
    multitenancy_enabled=FLAG,
    common=closed(
        storage=closed(
            backend={"enum": ["s3", "gcs", "azure", "swift", "filesystem"]},
            s3=closed(endpoint=TEXT, bucket_name=TEXT),
        )
    ),
    blocks_storage=closed(storage_prefix=TEXT, tsdb=closed(dir=TEXT)),
    ruler_storage=closed(storage_prefix=TEXT),
    ruler=closed(
        rule_path=TEXT,
        alertmanager_url=TEXT,
        query_frontend=closed(address=TEXT),
        tenant_federation=closed(enabled=FLAG),
    ),
    tenant_federation=closed(enabled=FLAG),
    limits=LIMITS,
    runtime_config=closed(file=TEXT),
)
OVERRIDES = closed(overrides={"type": "object", "additionalProperties": LIMITS})
# Of https://thanos.io/tip/components/receive.md/.
HASHRINGS = {
    "type": "array",
    "items": closed(
        hashring=TEXT,
        tenants={"type": "array", "items": TEXT},
        algorithm={"enum": ["ketama", "hashmod"]},
        endpoints={"type": "array", "items": closed(address=TEXT), "minItems": 1},
    ),
}


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("mimir.yml", MIMIR),
        ("mimir-overrides.yml", OVERRIDES),
        ("thanos-hashrings.json", HASHRINGS),
    ],
)
def test_files_for_other_stores_have_documented_names(name: str, schema: dict[str, Any]) -> None:
    found = yaml.safe_load((SCALE / name).read_text())
    jsonschema.validate(found, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate([{"x": 1}] if isinstance(found, list) else {"x": 1}, schema)


def test_mimirs_limits_have_room_for_the_rules() -> None:
    limits = yaml.safe_load((SCALE / "mimir.yml").read_text())["limits"]
    groups = [
        group
        for path in RULES.glob("*.yml")
        for group in yaml.safe_load(path.read_text())["groups"]
    ]
    assert 10 * len(groups) <= limits["ruler_max_rule_groups_per_tenant"]
    assert max(len(group["rules"]) for group in groups) <= limits["ruler_max_rules_per_rule_group"]


def test_prometheus_takes_the_rulers_remote_write(tmp_path: Path) -> None:
    """It has the settings of Prometheus."""
    promtool("check", "config", SCALE / "thanos-rule-remote-write.yml")
