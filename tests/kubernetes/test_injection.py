"""What an observed pod gets: the patch applies, the result is a valid pod, and Pod Security's level
`restricted` admits it."""

import base64
import copy
import json
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from opscope.kubernetes import injection
from opscope.kubernetes.admission import NoReviewError, answered
from opscope.kubernetes.injection import Images
from tests.installation import pod_security

IMAGES = Images("registry.example.com/opscope:0.1.0")
DEPLOY = Path(__file__).parents[2] / "agent" / "deploy"
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "numerics", "annotations": {injection.INJECT: "true"}},
    "spec": {
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 10001,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": "program",
                "image": "your-image",
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"]},
                },
            }
        ],
    },
}


def review(pod: Any, **changed: Any) -> dict[str, Any]:
    """As an API server of Kubernetes 1.30 sends it."""
    return {
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "requestKind": {"group": "", "version": "v1", "kind": "Pod"},
            "requestResource": {"group": "", "version": "v1", "resource": "pods"},
            "namespace": "ml",
            "operation": "CREATE",
            "userInfo": {
                "username": "system:serviceaccount:kube-system:replicaset-controller",
                "groups": ["system:serviceaccounts", "system:authenticated"],
            },
            "object": pod,
            "oldObject": None,
            "dryRun": False,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
            **changed,
        },
    }


def asked(review: Any, namespace: dict[str, Any] | None = None) -> dict[str, Any]:
    """The response to it."""
    answer = answered(json.dumps(review).encode(), IMAGES, lambda name: namespace or {})
    assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response: dict[str, Any] = answer["response"]
    assert response["allowed"] is True
    assert response["uid"] == review["request"]["uid"]
    return response


def patched(pod: dict[str, Any], response: dict[str, Any]) -> dict[str, Any]:
    """The pod with the response's JSON patch (RFC 6902, `add` alone)."""
    assert response["patchType"] == "JSONPatch"
    found = copy.deepcopy(pod)
    for one in json.loads(base64.b64decode(response["patch"])):
        assert one["op"] == "add"
        *way, last = one["path"].split("/")[1:]
        at: Any = found
        for key in way:
            at = at[int(key)] if isinstance(at, list) else at[key]
        if isinstance(at, list):
            at.insert(len(at) if last == "-" else int(last), one["value"])
        else:
            at[last] = one["value"]
    return found


def pod(**spec: Any) -> dict[str, Any]:
    made = copy.deepcopy(POD)
    made["spec"] |= spec
    return made


def program(**fields: Any) -> dict[str, Any]:
    """A pod whose container has these fields."""
    made = copy.deepcopy(POD)
    made["spec"]["containers"][0] |= fields
    return made


def variables(container: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one["value"] for one in container["env"] if "value" in one}


@pytest.mark.parametrize(
    "given",
    [
        POD,
        program(env=[{"name": "A", "value": "1"}], volumeMounts=[{"name": "d", "mountPath": "/d"}]),
        pod(
            volumes=[{"name": "data", "emptyDir": {}}],
            initContainers=[{"name": "first", "image": "i"}],
        ),
        pod(volumes=None, initContainers=[]),
    ],
    ids=["plain", "with variables", "with init containers", "with empty fields"],
)
def test_the_patched_pod_is_valid_and_restricted(given: dict[str, Any]) -> None:
    found = patched(given, asked(review(given)))
    for version in ("1.30", "1.32"):
        kubernetes_validate.validate(found, version, strict=True)
    ours = [*found["spec"]["initContainers"][:2], found["spec"]["containers"][0]]
    assert list(pod_security.restricted({**found["spec"], "initContainers": ours[:2]})) == []
    assert not any("hostPath" in volume for volume in found["spec"]["volumes"])
    assert [one["name"] for one in ours[:2]] == ["opscope-payload", "opscope-agent"]
    mounted = {mount["name"] for one in ours for mount in one["volumeMounts"]}
    assert mounted - {"d"} <= {volume["name"] for volume in found["spec"]["volumes"]}
    assert variables(ours[2])["OPSCOPE_DIR"] == variables(ours[1])["OPSCOPE_DIR"]
    assert {ours[0]["securityContext"]["runAsUser"], ours[1]["securityContext"]["runAsUser"]} == {
        10001
    }


def test_it_is_what_the_manifest_does_by_hand() -> None:
    by_hand = yaml.safe_load((DEPLOY / "attach-own-agent.yaml").read_text())["spec"]["template"]
    found = patched(POD, asked(review(POD)))
    for number in range(2):
        ours, theirs = (one["spec"]["initContainers"][number] for one in (found, by_hand))
        assert ours["command"] == theirs["command"]
        assert ours["resources"] == theirs["resources"]
        assert ours["image"] == theirs["image"]
    assert found["spec"]["volumes"] == by_hand["spec"]["volumes"]
    env = variables(found["spec"]["containers"][0])
    assert (
        variables(by_hand["spec"]["containers"][0]).items() - {("OTEL_SERVICE_NAME", "numerics")}
        <= env.items()
    )
    ours, theirs = (
        [entry for entry in one["spec"]["containers"][0]["env"] if "OPSCOPE_K8S" in str(entry)]
        for one in (found, by_hand)
    )
    assert ours == theirs and len(theirs) == 5


def test_the_programs_own_variables_stay_and_come_last_in_lists() -> None:
    own = [
        {"name": "PYTHONPATH", "value": "/app"},
        {"name": "OTEL_RESOURCE_ATTRIBUTES", "value": "k8s.pod.name=mine,team=ml"},
        {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
    ]
    given = program(env=own)
    (container,) = patched(given, asked(review(given)))["spec"]["containers"]
    assert own[2] in container["env"]
    env = variables(container)
    assert env["PYTHONPATH"] == "/opt/opscope/site:/app"
    attributes = env["OTEL_RESOURCE_ATTRIBUTES"].split(",")
    assert attributes[-2:] == ["k8s.pod.name=mine", "team=ml"]
    assert "k8s.container.name=program" in attributes
    names = [one["name"] for one in container["env"]]
    assert len(names) == len(set(names))
    for reference in ("OPSCOPE_K8S_POD", "OPSCOPE_K8S_NODE", "OPSCOPE_K8S_NAMESPACE"):
        assert f"$({reference})" in env["OTEL_RESOURCE_ATTRIBUTES"]
        assert names.index(reference) < names.index("OTEL_RESOURCE_ATTRIBUTES")


@pytest.mark.parametrize(
    ("on_pod", "on_namespace", "is_observed"),
    [
        (None, None, False),
        ("true", None, True),
        (None, "true", True),
        ("false", "true", False),
        ("True", "false", True),
        ("yes", None, False),
    ],
)
def test_annotations_of_the_pod_come_before_those_of_its_namespace(
    on_pod: str | None, on_namespace: str | None, is_observed: bool
) -> None:
    given = copy.deepcopy(POD)
    given["metadata"]["annotations"] = {} if on_pod is None else {injection.INJECT: on_pod}
    namespace = {} if on_namespace is None else {injection.INJECT: on_namespace}
    assert ("patch" in asked(review(given), namespace)) == is_observed


def test_a_pod_that_has_it_all_is_left_alone() -> None:
    found = patched(POD, asked(review(POD)))
    assert "patch" not in asked(review(found))


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (pod(securityContext={}), "its user id is unknown"),
        (pod(hostNetwork=True), "node's network"),
        (program(ports=[{"containerPort": 9464}]), "port 9464"),
        (
            program(env=[{"name": "PYTHONPATH", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}]),
            "PYTHONPATH comes from elsewhere",
        ),
        (program(volumeMounts=[{"name": "o", "mountPath": "/opt/opscope/"}]), "is in use"),
    ],
)
def test_a_pod_that_cannot_be_observed_is_admitted_with_the_reason(
    given: dict[str, Any], why: str
) -> None:
    response = asked(review(given))
    assert "patch" not in response
    assert why in response["warnings"][0]


def test_containers_are_chosen_by_name_and_need_the_agents_user() -> None:
    given = copy.deepcopy(POD)
    other = {"name": "other", "image": "i", "securityContext": {"runAsUser": 5}}
    third = {"name": "third", "image": "i"}
    given["spec"]["containers"] += [other, third]
    given["metadata"]["annotations"][injection.CONTAINERS] = "program, other"
    response = asked(review(given))
    assert "container other is not observed: it runs as user 5" in response["warnings"][0]
    containers = patched(given, response)["spec"]["containers"]
    assert "env" in containers[0] and containers[1:] == [other, third]


def test_the_user_and_the_images_path_may_be_annotations() -> None:
    given = pod(securityContext={})
    given["metadata"]["annotations"] |= {injection.USER: "7", injection.PYTHON_PATH: "/app/lib"}
    found = patched(given, asked(review(given)))
    env = variables(found["spec"]["containers"][0])
    assert env["OPSCOPE_DIR"] == "/opscope/shm/opscope-7"
    assert env["PYTHONPATH"] == "/opt/opscope/site:/app/lib"
    assert found["spec"]["initContainers"][1]["securityContext"]["runAsUser"] == 7


@pytest.mark.parametrize(
    "changed",
    [
        {"object": None},
        {"object": []},
        {"object": {"metadata": {"annotations": {injection.INJECT: "true"}}}},
        {"object": {"metadata": {"annotations": {injection.INJECT: "true"}}, "spec": {}}},
        {"object": {**POD, "spec": {"containers": [{}]}}},
        {"object": {**POD, "spec": {"containers": 3}}},
        {"object": {**POD, "spec": {"containers": [{"name": "a", "env": "x"}]}}},
        {"object": {**POD, "metadata": 7}},
        {"kind": "Pod"},
        {"kind": None},
        {"operation": "UPDATE"},
        {"kind": {"group": "apps", "version": "v1", "kind": "Deployment"}},
    ],
)
def test_what_is_not_understood_is_admitted_unchanged(changed: dict[str, Any]) -> None:
    assert "patch" not in asked(review(POD, **changed))


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"3", b"{}", b'{"request": {}}', b'{"request": {"uid": 3}}', b"\xff"]
)
def test_what_is_no_review_is_an_error_of_its_own(body: bytes) -> None:
    with pytest.raises(NoReviewError):
        answered(body, IMAGES, lambda name: {})


def test_deep_nesting_is_no_review() -> None:
    with pytest.raises(NoReviewError):
        answered(b"[" * 200_000, IMAGES, lambda name: {})
