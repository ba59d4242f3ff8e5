"""Alerts while hosts appear, disappear and restart and a version rolls out: only the planted
ones."""

import json
from collections.abc import Collection
from pathlib import Path

import pytest

from tests.dashboards.churn import MINUTES, document
from tests.dashboards.test_rules import promtool

pytestmark = pytest.mark.slow

# May fire at any time: these two alerts report a host that is gone.
FIRED = (
    "count by (alertname, instance, version) (count_over_time("
    f'ALERTS{{alertstate="firing", alertname!~"OpscopeAgentDown|OpscopeAgentSilent"}}[{MINUTES}m]))'
)


def assert_fired(
    directory: Path,
    *expected: str,
    slow_hosts: Collection[int] = (),
    factor: float = 1.0,
    canary: int | None = None,
) -> None:
    whole = document(FIRED, [*expected], slow_hosts=slow_hosts, factor=factor, canary=canary)
    written = directory / "churn.yml"
    # JSON is YAML, and much faster to write.
    written.write_text(json.dumps(whole))
    promtool("test", "rules", written)


def test_churn_alone_raises_no_alert(tmp_path: Path) -> None:
    assert_fired(tmp_path)


def test_a_faster_version_makes_no_host_a_straggler(tmp_path: Path) -> None:
    """Neither hosts without the version, nor those whose samples are half from the version
    before."""
    assert_fired(tmp_path, factor=0.5)


def test_stragglers_are_still_named(tmp_path: Path) -> None:
    """A steady host and one that begins anew: each is compared with each version that has enough
    hosts."""
    expected = [
        f'{{alertname="OpscopeStraggler", instance="host{host:02}", version="{version}"}}'
        for host in (0, 9)
        for version in ("1", "2")
    ]
    assert_fired(tmp_path, *expected, slow_hosts=(0, 9))


def test_a_slower_version_is_found_while_it_rolls_out(tmp_path: Path) -> None:
    assert_fired(tmp_path, '{alertname="OpscopeVersionSlower", version="2"}', factor=1.2)


@pytest.mark.parametrize("factor", [1.0, 1.3])
def test_a_slow_version_on_one_host_makes_it_no_straggler(tmp_path: Path, factor: float) -> None:
    slower = ['{alertname="OpscopeVersionSlower", version="2"}'] if factor > 1 else []
    assert_fired(tmp_path, *slower, factor=factor, canary=3)
