"""A Prometheus above two others has the sums of their rules, each number once, and the dashboards
show the sums of both."""

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.dashboards.documents import filled, panel_queries
from tests.dashboards.fleet import Fleet
from tests.dashboards.live import Hosts, assert_answered
from tests.deployment.configured import SERIES, STATIC, SUMS, prometheus
from tests.exporters.peers import Store, agent, free_port, wait_for

pytestmark = pytest.mark.slow

FLEET = Fleet(3, hosts=5, operators=5, samples=5000, slowdown=1.4)
# The second has another seed and one more host, but the same operators.
FLEETS = {"a": FLEET, "b": replace(FLEET, seed=4, hosts=6)}
# An agent without processes is a host too.
HOSTS = {site: fleet.hosts + 1 for site, fleet in FLEETS.items()}
RULES = '{__name__=~"opscope:.+"}'


def test_each_sum_of_a_site_is_there_once(tmp_path: Path, old_prometheus: Path) -> None:
    with ExitStack() as stack:
        idle = stack.enter_context(agent(tmp_path / "idle"))
        sites = {}
        for site, fleet in FLEETS.items():
            hosts = Hosts(fleet)
            stack.callback(hosts.close)
            for number, target in enumerate(hosts.targets):
                labels = target["labels"]
                assert isinstance(labels, dict)
                labels["instance"] = f"{site}{number}"
            name, known = "prometheus.yml", {STATIC: idle}
            if site == "a":
                # It also writes to an address without a listener, so it adds the label itself.
                nobody = f"http://127.0.0.1:{free_port()}"
                name, known = "prometheus-remote-write.yml", known | {SERIES: nobody, SUMS: nobody}
            leaf = prometheus(old_prometheus, tmp_path / site, name, known, targets=hosts.targets)
            sites[site] = stack.enter_context(leaf)
        known = {f"site-{site}.example:9090": one.url[7:] for site, one in sites.items()}
        whole = stack.enter_context(
            prometheus(old_prometheus, tmp_path / "all", "prometheus-federation.yml", known)
        )
        counts = "sum by (site) (opscope:hosts:count)"
        whole.wait_until(counts, {site: float(count) for site, count in HOSTS.items()})
        stragglers = 'count by (site, instance) (ALERTS{alertname="OpscopeStraggler"})'
        slow = {f"{site}{n},{site}" for site, fleet in FLEETS.items() for n in fleet.slow}
        wait_for(lambda: set(whole.values(stragglers)) == slow, "the stragglers of both")
        check_labels(whole)
        for site, one in sites.items():
            check_samples(whole, one, site)
        check_panels(whole)


def check_labels(whole: Store) -> None:
    there = [one["metric"] for one in whole.series('{__name__=~"opscope:.+|ALERTS"}')]
    assert {labels["site"] for labels in there} == set(FLEETS)
    of_hosts = {labels["__name__"] for labels in there if "instance" in labels}
    assert of_hosts == {"ALERTS"}
    # No series of single hosts, for any number of hosts.
    assert whole.values('count({__name__=~"opscope_.+"})') == {}


def check_samples(whole: Store, leaf: Store, site: str) -> None:
    """Each of the global sums equals that of the site at the same moment."""
    found = samples(whole, f'{{__name__=~"opscope:.+", site="{site}"}}[10s]')
    own = samples(leaf, f"{RULES}[1m]")
    assert {name for name, _ in found} >= {"opscope:op_calls:rate5m", "opscope:phase_share:rate5m"}
    assert set(found) <= set(own)
    for key, values in found.items():
        assert values.items() <= own[key].items(), key


def samples(store: Store, promql: str) -> dict[tuple[str, tuple[Any, ...]], dict[float, str]]:
    """By name and labels, without the labels that federation adds."""
    found = {}
    for one in store.series(promql):
        labels = {key: one["metric"][key] for key in set(one["metric"]) - {"site", "job"}}
        name = labels.pop("__name__")
        found[name, tuple(sorted(labels.items()))] = dict(one["values"])
    return found


def check_panels(whole: Store) -> None:
    asked = {
        filled(promql, ""): f"{board}, {panel}"
        for board, panel, promql in panel_queries()
        # The hosts run one version.
        if board == "opscope-fleet.json" and "opscope:version_op_slowness" not in promql
    }
    assert len(asked) > 10
    assert_answered(whole, asked)
    assert whole.values("sum(opscope:hosts:count)") == {"": float(sum(HOSTS.values()))}
