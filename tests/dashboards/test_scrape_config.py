"""The scrape configuration is one that Prometheus takes."""

import subprocess
from pathlib import Path

CONFIG = Path(__file__).parents[2] / "dashboards" / "prometheus.yml"


def test_promtool_takes_the_scrape_configuration() -> None:
    checked = subprocess.run(
        ["promtool", "check", "config", CONFIG], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr
