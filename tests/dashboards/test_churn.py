"""Alerts while hosts come, go and begin anew and a version rolls out: none but what is planted."""

import json
from pathlib import Path

import pytest

from tests.dashboards.churn import MINUTES, document
from tests.dashboards.test_rules import promtool

# At any time. That a host is gone is what these two are for.
FIRED = (
    "count by (alertname, instance, version) (count_over_time("
    f'ALERTS{{alertstate="firing", alertname!~"OpscopeAgentDown|OpscopeAgentSilent"}}[{MINUTES}m]))'
)


def assert_fired(
    directory: Path, *expected: str, slow_host: int | None = None, factor: float = 1.0
) -> None:
    whole = document(FIRED, [*expected], slow_host=slow_host, factor=factor)
    written = directory / "churn.yml"
    # JSON is YAML, and much faster to write.
    written.write_text(json.dumps(whole))
    promtool("test", "rules", written)


def test_churn_alone_raises_no_alert(tmp_path: Path) -> None:
    assert_fired(tmp_path)


@pytest.mark.parametrize("host", [0, 9], ids=["steady", "begins anew"])
def test_a_straggler_is_named_all_the_same(tmp_path: Path, host: int) -> None:
    straggler = f'{{alertname="OpscopeStraggler", instance="host{host:02}"}}'
    assert_fired(tmp_path, straggler, slow_host=host)


def test_a_slower_version_is_found_while_it_rolls_out(tmp_path: Path) -> None:
    assert_fired(tmp_path, '{alertname="OpscopeVersionSlower", version="2"}', factor=1.2)
