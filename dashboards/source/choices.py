"""What the dashboards share: their names, the variables to choose by, the units."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from dashboards.source.blocks import choice
from dashboards.source.queries import name

FLEET, OPERATOR, MODEL = "opscope-fleet", "opscope-operator", "opscope-model"
HOSTS, USAGE, ITSELF = "opscope-hosts", "opscope-usage", "opscope-itself"

OF_SERVICE = 'service=~"$service"'
OF_HOST = 'instance=~"$host"'
OF_ALL = 'service=~"$service", model_id=~"$model", instance=~"$host"'
BUSY = "1 is one thread that is busy all the time."


def service() -> dashboard.QueryVariable:
    return choice(
        "service",
        "Service",
        "service.name of the observed processes.",
        # Of what there is a sum of each service: the fewest series.
        "label_values(opscope:framework_calls:rate5m, service)",
    )


def host() -> dashboard.QueryVariable:
    query = f"label_values({name('opscope.processes')}, instance)"
    return choice("host", "Host", "As Prometheus scrapes it.", query)


def model() -> dashboard.QueryVariable:
    query = f"label_values(opscope:model_self_seconds:rate5m{{{OF_SERVICE}}}, model_id)"
    return choice("model", "Model", "The debug-info key model_id.", query)


def operator() -> dashboard.QueryVariable:
    query = f"label_values(opscope:op_calls:rate5m{{{OF_SERVICE}}}, op)"
    return choice("operator", "Operator", "Its name.", query, several=False)
