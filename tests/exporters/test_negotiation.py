"""The format of the page that a client gets, by its Accept header."""

import numpy as np
import pytest

from opscope.host.snapshot import COUNTER_COLUMNS, Snapshot
from opscope_exporters.prometheus.exporter import Prometheus

PROTOBUF = (
    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
)
# The Accept headers of these versions of Prometheus, without and with native histograms.
PROMETHEUS_2_53 = (
    "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;"
    "q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
PROMETHEUS_2_53_NATIVE = (
    f"{PROTOBUF};q=0.6,application/openmetrics-text;version=1.0.0;q=0.5,"
    "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", "text/plain; version=0.0.4"),
        ("*/*", "text/plain; version=0.0.4"),
        ("text/html,application/xhtml+xml", "text/plain; version=0.0.4"),
        (PROMETHEUS_2_53, "application/openmetrics-text; version=1.0.0"),
        (PROMETHEUS_2_53_NATIVE, "application/vnd.google.protobuf; proto="),
        (f"text/plain;q=0.9,{PROTOBUF};q=0.8", "text/plain; version=0.0.4"),
        (f"{PROTOBUF};q=0", "text/plain; version=0.0.4"),
        ("application/vnd.google.protobuf", "text/plain; version=0.0.4"),
        (PROTOBUF.replace("delimited", "text"), "text/plain; version=0.0.4"),
        ("application/openmetrics-text; version=0.0.1", "application/openmetrics-text; version=0"),
        ("application/openmetrics-text; version=7", "text/plain; version=0.0.4"),
        ("Application/OpenMetrics-Text;q=x, text/plain;q=0.1", "text/plain; version=0.0.4"),
        (";;,,q=1;", "text/plain; version=0.0.4"),
    ],
)
def test_the_preferred_format_is_sent(accept: str, expected: str) -> None:
    none = Snapshot(
        1,
        (),
        np.zeros(0, np.int64),
        np.zeros((0, COUNTER_COLUMNS), np.uint64),
        np.zeros((0, 0, 8), np.uint64),
        0,
    )
    pieces, content_type = Prometheus().page(none, accept)
    page = b"".join(pieces)
    assert content_type.startswith(expected)
    assert page.endswith(b"# EOF\n") == content_type.startswith("application/openmetrics")
