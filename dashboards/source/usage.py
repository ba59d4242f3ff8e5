"""API usage: which services and versions use which API, and which framework version."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.source import choices
from dashboards.source.blocks import NEUTRAL, board, number, question, rows
from dashboards.source.choices import OF_SERVICE, USAGE
from dashboards.source.queries import BY_VERSION, name

_OF_VERSION = 'version=~"$version"'


def make() -> Dashboard:
    info, api = name("opscope.framework.info"), name("opscope.api.usage")
    of_version = f"{api}{{{OF_SERVICE}}}{BY_VERSION}{{{_OF_VERSION}}}"
    return (
        board(
            USAGE,
            "Opscope / API usage",
            "Which services and versions use which API.",
            *choices.where(),
            choices.version(),
        )
        .with_panel(
            question(
                "Who still uses this API, or this version of a framework?",
                "Sort a table by a click on its head, filter it by its funnel. A host of an old"
                " version here is why a removal must wait.",
            )
        )
        .with_panel(
            number(
                "APIs in use",
                "Number of different APIs.",
                "short",
                f"count(count by (api) ({api}{{{OF_SERVICE}}}))",
                NEUTRAL,
                width=8,
            )
        )
        .with_panel(
            number(
                "Services",
                "Services that use any of the APIs.",
                "short",
                f"count(count by (service_name) ({api}{{{OF_SERVICE}}}))",
                NEUTRAL,
                width=8,
            )
        )
        .with_panel(
            number(
                "Versions in use",
                "Versions of frameworks: more than two of one are worth a look.",
                "short",
                "max(count by (framework)"
                f" (count by (framework, version) ({info}{{{OF_SERVICE}}})))",
                ((None, "green"), (3, "orange"), (5, "red")),
                width=8,
            )
        )
        .with_panel(
            rows(
                "Use of APIs by service",
                "Processes, live and ended, that used the API.",
                "short",
                f"sum by (api, service_name) ({api}{{{OF_SERVICE}}})",
                ("api", "service_name"),
                "processes",
            )
        )
        .with_panel(
            rows(
                "Use of APIs by version of the service",
                "Processes; the version is empty if it is unknown, or if the host runs several.",
                "short",
                f"sum by (api, service_name, version) ({of_version})",
                ("api", "service_name", "version"),
                "processes",
            )
        )
        .with_panel(
            rows(
                "Versions of frameworks",
                "Hosts with live processes that use it. On a device other than cpu, operator times"
                " are dispatch times.",
                "short",
                "count by (service_name, framework, version, device_type)"
                f" ({info}{{{OF_SERVICE}}})",
                ("service_name", "framework", "version", "device_type"),
                "hosts",
                width=14,
            )
        )
        .with_panel(
            rows(
                "Versions of services",
                "Hosts with live processes of the version.",
                "short",
                "count by (service_name, version)"
                f" ({name('opscope.service.info')}{{{OF_SERVICE}, {_OF_VERSION}}})",
                ("service_name", "version"),
                "hosts",
                width=10,
            )
        )
        .build()
    )
