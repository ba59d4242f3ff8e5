"""Verdicts on versions over hosts with known truth: busy ones, few ones, coarse histograms."""

import json
from collections.abc import Mapping
from unittest import mock

import numpy as np
import pytest
from click.testing import CliRunner

from opscope.cli._group import main
from opscope.fleet import promql, versions
from opscope.fleet.medians import QUANTILES
from opscope.fleet.store import Sample, Store

BOUNDS = 2.0 ** np.arange(-22, 5)
FINE = 2.0 ** (np.arange(-22 * 8, 4 * 8 + 1) / 8)


class Known(Store):
    """A store with the durations of each host of versions 1 and 2, by operator."""

    def __init__(
        self, durations: Mapping[str, Mapping[str, list[np.ndarray]]], *, classic: bool
    ) -> None:
        super().__init__("http://nowhere")
        self.answers: dict[str, list[Sample]] = {}
        if classic:
            les = [Sample({"le": repr(float(bound))}, 1.0) for bound in BOUNDS]
            self.answers[promql.bounds("s")] = [*les, Sample({"le": "+Inf"}, 1.0)]
        edges = BOUNDS if classic else FINE
        for version, operators in durations.items():
            self.answers[promql.hosts_of("s", version)] = [Sample({}, 1.0)]
            for p in QUANTILES:
                asked = promql.of_version("s", version, "15m", p, classic=classic)
                self.answers[asked] = [
                    Sample(
                        {"instance": f"{version}-{host}", "op": op, "phase": "forward"},
                        _quantile(one, p, edges),
                    )
                    for op, hosts in operators.items()
                    for host, one in enumerate(hosts)
                ]

    def query(self, promql: str, at_s: float | None = None) -> list[Sample]:
        return self.answers.get(promql, [])


def _quantile(durations: np.ndarray, p: float, edges: np.ndarray) -> float:
    counts, _ = np.histogram(durations, edges)
    upto = np.cumsum(counts)
    wanted = p * upto[-1]
    place = int(np.argmax(upto >= wanted))
    share = (wanted - (upto[place] - counts[place])) / counts[place]
    return float(edges[place] + share * (edges[place + 1] - edges[place]))


def hosts(
    seed: int, middle_s: float, *, sigma: float = 0.8, busy: float = 0.0, count: int = 20
) -> list[np.ndarray]:
    """2,000 recorded calls on each host; a share `busy` of calls waits for a processor."""
    random = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        calls = middle_s * random.lognormal(0, 0.02) * random.lognormal(0, sigma, 2000)
        waits = random.random(2000) < busy * random.lognormal(0, 0.5)
        found.append(calls + waits * random.lognormal(np.log(8e-3), 1.0, 2000))
    return found


def verdicts(store: Store, least: float = 0.05) -> dict[str, str]:
    changes = versions.diff(store, "s", ("1", "2"), "15m", 7.0, 0.0)
    return {change.op: change.verdict(least) for change in changes}


def busy_fleet(*, classic: bool) -> Known:
    """Version 2 runs beside other load; of two operators, one is slower."""
    before = {"untouched": hosts(1, 50e-6), "slower": hosts(2, 5e-3)}
    after = {"untouched": hosts(3, 50e-6, busy=0.03), "slower": hosts(4, 7.5e-3, busy=0.03)}
    return Known({"1": before, "2": after}, classic=classic)


def test_the_mean_of_a_busy_host_says_little_of_the_operator() -> None:
    """Shows why medians are compared."""
    before, after = hosts(1, 50e-6), hosts(3, 50e-6, busy=0.03)
    ratio = np.median([one.mean() for one in after]) / np.median([one.mean() for one in before])
    assert ratio > 3


@pytest.mark.parametrize("classic", [False, True], ids=["native", "classic"])
def test_an_untouched_operator_of_busy_hosts_is_not_slower(classic: bool) -> None:
    assert verdicts(busy_fleet(classic=classic))["untouched"] in ("same", "unsure")


@pytest.mark.parametrize("classic", [False, True], ids=["native", "classic"])
def test_a_slower_operator_of_busy_hosts_is_not_the_same(classic: bool) -> None:
    assert verdicts(busy_fleet(classic=classic))["slower"] == "slower"


@pytest.mark.parametrize("classic", [False, True], ids=["native", "classic"])
def test_few_hosts_that_differ_make_no_verdict(classic: bool) -> None:
    def apart(seed: int, factor: float) -> list[np.ndarray]:
        return [one * k * factor for one, k in zip(hosts(seed, 1e-3), (0.5, 1, 2), strict=False)]

    store = Known({"1": {"op": apart(1, 1.0)}, "2": {"op": apart(2, 1.1)}}, classic=classic)
    assert verdicts(store) == {"op": "unsure"}


def test_a_change_is_ruled_out_where_the_data_do() -> None:
    store = Known({"1": {"op": hosts(1, 1e-3)}, "2": {"op": hosts(2, 1e-3)}}, classic=False)
    assert verdicts(store) == {"op": "same"}


@pytest.mark.parametrize("factor", [1.0, 1.3])
def test_a_narrow_operator_in_coarse_buckets_makes_no_verdict(factor: float) -> None:
    before, after = hosts(1, 1.2e-3, sigma=0.01), hosts(2, 1.2e-3 * factor, sigma=0.01)
    store = Known({"1": {"op": before}, "2": {"op": after}}, classic=True)
    assert verdicts(store) == {"op": "unsure"}
    store = Known({"1": {"op": before}, "2": {"op": after}}, classic=False)
    assert verdicts(store)["op"] == ("slower" if factor > 1 else "unsure")


def test_verdicts_are_said_to_people_and_scripts() -> None:
    words = ["fleet", "diff", "--service", "s", "--from", "1", "--to", "2"]
    store = busy_fleet(classic=True)
    with mock.patch("opscope.cli.fleet._store", return_value=store):
        text = CliRunner().invoke(main, words)
        found = json.loads(CliRunner().invoke(main, [*words, "--json"]).output)
    assert "unsure: not enough data" in text.output
    by_op = {row["op"]: row for row in found}
    assert by_op["slower"]["low"] > 1
    assert by_op["untouched"]["low"] < 1.05 < by_op["untouched"]["high"]
