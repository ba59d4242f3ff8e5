"""The page for Prometheus and whoever reads its formats, in the form the client likes best.

Text, OpenMetrics, or delimited protobuf, which is what a Prometheus with native histograms asks
for: see text_page.py and protobuf_page.py. Compression is the server's (opscope/agent/blocks.py).
"""

from __future__ import annotations

from collections.abc import Iterable

from opscope.agent.exporter import Option, Options, PageExporter
from opscope.agent.snapshot import Snapshot
from opscope_exporters import protobuf_page, text_page
from opscope_exporters.negotiation import Offer, chosen
from opscope_exporters.protobuf_page import ProtobufPage
from opscope_exporters.resource import target_labels
from opscope_exporters.samples import ClassicBuckets
from opscope_exporters.text_page import TextPage

OPTIONS = (
    Option("octaves", 2, "octaves between two bounds of a classic histogram: 1, 2 or 4", (1, 2, 4)),
)

_OPENMETRICS = "application/openmetrics-text"
_OFFERS = (
    Offer("text/plain", {"version": ("0.0.4", "")}),
    Offer(_OPENMETRICS, {"version": ("1.0.0", "0.0.1", "")}),
    Offer(
        "application/vnd.google.protobuf",
        {"proto": ("io.prometheus.client.MetricFamily",), "encoding": ("delimited",)},
    ),
)


def create(options: Options) -> PageExporter:
    return Prometheus(options["octaves"])


class Prometheus:
    def __init__(self, octaves: int = 2) -> None:
        buckets = ClassicBuckets(octaves)
        self._text = TextPage(buckets)
        self._protobuf = ProtobufPage(buckets)
        self._target = target_labels()

    def page(self, snapshot: Snapshot, accept: str) -> tuple[Iterable[bytes], str]:
        offer, asked = chosen(accept, _OFFERS)
        if offer is _OFFERS[2]:
            return self._protobuf.write(snapshot, self._target), protobuf_page.CONTENT_TYPE
        if offer is _OFFERS[1]:
            page = self._text.write(snapshot, openmetrics=True, target=self._target)
            version = asked.get("version") or "1.0.0"
            return page, f"{_OPENMETRICS}; version={version}; charset=utf-8"
        page = self._text.write(snapshot, openmetrics=False, target=self._target)
        return page, text_page.PLAIN_TYPE

    def close(self) -> None:
        """Nothing is kept open."""
