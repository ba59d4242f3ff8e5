"""The unit and the manifests are valid and match the agent."""

import configparser
import shutil
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from opscope import config
from opscope.segments import directories
from opscope.server import privileges
from opscope.server.pages import OPEN_PATHS

DEPLOY = Path(__file__).parents[2] / "agent" / "deploy"
UNIT = DEPLOY / "agent.service"


@pytest.fixture
def service() -> dict[str, str]:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[method-assign,assignment]
    unit.read_string(UNIT.read_text())
    assert unit.sections() == ["Unit", "Service", "Install"]
    return dict(unit["Service"])


def test_the_unit_starts_the_agent_with_what_it_keeps_and_nothing_more(
    service: dict[str, str],
) -> None:
    assert service["ExecStart"].endswith(" opscope agent")
    assert set(service["CapabilityBoundingSet"].split()) == set(privileges.KEPT)
    assert service["NoNewPrivileges"] == "yes"
    assert service["ProtectSystem"] == "strict"
    assert "/dev/shm" in service["ReadWritePaths"].split()
    assert service["StateDirectory"] == "opscope"
    assert service["StateDirectoryMode"] == "0700"


def test_systemd_takes_the_unit() -> None:
    # Without systemd nothing can verify it.
    analyze = shutil.which("systemd-analyze")
    if analyze:
        done = subprocess.run(
            [analyze, "verify", "--man=no", str(UNIT)], capture_output=True, text=True, timeout=300
        )
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("path", sorted(DEPLOY.glob("*.yaml")), ids=lambda path: path.name)
def test_kubernetes_knows_each_field_of_the_manifests(path: Path) -> None:
    """From the first version with init containers that keep running, to the last known one."""
    for document in yaml.safe_load_all(path.read_text()):
        for version in ("1.29", kubernetes_validate.latest_version()):
            kubernetes_validate.validate(document, version, strict=True)


@pytest.fixture
def manifests() -> dict[str, Any]:
    return {one["kind"]: one for one in yaml.safe_load_all((DEPLOY / "daemonset.yaml").read_text())}


def test_the_manifests_are_of_one_namespace(manifests: dict[str, Any]) -> None:
    assert list(manifests) == ["Namespace", "ServiceAccount", "ConfigMap", "DaemonSet"]
    name = manifests["Namespace"]["metadata"]["name"]
    for kind in ("ServiceAccount", "ConfigMap", "DaemonSet"):
        assert manifests[kind]["metadata"]["namespace"] == name


def test_the_settings_in_the_config_map_are_good(manifests: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "opscope.toml"
    (name, text), *others = manifests["ConfigMap"]["data"].items()
    assert (name, others) == (Path(config.CONFIG_PATH).name, [])
    path.write_text(text)
    settings = config.load({}, str(path))
    pod = manifests["DaemonSet"]["spec"]["template"]["spec"]
    (agent,) = pod["containers"]
    (port,) = agent["ports"]
    assert settings.listen_port == port["containerPort"]
    mounts = {mount["name"]: mount["mountPath"] for mount in agent["volumeMounts"]}
    assert Path(settings.directory).parent == Path(mounts["shm"])
    assert Path(config.CONFIG_PATH).parent == Path(mounts["settings"])
    assert mounts.keys() == {volume["name"] for volume in pod["volumes"]}
    (shared,) = (volume for volume in pod["volumes"] if volume["name"] == "shm")
    assert shared["hostPath"]["path"].startswith("/dev/shm/")


def test_the_pod_has_what_the_agent_keeps_and_nothing_more(manifests: dict[str, Any]) -> None:
    spec = manifests["DaemonSet"]["spec"]
    pod = spec["template"]["spec"]
    (agent,) = pod["containers"]
    security = agent["securityContext"]
    assert security["readOnlyRootFilesystem"] is True
    assert security["allowPrivilegeEscalation"] is False
    assert security["capabilities"]["drop"] == ["ALL"]
    assert {f"CAP_{name}" for name in security["capabilities"]["add"]} == set(privileges.KEPT)
    assert spec["updateStrategy"]["rollingUpdate"]["maxSurge"] == 0
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        assert agent[probe]["httpGet"]["path"] in OPEN_PATHS
    assert agent["args"] == ["opscope", "agent"]


def test_as_root_the_directories_of_all_users_beside_its_own_are_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("opscope-0", "opscope-1000", "another"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr("os.geteuid", lambda: 0)
    found = directories.find(directories.patterns(str(tmp_path / "opscope-0")))
    assert found == [str(tmp_path / "opscope-0"), str(tmp_path / "opscope-1000")]
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert directories.find(directories.patterns(str(tmp_path / "opscope-1000"))) == [
        str(tmp_path / "opscope-1000")
    ]
