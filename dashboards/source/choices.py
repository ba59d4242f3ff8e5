"""Parts shared by the dashboards: their names, variables and units."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from dashboards.source.blocks import choice
from dashboards.source.queries import name

FLEET, OPERATOR, MODEL = "opscope-fleet", "opscope-operator", "opscope-model"
HOSTS, USAGE, ITSELF = "opscope-hosts", "opscope-usage", "opscope-itself"
SERVING = "opscope-serving"

OF_SERVICE = 'service_name=~"$service"'
OF_HOST = 'instance=~"$host"'
OF_ALL = 'service_name=~"$service", model_id=~"$model", instance=~"$host"'
BUSY = "1 means one thread that is busy all the time."


def service() -> dashboard.QueryVariable:
    return choice(
        "service",
        "Service",
        "service.name of the observed processes.",
        # From a metric with one sum per service: the fewest series.
        "label_values(opscope:framework_calls:rate5m, service_name)",
    )


def host() -> dashboard.QueryVariable:
    query = f"label_values({name('opscope.processes')}, instance)"
    return choice("host", "Host", "The instance label of Prometheus.", query)


def model() -> dashboard.QueryVariable:
    query = f"label_values(opscope:model_self_seconds:rate5m{{{OF_SERVICE}}}, model_id)"
    return choice("model", "Model", "The debug-info key model_id.", query)


def served() -> dashboard.QueryVariable:
    query = f"label_values(nv_inference_request_success_total{{{OF_SERVICE}}}, model)"
    return choice("served", "Model", "A model that a server answers for.", query)


def operator() -> dashboard.QueryVariable:
    query = f"label_values(opscope:op_calls:rate5m{{{OF_SERVICE}}}, op)"
    return choice("operator", "Operator", "Its name.", query, several=False)
