"""Targets come from a file or from Kubernetes, and have the labels that rules need."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.dashboards.documents import FOLDER
from tests.deployment.configured import STATIC, prometheus, write_targets
from tests.deployment.kubernetes_api import Pods, kubernetes, pod_of
from tests.exporters.peers import Store, agent, free_port

pytestmark = pytest.mark.slow

DEPLOY = FOLDER.parent / "agent" / "deploy"


def test_targets_come_and_go_with_a_file(tmp_path: Path, old_prometheus: Path) -> None:
    place = tmp_path / "prometheus"
    with (
        agent(tmp_path / "here") as here,
        agent(tmp_path / "other") as other,
        prometheus(
            old_prometheus,
            place,
            "prometheus.yml",
            {STATIC: here},
            targets=[{"targets": [other], "labels": {"cluster": "a"}}],
        ) as store,
    ):
        up = "sum by (job, instance, cluster) (up)"
        own = {f"{here},opscope": 1.0}
        store.wait_until(up, own | {f"a,{other},opscope": 1.0})
        write_targets(place, [{"targets": [other], "labels": {"cluster": "b"}}])
        # Prometheus drops the series of `a` at once.
        store.wait_until(up, own | {f"b,{other},opscope": 1.0})
        series = "count by (instance, cluster) (opscope_build_info)"
        assert store.values(series) == {here: 1.0, f"b,{other}": 1.0}


def manifest(name: str, kind: str) -> dict[str, Any]:
    (found,) = [
        one for one in yaml.safe_load_all((DEPLOY / name).read_text()) if one["kind"] == kind
    ]
    return dict(found)


def test_kubernetes_leads_to_the_agents_of_the_manifests(
    tmp_path: Path, new_prometheus: Path
) -> None:
    of_nodes = manifest("daemonset.yaml", "DaemonSet")
    in_pods = manifest("attach-own-agent.yaml", "Deployment")
    # Another pod, which has the annotations and our port.
    other = manifest("attach-own-agent.yaml", "Deployment")
    other["spec"]["template"]["spec"]["initContainers"][1]["name"] = "something"
    with ExitStack() as stack:
        pods = stack.enter_context(kubernetes())
        # The port is the manifests'; other tests that run now use other addresses.
        block = free_port()
        addresses = [f"127.{block >> 8}.{block & 255}.{number}" for number in (1, 2)]
        for address in addresses:
            listen = "--listen", f"{address}:9464"
            stack.enter_context(agent(tmp_path / address, *listen))

        def add(of: dict[str, Any], namespace: str, name: str, node: str, number: int) -> None:
            phase = "Running" if number >= 0 else "Failed"
            pods.add(pod_of(of, namespace, name, node, addresses[abs(number)], phase))

        namespace = of_nodes["metadata"]["namespace"]
        add(of_nodes, namespace, "agent-a", "node-a", 0)
        add(of_nodes, namespace, "agent-gone", "node-b", -1)
        add(of_nodes, "elsewhere", "agent-else", "node-c", 1)
        add(in_pods, "team", "numerics-1", "node-a", 1)
        add(other, "team", "other-1", "node-a", 1)
        api = {"role: pod\n": f"role: pod\n        api_server: {pods.url}\n"}
        store = stack.enter_context(
            prometheus(new_prometheus, tmp_path / "p", "prometheus-kubernetes.yml", api)
        )
        check_targets(store, pods, add, of_nodes, namespace)


def check_targets(store: Store, pods: Pods, add: Any, of_nodes: Any, namespace: str) -> None:
    up = "sum by (job, instance) (up)"
    in_pod = {"team/numerics-1,opscope": 1.0}
    store.wait_until(up, {"node-a,opscope": 1.0, **in_pod})
    # One node is replaced by another, whose agent has the other address.
    (first,) = [pod for pod in pods.now()[0] if pod["metadata"]["name"] == "agent-a"]
    pods.remove(first)
    add(of_nodes, namespace, "agent-b", "node-b", 1)
    store.wait_until(up, {"node-b,opscope": 1.0, **in_pod})
    # Scraped series have exactly these labels.
    (series,) = store.series('opscope_build_info{instance="node-b"}')
    of_build = {"version", "revision", "python_version"}
    assert set(series["metric"]) | of_build == {"__name__", "job", "instance"} | of_build
    label = "app.kubernetes.io/name=opscope-agent"
    assert pods.asked == {(f"/api/v1/namespaces/{namespace}/pods", label), ("/api/v1/pods", "")}
