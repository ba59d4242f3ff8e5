"""The programs that tests of this folder export to. Tests of an unavailable program are skipped
with the reason; CI has all programs."""

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.exporters import debian_packages


@pytest.fixture(scope="session")
def debian(request: pytest.FixtureRequest) -> Path:
    """Where Debian's packages are unpacked, kept between runs."""
    return Path(request.config.cache.mkdir("debian"))


def _unpacked(package: str, debian: Path, suite: str = "trixie") -> Path:
    try:
        return debian_packages.program(package, debian, suite)
    except debian_packages.UnavailableError as error:
        pytest.skip(f"no {package}: {error}")


@pytest.fixture(scope="session")
def old_prometheus() -> Path:
    """The system's, from Debian's package `prometheus`."""
    found = shutil.which("prometheus")
    if not found:
        pytest.skip("no prometheus: Debian's package of that name is not installed")
    return Path(found)


@pytest.fixture(scope="session")
def promtool() -> str:
    found = shutil.which("promtool")
    if not found:
        pytest.skip("no promtool: Debian's package prometheus is not installed")
    return found


@pytest.fixture(scope="session")
def new_prometheus(debian: Path) -> Path:
    return _unpacked("prometheus", debian)


@pytest.fixture(scope="session")
def newest_prometheus(debian: Path) -> Path:
    return _unpacked("prometheus", debian, "forky")


@pytest.fixture(scope="session")
def newest_victoria_metrics(debian: Path) -> Path:
    return _unpacked("victoria-metrics", debian, "forky")


@pytest.fixture(scope="session")
def promtools(debian: Path) -> list[str]:
    """The system's, and those of Prometheus 2.53 and 3.5."""
    found = shutil.which("promtool")
    if not found:
        pytest.skip("no promtool: Debian's package prometheus is not installed")
    return [found, *(str(_unpacked("promtool", debian, one)) for one in ("trixie", "forky"))]


@pytest.fixture(scope="session")
def node_exporter(debian: Path) -> Path:
    return _unpacked("prometheus-node-exporter", debian)


@pytest.fixture(scope="session")
def victoria_metrics(debian: Path) -> Path:
    return _unpacked("victoria-metrics", debian)


@pytest.fixture(scope="session")
def rotel() -> Path:
    """The collector in PyPI's package of that name."""
    found = find_spec("rotel")
    if found is None or found.origin is None:
        pytest.skip("no rotel: the package of that name is not installed")
    return Path(os.path.dirname(found.origin)) / "rotel-agent"
