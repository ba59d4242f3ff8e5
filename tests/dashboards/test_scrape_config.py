"""The configurations are ones that Prometheus takes, with names that the rest of the tree has."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.dashboards.documents import FOLDER

AGENTS = FOLDER.parent / "agent" / "deploy" / "daemonset.yaml"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("prometheus*.yml")), ids=lambda path: path.name)
def test_promtool_takes_the_scrape_configuration(path: Path, tmp_path: Path) -> None:
    program = shutil.which("promtool")
    if not program:
        pytest.skip("no promtool: Debian's package prometheus is not installed")
    config = yaml.safe_load(path.read_text())
    # Debian's promtool knows no discovery by Kubernetes.
    for job in config["scrape_configs"]:
        job.pop("kubernetes_sd_configs", None)
    config["rule_files"] = [str(FOLDER / name) for name in config.get("rule_files", [])]
    taken = tmp_path / path.name
    taken.write_text(yaml.safe_dump(config))
    checked = subprocess.run(
        [program, "check", "config", taken], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr


def test_the_discovery_finds_the_pods_of_our_manifest() -> None:
    """By the label and the port that it has."""
    config = (FOLDER / "prometheus-kubernetes.yml").read_text()
    name, port = re.findall(r"regex: \"?([\w-]+)", config)
    (agents,) = [
        one for one in yaml.safe_load_all(AGENTS.read_text()) if one["kind"] == "DaemonSet"
    ]
    pod = agents["spec"]["template"]
    assert pod["metadata"]["labels"]["app.kubernetes.io/name"] == name
    ports = [one["containerPort"] for of in pod["spec"]["containers"] for one in of["ports"]]
    assert ports == [int(port)]
