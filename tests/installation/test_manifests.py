"""The manifests for attaching in containers are well formed and match the payload."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import opscope
from opscope.config import load
from tests.installation import pod_security
from tests.installation.conftest import opscope as command

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "agent" / "deploy"
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
def test_it_is_self_contained(document: Any) -> None:
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
    variables = {one["name"]: one.get("value") for one in program["env"]}
    mounts = {one["name"]: one["mountPath"] for one in program["volumeMounts"]}
    assert variables["OPSCOPE_ATTACH"] == "1"
    assert variables["PYTHONPATH"] == f"{mounts['opscope-payload']}/site"
    user = document["spec"]["template"]["spec"]["securityContext"]["runAsUser"]
    directory = variables.get("OPSCOPE_DIR", f"/dev/shm/opscope-{user}")
    assert directory == f"{mounts['opscope-segments']}/opscope-{user}"
    assert load({}).directory == f"/dev/shm/opscope-{os.geteuid()}"

    # The same command, with local paths.
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

    # Copied over a payload in use, it leaves mapped files unchanged.
    (library,) = (copied / "machines").glob("*/libopscope.so")
    with library.open("rb") as mapped:
        size = library.stat().st_size
        subprocess.run(words, check=True)
        assert (os.fstat(mapped.fileno()).st_nlink, os.fstat(mapped.fileno()).st_size) == (0, size)
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


def test_the_image_says_what_it_is() -> None:
    """https://github.com/opencontainers/image-spec/blob/main/annotations.md"""
    text = (DEPLOY / "attach-payload.Dockerfile").read_text()
    final = text[text.rindex("\nFROM ") :]
    labels = dict(re.findall(r"org\.opencontainers\.image\.(\w+)=\"([^\"]*)\"", final))
    project = dict(re.findall(r'^(\w+) = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.M))
    assert labels == {
        "title": "Opscope",
        "description": project["description"],
        "licenses": project["license"],
        "version": opscope.__version__,
        "revision": "$REVISION",
    }
    assert "\nARG REVISION" in final


def test_the_image_copies_what_is_there() -> None:
    """Stages, files of this tree, and paths that an earlier stage has made."""
    text = (DEPLOY / "attach-payload.Dockerfile").read_text()
    lines = re.sub(r"\\\n", "", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)).splitlines()
    made: dict[str, set[str]] = {}
    base = stage = ""
    for line in lines:
        word, _, rest = line.partition(" ")
        if word == "FROM":
            base, _, stage = re.sub(r"--platform=\S+ ", "", rest).partition(" AS ")
            assert base in made or re.fullmatch(r"python:3\.\d+-(slim-)?bookworm", base), line
            made[stage] = {*made.get(base, ())}
        elif word == "COPY":
            *flags, source, target = rest.split()
            if flags:
                assert made[flags[0].removeprefix("--from=")] >= {source}, line
            else:
                assert (ROOT / source).exists() and (ROOT / "Makefile").exists(), line
                made[stage] |= {f"{target}/dist"}  # of `make wheels`
            made[stage].add(target)
        elif word == "RUN":
            made[stage] |= set(re.findall(r"(?<=[\s\"])/[\w/.-]+", rest))
    # Nothing but the environment of the agent and the payload is in the last one.
    assert made[""] == {"/opt/agent", "/opt/opscope"}
    path = re.search(r"^ENV PATH=(\S+):\$PATH$", text, re.MULTILINE)
    assert path and path[1] == "/opt/agent/bin"
    assert re.search(r"^USER 65534:65534$", text, re.MULTILINE)
    wheels = re.search(r"make -C /source (\w+)", text)
    assert wheels and re.search(rf"^{wheels[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


# ---- admission by a cluster, and a failing agent ----------------------------------------------


def pod(name: str) -> dict[str, Any]:
    for document in yaml.safe_load_all((DEPLOY / name).read_text()):
        if document["kind"] in ("Deployment", "DaemonSet"):
            found: dict[str, Any] = document["spec"]["template"]["spec"]
            return found
    raise AssertionError(name)


def test_a_pod_with_its_own_agent_is_admitted_without_host_access() -> None:
    assert list(pod_security.baseline(pod("attach-own-agent.yaml"))) == []
    assert list(pod_security.restricted(pod("attach-own-agent.yaml"))) == []


def test_with_the_hosts_agent_the_directory_of_the_host_is_all_that_is_in_the_way() -> None:
    found = list(pod_security.baseline(pod("attach-host-agent.yaml")))
    assert found == ["volume opscope-segments: hostPath"]
    assert "hostPID" in set(pod_security.baseline(pod("daemonset.yaml")))


def test_segments_in_a_pod_are_memory_that_program_and_agent_share() -> None:
    spec = pod("attach-own-agent.yaml")
    assert spec["shareProcessNamespace"] is True
    (volume,) = (one for one in spec["volumes"] if one["name"] == "opscope-segments")
    assert volume["emptyDir"]["medium"] == "Memory"
    holders = [
        one["name"]
        for one in pod_security.containers(spec)
        if {"name": "opscope-segments", "mountPath": "/dev/shm"} in one["volumeMounts"]
    ]
    assert holders == ["opscope-agent", "program"]


def test_no_probe_of_the_sidecar_decides_whether_the_program_has_traffic() -> None:
    for one in pod_security.containers(pod("attach-own-agent.yaml")):
        if one["name"].startswith("opscope-"):
            assert not {key for key in one if key.endswith("Probe")}


def test_the_sidecar_restarts_its_agent_and_ends_on_a_signal(tmp_path: Path) -> None:
    (sidecar,) = (
        one
        for one in pod_security.containers(pod("attach-own-agent.yaml"))
        if one["name"] == "opscope-agent"
    )
    programs = {
        # Exits twice, then runs until a signal ends it, and reports that.
        "opscope": """#!/bin/sh
echo "$@"
n=$(cat count 2>/dev/null || echo 0); echo $((n + 1)) > count
[ "$n" -lt 2 ] && exit 1
trap 'echo told; exit 0' TERM
echo goes on
while :; do /bin/sleep 0.01; done
""",
        "sleep": "#!/bin/sh\nexit 0\n",
    }
    for name, text in programs.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    with subprocess.Popen(
        sidecar["command"],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        text=True,
    ) as container:
        assert container.stdout is not None
        said: list[str] = []
        while not said or said[-1] != "goes on":
            said.append(container.stdout.readline().strip())
            assert container.poll() is None
        assert said == ["agent --listen 0.0.0.0:9464"] * 3 + ["goes on"]
        container.send_signal(signal.SIGTERM)
        assert container.stdout.read() == "told\n"
        assert container.wait(60) == 0


def test_the_network_policy_is_for_the_agents_and_their_port() -> None:
    policy = yaml.safe_load((DEPLOY / "networkpolicy.yaml").read_text())
    agents = next(
        one
        for one in yaml.safe_load_all((DEPLOY / "daemonset.yaml").read_text())
        if one["kind"] == "DaemonSet"
    )
    assert policy["metadata"]["namespace"] == agents["metadata"]["namespace"]
    assert policy["spec"]["podSelector"] == agents["spec"]["selector"]
    (rule,) = policy["spec"]["ingress"]
    assert rule["from"]
    (port,) = agents["spec"]["template"]["spec"]["containers"][0]["ports"]
    assert [one["port"] for one in rule["ports"]] == [port["containerPort"]]
