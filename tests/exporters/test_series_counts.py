"""The table of series in METRICS.md has the numbers that Prometheus stores for running programs."""

from pathlib import Path

from opscope.metrics import METRICS
from tests.exporters.series_counts import OCTAVES, classic, lines, native, observed, row


def test_a_real_server_has_as_many_series_as_its_page_has_samples(tmp_path: Path) -> None:
    snapshot = observed("server.py", 0.5, str(tmp_path))
    assert "numpy::dot" in {key.op for key in snapshot.keys}
    host = [line for line in lines(snapshot, 1.0) if "op=" not in line]
    operators = len(snapshot.keys)
    most = sum(metric.of_series for metric in METRICS)
    # Each operator has calls, durations and samples, and self time unless it does nothing itself.
    assert 3 * operators < native(snapshot) - len(host) <= most * operators
    counts = [classic(snapshot, octaves) for octaves in OCTAVES]
    assert counts == sorted(counts)
    assert native(snapshot) < counts[0]
    cells = row("a server", snapshot).split(" | ")
    assert cells[:3] == ["| a server", str(operators), str(native(snapshot))]
