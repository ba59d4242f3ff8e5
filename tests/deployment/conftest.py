"""The programs that the configurations are for: those that tests/exporters export to, and two that
no package registry has, where somebody says where they are."""

import os
import shutil
from pathlib import Path

import pytest

from tests.exporters.conftest import (  # noqa: F401
    debian,
    new_prometheus,
    old_prometheus,
    rotel,
    victoria_metrics,
)


@pytest.fixture(scope="session")
def collector() -> Path:
    """OpenTelemetry's own."""
    return _said("OPSCOPE_TEST_OTELCOL", "OpenTelemetry's collector")


@pytest.fixture(scope="session")
def otlp_prometheus() -> Path:
    return _said("OPSCOPE_TEST_PROMETHEUS", "a Prometheus 3 with OTLP, which Debian leaves out")


def _said(variable: str, what: str) -> Path:
    found = shutil.which(os.environ.get(variable, ""))
    if not found:
        pytest.skip(f"{variable} does not say where to find {what}")
    return Path(found)
