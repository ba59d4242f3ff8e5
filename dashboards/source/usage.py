"""Which services and versions use which API, framework and version of it."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.source import choices
from dashboards.source.blocks import board, number, rows
from dashboards.source.choices import OF_SERVICE, USAGE
from dashboards.source.queries import BY_VERSION, name


def make() -> Dashboard:
    info, api = name("opscope.framework.info"), name("opscope.api.usage")
    return (
        board(USAGE, "Opscope / API usage", "Which services and versions use which API.")
        .with_variable(choices.service())
        .with_panel(
            number(
                "APIs in use",
                "Different ones.",
                "short",
                f"count(count by (api) ({api}{{{OF_SERVICE}}}))",
                width=12,
            )
        )
        .with_panel(
            number(
                "Services",
                "That use any of them.",
                "short",
                f"count(count by (service) ({api}{{{OF_SERVICE}}}))",
                width=12,
            )
        )
        .with_panel(
            rows(
                "Use of APIs by service",
                "Processes, alive and ended, that used it.",
                "short",
                f"sum by (api, service) ({api}{{{OF_SERVICE}}})",
                ("api", "service"),
                "processes",
            )
        )
        .with_panel(
            rows(
                "Use of APIs by version of the service",
                "Processes; without a version where it is not known, or their host runs several.",
                "short",
                f"sum by (api, service, version) ({api}{{{OF_SERVICE}}}{BY_VERSION})",
                ("api", "service", "version"),
                "processes",
            )
        )
        .with_panel(
            rows(
                "Versions of frameworks",
                "Hosts where live processes run with it. On another device than cpu, times of"
                " operators are those of dispatch.",
                "short",
                f"count by (service, framework, version, device_type) ({info}{{{OF_SERVICE}}})",
                ("service", "framework", "version", "device_type"),
                "hosts",
                width=14,
            )
        )
        .with_panel(
            rows(
                "Versions of services",
                "Hosts where live processes are of that version.",
                "short",
                f"count by (service, version) ({name('opscope.service.info')}{{{OF_SERVICE}}})",
                ("service", "version"),
                "hosts",
                width=10,
            )
        )
        .build()
    )
