"""Serves the page for Prometheus and other clients, in the format that the client prefers.

Formats are text, OpenMetrics, and delimited protobuf, which a Prometheus with native histograms
requests: see text_page.py and protobuf_page.py. opscope/server/blocks.py compresses.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from opscope.server.exporter import Options, PageExporter
from opscope_exporters.prometheus.negotiation import Offer, chosen
from opscope_exporters.resource import target_labels
from opscope_exporters.samples import OCTAVES, ClassicBuckets, of_process

if TYPE_CHECKING:
    from opscope.host.snapshot import Snapshot

OPTIONS = (OCTAVES,)

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
    def __init__(self, octaves: float = 1.0) -> None:
        from opscope_exporters.distinct import Distinct
        from opscope_exporters.prometheus.protobuf_page import ProtobufPage
        from opscope_exporters.prometheus.text_page import TextPage

        buckets = ClassicBuckets(octaves)
        self._text = TextPage(buckets)
        self._protobuf = ProtobufPage(buckets)
        self._target = target_labels()
        self._distinct = Distinct()

    def page(self, snapshot: Snapshot, accept: str) -> tuple[Iterable[bytes], str]:
        from opscope_exporters.prometheus import protobuf_page, text_page

        offer, asked = chosen(accept, _OFFERS)
        snapshot = self._distinct.of(snapshot)
        target, more = self._target, of_process(snapshot)
        if offer is _OFFERS[2]:
            return self._protobuf.write(snapshot, target, more), protobuf_page.CONTENT_TYPE
        if offer is _OFFERS[1]:
            page = self._text.write(snapshot, openmetrics=True, target=target, more=more)
            version = asked.get("version") or "1.0.0"
            return page, f"{_OPENMETRICS}; version={version}; charset=utf-8"
        page = self._text.write(snapshot, openmetrics=False, target=target, more=more)
        return page, text_page.PLAIN_TYPE

    def close(self) -> None:
        """Does nothing: no resource stays open."""
