"""Parts shared by the dashboards: their names, variables, units and limits."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from dashboards.source.blocks import Steps, choice, up_to
from dashboards.source.queries import name

FLEET, OPERATOR, MODEL = "opscope-fleet", "opscope-operator", "opscope-model"
HOSTS, USAGE, ITSELF = "opscope-hosts", "opscope-usage", "opscope-itself"
SERVING = "opscope-serving"

OF_CLUSTER = 'cluster=~"$cluster"'
OF_SERVICE = f'{OF_CLUSTER}, service_name=~"$service"'
OF_JOB = f'{OF_SERVICE}, job_id=~"$job"'
OF_HOST = f'{OF_CLUSTER}, instance=~"$host"'
OF_ALL = f'{OF_SERVICE}, model_id=~"$model", instance=~"$host"'
BUSY = "1 means one thread that is busy all the time."

SELECTED = ("cluster", "namespace", "job", "service")
"""The variables that every dashboard has, which a link keeps."""

OVERHEAD = up_to(0.005, 0.0075)
"""The default budget, and where OpscopeOverheadOverBudget begins."""
WAITING = up_to(0.2, 0.3)
"""Shares of time in a phase; OpscopeInputBound and OpscopeCommunicationBound begin at 0.3."""
SLOWNESS: Steps = ((None, "blue"), (0.95, "green"), (1.05, "yellow"), (1.1, "orange"), (1.2, "red"))
"""Of a host: OpscopeStraggler begins at 1.1."""
CHANGE: Steps = ((None, "green"), (1.0, "text"), (1.05, "orange"), (1.3, "red"))
"""Of a duration: OpscopeOperatorRegressed begins at 1.05, OpscopeOperatorSlowerInVersion at 1.3."""
ALERTS = up_to(1, 10)
NONE = up_to(1e-9, 1)
"""Of what should not happen at all."""
OBJECTIVES = (
    ("agents answer", 0.995, f"opscope:agents_up:ratio5m{{{OF_CLUSTER}}}"),
    ("recording within budget", 0.999, f"opscope:within_budget:ratio{{{OF_CLUSTER}}}"),
    ("no range is lost", 0.999, f"opscope:ranges_kept:ratio5m{{{OF_CLUSTER}}}"),
)
"""(objective, target, share)."""
BURNT = up_to(0.5, 1.0)


def where() -> tuple[dashboard.QueryVariable, ...]:
    """Cluster, namespace, job and service; each lists what the ones before it leave."""
    groups = "opscope:service_group:info"
    in_namespace = f'{OF_CLUSTER}, k8s_namespace_name=~"$namespace"'
    of_job = f'{in_namespace}, job_id=~"$job"'
    return (
        choice(
            "cluster",
            "Cluster",
            "The label cluster of Prometheus.",
            "label_values(opscope:hosts:count, cluster)",
        ),
        choice(
            "namespace",
            "Namespace",
            "k8s.namespace.name of the observed processes: narrows jobs and services.",
            f"label_values({groups}{{{OF_CLUSTER}}}, k8s_namespace_name)",
        ),
        choice(
            "job",
            "Job",
            "job.id of the observed processes, from Slurm, PBS, LSF or torchrun: narrows services.",
            f"label_values({groups}{{{in_namespace}}}, job_id)",
        ),
        choice(
            "service",
            "Service",
            "service.name of the observed processes.",
            f"label_values({groups}{{{of_job}}}, service_name)",
            all_listed=True,
        ),
    )


def host() -> dashboard.QueryVariable:
    query = f"label_values({name('opscope.processes')}{{{OF_CLUSTER}}}, instance)"
    return choice("host", "Host", "The instance label of Prometheus.", query)


def version() -> dashboard.QueryVariable:
    query = f"label_values(opscope:version_hosts:count{{{OF_SERVICE}}}, version)"
    return choice("version", "Version", "service.version of the observed processes.", query)


def model() -> dashboard.QueryVariable:
    query = f"label_values(opscope:model_self_seconds:rate5m{{{OF_SERVICE}}}, model_id)"
    return choice("model", "Model", "The debug-info key model_id.", query)


def served() -> dashboard.QueryVariable:
    query = f"label_values(nv_inference_request_success_total{{{OF_SERVICE}}}, model)"
    return choice("served", "Model", "A model that a server answers for.", query)


def served_version() -> dashboard.QueryVariable:
    of_model = f'{OF_SERVICE}, model=~"$served"'
    query = f"label_values(nv_inference_request_success_total{{{of_model}}}, version)"
    return choice("version", "Version", "Of the served model.", query)


def operator() -> dashboard.QueryVariable:
    query = f"label_values(opscope:op_calls:rate5m{{{OF_SERVICE}}}, op)"
    return choice("operator", "Operator", "Its name.", query, several=False)
