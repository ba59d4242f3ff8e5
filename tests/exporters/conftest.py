"""Leaves out, and says so, the tests that need a Prometheus where there is none (Debian's package
`prometheus` brings it and promtool)."""

import shutil

HAS_PROMETHEUS = bool(shutil.which("prometheus") and shutil.which("promtool"))

collect_ignore = [] if HAS_PROMETHEUS else ["test_prometheus_peer.py"]


def pytest_report_header() -> str:
    return f"prometheus: {'found' if HAS_PROMETHEUS else 'none, test_prometheus_peer.py left out'}"
