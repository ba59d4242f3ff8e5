"""Each planted fault shows on its panel and raises its alert and no other."""

import json
from pathlib import Path

import pytest

from tests.dashboards.planted import FAULTS, document, whole
from tests.dashboards.test_rules import promtool


def assert_so(directory: Path, *fleets: dict[str, object]) -> None:
    written = directory / "planted.yml"
    # JSON is YAML, and much faster to write.
    written.write_text(json.dumps(whole(*fleets)))
    promtool("test", "rules", written)


@pytest.mark.slow
def test_all_faults_show_and_raise_their_alerts(tmp_path: Path) -> None:
    assert_so(tmp_path, document(*FAULTS))


@pytest.mark.slow
def test_without_a_fault_no_alert_fires(tmp_path: Path) -> None:
    assert_so(tmp_path, document())


@pytest.mark.external
@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_raises_its_alert_and_no_other(fault: str, tmp_path: Path) -> None:
    assert_so(tmp_path, document(fault))
