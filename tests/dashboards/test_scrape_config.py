"""Prometheus accepts the configurations. tests/deployment tests their effect."""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.dashboards.documents import FOLDER


@pytest.mark.parametrize("path", sorted(FOLDER.glob("prometheus*.yml")), ids=lambda path: path.name)
def test_promtool_takes_the_scrape_configuration(path: Path, tmp_path: Path) -> None:
    program = shutil.which("promtool")
    if not program:
        pytest.skip("no promtool: Debian's package prometheus is not installed")
    config = yaml.safe_load(path.read_text())
    # Debian's promtool does not support discovery by Kubernetes.
    for job in config.get("scrape_configs", []):
        job.pop("kubernetes_sd_configs", None)
    config["rule_files"] = [str(FOLDER / name) for name in config.get("rule_files", [])]
    taken = tmp_path / path.name
    taken.write_text(yaml.safe_dump(config))
    checked = subprocess.run(
        [program, "check", "config", taken], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr
