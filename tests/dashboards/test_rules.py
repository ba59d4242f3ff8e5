"""Prometheus accepts the rules, they fire when they should, and the runbook has each alert."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.dashboards.documents import RULES, RUNBOOK, alerts
from tests.dashboards.planted import FAULTS
from tests.exporters.conftest import debian, promtools  # noqa: F401

UNIT_TESTS = Path(__file__).with_name("alerts_test.yml")


def promtool(*words: object) -> None:
    program = shutil.which("promtool")
    if not program:
        pytest.skip("no promtool: Debian's package prometheus is not installed")
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_takes_the_rules() -> None:
    promtool("check", "rules", *sorted(RULES.glob("*.yml")))


def test_alerts_fire_when_they_should() -> None:
    promtool("test", "rules", UNIT_TESTS)


@pytest.mark.external
def test_rules_and_alerts_are_the_same_in_each_version(request: pytest.FixtureRequest) -> None:
    programs: list[str] = request.getfixturevalue("promtools")
    for program in programs:
        for words in (
            ["check", "rules", *map(str, sorted(RULES.glob("*.yml")))],
            ["test", "rules", str(UNIT_TESTS)],
            ["test", "rules", str(UNIT_TESTS.with_name("uncertainty_test.yml"))],
        ):
            done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
            assert done.returncode == 0, (program, done.stdout + done.stderr)


def test_rules_compute_the_error_of_estimates() -> None:
    promtool("test", "rules", UNIT_TESTS.with_name("uncertainty_test.yml"))


def test_each_alert_is_seen_firing() -> None:
    fired = set(re.findall(r"alertname: (\w+)\n +exp_alerts:\n", UNIT_TESTS.read_text()))
    # The next are seen in test_planted.py.
    fired |= {found for one in FAULTS.values() for found in re.findall(r"Opscope\w+", one.alert)}
    assert fired == {alert["alert"] for alert in alerts()}


def test_each_alert_has_its_section_in_the_runbook() -> None:
    sections = re.findall(r"^## (\w+)$", RUNBOOK.read_text(), re.MULTILINE)
    assert sections == [alert["alert"] for alert in alerts()]
    for alert in alerts():
        url = alert["annotations"]["runbook_url"]
        assert url == f"RUNBOOK.md#{alert['alert'].lower()}", alert["alert"]


def test_each_section_of_the_runbook_says_what_to_do() -> None:
    sections = re.split(r"^## .*$", RUNBOOK.read_text(), flags=re.MULTILINE)[1:]
    for section in sections:
        for part in ("**What it says.**", "**Look.**", "**Do.**", "**False alarms.**"):
            assert part in section
