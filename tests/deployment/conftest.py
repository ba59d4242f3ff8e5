"""The programs that use the configurations: those that tests/exporters export to, and two that no
package registry has. A test that needs one of these two is marked `external`, and skipped unless an
environment variable gives the program's path."""

import os
import shutil
from pathlib import Path

import pytest

from tests.exporters.conftest import (  # noqa: F401
    debian,
    new_prometheus,
    newest_prometheus,
    newest_victoria_metrics,
    old_prometheus,
    rotel,
    victoria_metrics,
)


@pytest.fixture
def collector(request: pytest.FixtureRequest) -> Path:
    """OpenTelemetry's collector."""
    return _said(request, "OPSCOPE_TEST_OTELCOL", "OpenTelemetry's collector")


@pytest.fixture
def otlp_prometheus(request: pytest.FixtureRequest) -> Path:
    what = "a Prometheus 3 with OTLP, which Debian leaves out"
    return _said(request, "OPSCOPE_TEST_PROMETHEUS", what)


def _said(request: pytest.FixtureRequest, variable: str, what: str) -> Path:
    if request.node.get_closest_marker("external") is None:
        pytest.fail(f"a test that needs {what} is marked `external`")
    found = shutil.which(os.environ.get(variable, ""))
    if not found:
        pytest.skip(f"{variable} does not say where to find {what}")
    return Path(found)
