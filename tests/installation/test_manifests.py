"""The manifests by which containers attach: well formed, and they mean the payload as it is."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import opscope
from opscope.config import load
from tests.installation.conftest import opscope as command

DEPLOY = Path(__file__).parents[2] / "agent" / "deploy"
MANIFESTS = sorted(DEPLOY.glob("attach-*.yaml"))


def documents() -> Iterator[Any]:
    for path in MANIFESTS:
        for document in yaml.safe_load_all(path.read_text()):
            yield pytest.param(document, id=path.name)


def containers(document: Any) -> list[dict[str, Any]]:
    spec = document["spec"]["template"]["spec"]
    return [*spec["initContainers"], *spec["containers"]]


def test_there_is_one_for_either_kind_of_agent() -> None:
    assert {path.name for path in MANIFESTS} == {"attach-host-agent.yaml", "attach-own-agent.yaml"}


@pytest.mark.parametrize("document", list(documents()))
def test_it_is_whole_in_itself(document: Any) -> None:
    assert (document["apiVersion"], document["kind"]) == ("apps/v1", "Deployment")
    template = document["spec"]["template"]
    assert (
        document["spec"]["selector"]["matchLabels"].items()
        <= template["metadata"]["labels"].items()
    )
    volumes = {volume["name"] for volume in template["spec"]["volumes"]}
    mounted = {mount["name"] for one in containers(document) for mount in one["volumeMounts"]}
    assert mounted == volumes
    ours = [one for one in containers(document) if one["name"].startswith("opscope-")]
    assert ours
    for container in ours:
        assert container["image"].endswith(f":{opscope.__version__}")
        assert container["resources"]["limits"]["memory"]
    for container in containers(document):
        assert container["securityContext"]["readOnlyRootFilesystem"]


def test_segments_are_where_the_hosts_agent_reads_them() -> None:
    agents = yaml.safe_load_all((DEPLOY / "daemonset.yaml").read_text())
    (agent,) = (one for one in agents if one["kind"] == "DaemonSet")
    program = yaml.safe_load((DEPLOY / "attach-host-agent.yaml").read_text())
    shared = [
        [
            volume["hostPath"]["path"]
            for volume in one["spec"]["template"]["spec"]["volumes"]
            if "hostPath" in volume
        ]
        for one in (agent, program)
    ]
    assert shared[1] == ["/dev/shm/opscope"]
    assert shared[1][0] in shared[0]


@pytest.mark.parametrize("document", list(documents()))
def test_the_program_finds_the_payload_that_the_init_container_copies(
    document: Any, tmp_path: Path
) -> None:
    init, *_, program = containers(document)
    variables = {one["name"]: one["value"] for one in program["env"]}
    mounts = {one["name"]: one["mountPath"] for one in program["volumeMounts"]}
    assert variables["OPSCOPE_ATTACH"] == "1"
    assert variables["PYTHONPATH"] == f"{mounts['opscope-payload']}/site"
    user = document["spec"]["template"]["spec"]["securityContext"]["runAsUser"]
    directory = variables.get("OPSCOPE_DIR", f"/dev/shm/opscope-{user}")
    assert directory == f"{mounts['opscope-segments']}/opscope-{user}"
    assert load({}).directory == f"/dev/shm/opscope-{os.geteuid()}"

    # The same command, with the paths of here.
    (target,) = (one["mountPath"] for one in init["volumeMounts"])
    made, copied = tmp_path / "made", tmp_path / "copied"
    assert command("install", "--payload", made).returncode == 0
    copied.mkdir()
    words = [
        word.replace(f"{target}/", f"{copied}/").replace("/opt/opscope/", f"{made}/")
        for word in init["command"]
    ]
    subprocess.run(words, check=True)
    assert command("status", "--payload", copied).returncode == 0


def test_the_image_is_made_by_commands_that_exist() -> None:
    text = (DEPLOY / "attach-payload.Dockerfile").read_text()
    (arguments,) = re.findall(r"opscope (install [^\\\n]+)", text)
    options = set(re.findall(r"--[a-z]+", command("install", "--help").stdout))
    assert set(re.findall(r"--[a-z]+", arguments)) <= options
    default = re.search(r"^CMD \[(.+)\]$", text, re.MULTILINE)
    assert default
    listed = [word.strip(' "') for word in default[1].split(",")]
    for path in MANIFESTS:
        assert (
            yaml.safe_load(path.read_text())["spec"]["template"]["spec"]["initContainers"][0][
                "command"
            ]
            == listed
        )
