"""A store that Prometheus writes to answers `opscope fleet` and the dashboards as Prometheus
does."""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from opscope.fleet import rankings, versions
from opscope.fleet.store import Sample
from opscope.fleet.store import Store as FleetStore
from tests.dashboards.documents import filled, panel_queries
from tests.dashboards.fleet import SERVICE, Fleet
from tests.dashboards.live import CLUSTER, Hosts, assert_answered, write_rules
from tests.deployment.configured import SERIES, STATIC, SUMS, prometheus
from tests.exporters.peers import (
    Prometheus,
    Store,
    VictoriaMetrics,
    free_port,
    running,
    vmalert,
    wait_for,
)
from tests.exporters.test_prometheus_peer import Exemplary

pytestmark = pytest.mark.slow

FLEET = Fleet(
    7,
    hosts=12,
    operators=6,
    samples=5000,
    slowdown=1.4,
    versions=("1", "2"),
    factors=(1.0, 1.02),
)
ONE_EACH = {"": 1.0, CLUSTER: 1.0}
"""The fleet has a cluster, the host with an exemplar has none."""
RECEIVER = "--web.enable-remote-write-receiver"
NATIVE = "--enable-feature=native-histograms,exemplar-storage"


class AsOf(FleetStore):
    """The contents of a store at a time, to compare two stores."""

    def __init__(self, url: str, time_s: float) -> None:
        super().__init__(url)
        self._time_s = time_s

    def query(self, promql: str, at_s: float | None = None) -> list[Sample]:
        return super().query(promql, self._time_s if at_s is None else at_s)


def answers(url: str, time_s: float) -> dict[tuple[str, ...], float]:
    """The numbers of `opscope fleet`'s four queries, by query, row and column."""
    store, of = AsOf(url, time_s), f'service_name="{SERVICE}"'
    rows: dict[str, Sequence[Any]] = {
        "top": rankings.top(store, "op", of, "15m", 25),
        "stragglers": rankings.stragglers(store, of, "15m"),
        "diff": versions.diff(store, SERVICE, ("1", "2"), "15m", 1, time_s),
        "usage": rankings.usage(store, of),
    }
    found = {}
    for question, of_question in rows.items():
        for row in of_question:
            columns = asdict(row)
            who = [columns.pop(name) for name in [*columns] if isinstance(columns[name], str)]
            for column, value in columns.items():
                for place, number in enumerate(value if isinstance(value, tuple) else [value]):
                    found[(question, *who, f"{column}{place}")] = float(number)
    return found


@contextmanager
def origin(
    program: Path, directory: Path, series: str, sums: str, *options: str
) -> Iterator[Store]:
    """A Prometheus that scrapes the fleet and writes to those addresses."""
    hosts, slow = Hosts(FLEET), Exemplary()
    host, port = slow.server.address
    try:
        replaced = {STATIC: f"{host}:{port}", SERIES: series, SUMS: sums}
        with prometheus(
            program, directory, "prometheus-remote-write.yml", replaced, options, hosts.targets
        ) as store:
            yield store
    finally:
        slow.server.close()
        hosts.close()


def check_answers(source: Store, store: Store, rel: float, left_out: tuple[str, ...] = ()) -> None:
    """The contents of both at one moment, after several scrapes of all hosts."""
    count = f'count(count_over_time(opscope_service_info{{service_name="{SERVICE}"}}[1m]) >= 5)'
    source.wait_until(count, {"": FLEET.hosts})
    time_s = time.time()
    wanted: dict[tuple[str, ...], float] = {}
    last: dict[tuple[str, ...], float] = {}

    def is_same() -> bool:
        # Anew each time: a scrape that began before that moment may have been stored after it.
        true = answers(source.url, time_s)
        assert [true[key] for key in true if key[-1] == "is_straggler0"].count(True) == 1
        assert {key[0] for key in true} == {"top", "stragglers", "diff", "usage"}
        wanted.update({key: value for key, value in true.items() if key[-1] not in left_out})
        found = answers(store.url, time_s)
        last.update({key: found.get(key, math.nan) for key in wanted})
        return last == pytest.approx(wanted, rel=rel)

    try:
        wait_for(is_same, "the same answers")
    except AssertionError:
        assert last == pytest.approx(wanted, rel=rel)


def test_prometheus_has_all_or_the_sums(
    tmp_path: Path, new_prometheus: Path, old_prometheus: Path
) -> None:
    sums = Prometheus(old_prometheus, empty(tmp_path), RECEIVER)
    with (
        prometheus(
            new_prometheus, tmp_path / "all", "prometheus-receiver.yml", options=[RECEIVER, NATIVE]
        ) as everything,
        running(sums.command),
    ):
        urls = [f"{store.url}/api/v1/write" for store in (everything, sums)]
        with origin(new_prometheus, tmp_path / "origin", *urls, NATIVE) as source:
            check_answers(source, everything, 1e-6)
            check_rules(everything)
            check_exemplars(everything)
            check_sums(sums)


def empty(directory: Path) -> Path:
    config = directory / "empty.yml"
    config.touch()
    return config


def check_rules(store: Store) -> None:
    """The store evaluates the rules itself, and receives no evaluated ones."""
    store.wait('ALERTS{alertname="OpscopeStraggler"}')
    assert store.wait("count by (site, cluster) (opscope:hosts:count)") == ONE_EACH
    assert store.values('{__name__=~"opscope:.*", site!=""}') == {}
    assert set(store.wait("count by (site) (opscope_processes)")) == {"a"}
    assert store.series('opscope_op_duration_seconds{op="aten::native_layer_norm"}')[0]["histogram"]


def check_exemplars(store: Store) -> None:
    def found() -> Any:
        query = {"query": "opscope_op_duration_seconds", "start": "0", "end": "1e10"}
        return store.ask("query_exemplars", **query)

    (series,) = wait_for(found, "an exemplar")
    assert series["exemplars"][0]["value"] == "0.3"


def check_sums(store: Store) -> None:
    asked = {
        filled(promql, ""): f"{board}, {panel}"
        for board, panel, promql in panel_queries()
        if board == "opscope-fleet.json"
    }
    assert len(asked) > 10
    assert_answered(store, asked)
    there = [one["metric"] for one in store.series('{__name__=~".+"}')]
    assert {labels["site"] for labels in there} == {"a"}
    of_hosts = {labels["__name__"] for labels in there if "instance" in labels}
    assert of_hosts <= {"ALERTS"}
    assert {labels["__name__"].partition(":")[0] for labels in there} <= {"ALERTS", "opscope"}


def test_victoria_metrics_answers_as_prometheus_does(
    tmp_path: Path, old_prometheus: Path, victoria_metrics: Path
) -> None:
    peer = VictoriaMetrics(victoria_metrics, tmp_path / "store")
    base = peer.url.removesuffix("/prometheus")
    write_rules(tmp_path / "rules")
    evaluating = vmalert(victoria_metrics, tmp_path / "rules", peer)
    nobody = f"http://127.0.0.1:{free_port()}"
    with (
        running(peer.command),
        running(evaluating),
        origin(old_prometheus, tmp_path / "origin", f"{base}/api/v1/write", nobody) as source,
    ):
        # Its rates are not extrapolated to the whole window, of which only some seconds have data.
        check_answers(
            source, peer, 0.05, left_out=("threads0", "calls_per_s0", "samples0", "calls_error0")
        )
        slow = {f"host{number}" for number in FLEET.slow}
        stragglers = f'count by (instance) (ALERTS{{service_name="{SERVICE}"}})'
        wait_for(lambda: set(peer.flushed().values(stragglers)) == slow, "the straggler")
        assert peer.values("count by (site, cluster) (opscope:hosts:count)") == ONE_EACH
