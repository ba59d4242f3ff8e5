"""The identity in a program's environment is on the agent's page."""

import sys

from tests.e2e.observed_host import ObservedHost

PROGRAM = "import numpy; [numpy.arange(9) + 1 for _ in range(10)]"


def test_resource_attributes_and_the_job_of_a_program_are_exported(host: ObservedHost) -> None:
    host.environ |= {
        "OTEL_RESOURCE_ATTRIBUTES": "service.name=web,service.namespace=shop,k8s.pod.name=p%201",
        "SLURM_JOB_ID": "7",
        "RANK": "3",
    }
    host.run(sys.executable, "-c", PROGRAM)
    samples = list(host.samples())
    (info,) = (one for one in samples if one.name == "opscope_resource_info")
    group = info.labels.pop("group")
    assert info.labels == {
        "service_name": "web",
        "service_namespace": "shop",
        "k8s_pod_name": "p 1",
        "job_id": "7",
    }
    calls = [one for one in samples if one.name == "opscope_op_duration_seconds_count"]
    assert {one.labels["group"] for one in calls} == {group}
