"""The Helm chart, rendered by `helm template`, or else by its template engine: Go's text/template
with Sprig, from Debian's packages golang-go, golang-github-masterminds-sprig-dev and
golang-github-ghodss-yaml-dev (renderer/). Skipped, with the reason, without either.

OPSCOPE_UPDATE_GOLDEN=1 writes the golden files anew.
"""

import base64
import json
import os
import shutil
import socket
import ssl
import subprocess
import threading
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml
from click.testing import CliRunner

import opscope
from opscope.cli._group import main
from opscope.config import load
from opscope.kubernetes.webhook import Certificate, Webhook
from tests.installation import pod_security
from tests.kubernetes.test_injection import IMAGES

HERE = Path(__file__).parent
DEPLOY = HERE.parents[1] / "agent" / "deploy"
CHART = DEPLOY / "chart"
ALL: dict[str, Any] = {
    "clusterName": "east",
    "imagePullSecrets": [{"name": "pull"}],
    "agent": {
        "exporters": ["otlp"],
        "settings": {"max_series": 4000, "labels": "model_id"},
        "env": [{"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": "http://collector:4318"}],
        "tls": {"secretName": "agent-tls"},
        "nodeSelector": {"pool": "ml"},
    },
    "podMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "networkPolicy": {"enabled": True},
    "webhook": {"enabled": True},
}
MANAGED = {"webhook": {"enabled": True, "certificate": {"certManager": True}}}
CASES = {"default": {}, "all": ALL, "issued": {**MANAGED, "agent": {"enabled": False}}}
CUSTOM = ("monitoring.coreos.com/v1", "cert-manager.io/v1")


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command that renders the chart; its standard input has the values."""
    if helm := shutil.which("helm"):
        return [helm, "template", "opscope", str(CHART), "--namespace", "opscope", "--values", "-"]
    go, packages = shutil.which("go"), Path("/usr/share/gocode")
    if not go or not (packages / "src/github.com/Masterminds/sprig").is_dir():
        pytest.skip("neither helm, nor go with Debian's package of Sprig")
    made = tmp_path_factory.mktemp("renderer") / "render"
    environ = {"GO111MODULE": "off", "GOPATH": str(packages), "GOFLAGS": ""}
    environ["GOCACHE"] = str(made.parent / "cache")
    source = str(HERE / "renderer" / "main.go")
    subprocess.run([go, "build", "-o", str(made), source], env=os.environ | environ, check=True)
    return [str(made), str(CHART), "opscope", "opscope"]


def rendered(engine: list[str], values: dict[str, Any]) -> list[dict[str, Any]]:
    jsonschema.validate(values, json.loads((CHART / "values.schema.json").read_text()))
    done = subprocess.run(
        engine, input=yaml.safe_dump(values), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = [one for one in yaml.safe_load_all(done.stdout) if one]
    return sorted(found, key=lambda one: (one["kind"], one["metadata"]["name"]))


def only(documents: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    (found,) = (one for one in documents if one["kind"] == kind)
    return found


def pod_of(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = document["spec"]["template"]["spec"]
    return found


def without_certificates(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """They differ each time."""
    found: list[dict[str, Any]] = json.loads(json.dumps(documents))
    for one in found:
        if one["kind"] == "Secret":
            one["data"] = dict.fromkeys(one["data"], "...")
        for webhook in one.get("webhooks", ()):
            if "caBundle" in webhook["clientConfig"]:
                webhook["clientConfig"]["caBundle"] = "..."
    return found


@pytest.mark.parametrize("case", CASES)
def test_it_renders_as_the_golden_file(engine: list[str], case: str) -> None:
    found = without_certificates(rendered(engine, CASES[case]))
    path = HERE / "golden" / f"{case}.yaml"
    if os.environ.get("OPSCOPE_UPDATE_GOLDEN"):
        path.write_text(yaml.safe_dump_all(found, sort_keys=False))
    assert found == list(yaml.safe_load_all(path.read_text()))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("version", ["1.29", "1.32"])
def test_every_object_is_valid(case: str, version: str) -> None:
    documents = list(yaml.safe_load_all((HERE / "golden" / f"{case}.yaml").read_text()))
    assert documents
    for one in documents:
        if one["apiVersion"] not in CUSTOM:
            kubernetes_validate.validate(one, version, strict=True)


def test_the_agent_is_that_of_the_manifest(engine: list[str]) -> None:
    by_hand = [*yaml.safe_load_all((DEPLOY / "daemonset.yaml").read_text())]
    expected = pod_of(only(by_hand, "DaemonSet"))
    found = pod_of(only(rendered(engine, {}), "DaemonSet"))
    for one in (*found["initContainers"], *found["containers"]):
        assert one.pop("imagePullPolicy") == "IfNotPresent"
        for probe in (field for name, field in one.items() if name.endswith("Probe")):
            assert probe["httpGet"].pop("scheme") == "HTTP"
    assert found == expected


@pytest.mark.parametrize("case", ["default", "all"])
def test_its_settings_and_commands_are_valid(engine: list[str], case: str, tmp_path: Path) -> None:
    documents = rendered(engine, CASES[case])
    config = only([one for one in documents if one["kind"] == "ConfigMap"], "ConfigMap")["data"][
        "opscope.toml"
    ]
    (tmp_path / "opscope.toml").write_text(config)
    assert load({}, str(tmp_path / "opscope.toml")).directory == "/opscope/shm/opscope-0"
    for one in documents:
        if one["kind"] in ("DaemonSet", "Deployment"):
            program, *words = pod_of(one)["containers"][0]["args"]
            assert program == "opscope"
            done = CliRunner().invoke(main, [*words, "--help"])
            assert done.exit_code == 0
            options = {word.partition("=")[0] for word in words if word.startswith("--")}
            assert all(option in done.output for option in options)


def test_the_webhook_is_restricted_and_fails_open(engine: list[str]) -> None:
    documents = rendered(engine, ALL)
    assert list(pod_security.restricted(pod_of(only(documents, "Deployment")))) == []
    (webhook,) = only(documents, "MutatingWebhookConfiguration")["webhooks"]
    assert webhook["failurePolicy"] == "Ignore"
    assert webhook["timeoutSeconds"] <= 3
    (excluded,) = webhook["namespaceSelector"]["matchExpressions"]
    assert {"kube-system", "opscope"} <= {*excluded["values"]}


def test_the_api_server_trusts_the_webhooks_certificate(engine: list[str], tmp_path: Path) -> None:
    documents = rendered(engine, ALL)
    data = only(documents, "Secret")["data"]
    for name, text in data.items():
        (tmp_path / name).write_bytes(base64.b64decode(text))
    (webhook,) = only(documents, "MutatingWebhookConfiguration")["webhooks"]
    service = webhook["clientConfig"]["service"]
    certificate = Certificate(str(tmp_path / "tls.crt"), str(tmp_path / "tls.key"))
    trusting = ssl.create_default_context(
        cadata=base64.b64decode(webhook["clientConfig"]["caBundle"]).decode()
    )
    with Webhook(("127.0.0.1", 0), certificate, IMAGES, lambda name: {}) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            with (
                socket.create_connection(("127.0.0.1", server.server_port)) as plain,
                trusting.wrap_socket(
                    plain, server_hostname=f"{service['name']}.{service['namespace']}.svc"
                ) as secure,
            ):
                secure.sendall(b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n")
                assert secure.recv(100).startswith(b"HTTP/1.1 200 ")
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    "values",
    [
        {"agent": {"settings": {"dir": "/elsewhere"}}},
        {"agent": {"exporters": ["prometheus"]}},
        {"image": {"repository": ""}},
        {"clusterName": "a,b=c"},
        {"podMonitor": {"interval": "often"}},
        {"webhook": {"replicas": 0}},
        {"webhook": {"timeoutSeconds": 30}},
        {"webhok": {}},
    ],
)
def test_values_that_cannot_work_are_refused(values: dict[str, Any]) -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(values, schema)


def test_the_charts_own_values_follow_its_schema_and_its_version_is_the_packages() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    jsonschema.validate(yaml.safe_load((CHART / "values.yaml").read_text()), schema)
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert about["version"] == about["appVersion"] == opscope.__version__
