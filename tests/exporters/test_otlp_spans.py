"""The resource and the scope of slow ranges as spans."""

import pytest

from opscope import __version__
from opscope.timeline.reader import Name, Thread
from opscope.timeline.slow import Slow
from opscope_exporters.otlp.spans import Origin, SpanSender
from opscope_exporters.resource import SCHEMA_URL, SDK
from tests.exporters.otlp_receiver import attributes, over_http

RANGE = Slow(
    0,
    Thread(1, 2, "main", ()),
    Name("numpy::add", "", 0),
    "other",
    False,
    (),
    None,
    5,
    9,
    7,
    8,
    None,
)
NOTES = {"resource.k8s.pod.name": "p", "resource.telemetry.sdk.name": "the program's", "rank": "3"}


def test_the_resource_names_the_process_the_sdk_and_the_version_of_the_conventions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with over_http() as received:
        monkeypatch.setenv(
            "OTEL_EXPORTER_OTLP_ENDPOINT", received.endpoint.removesuffix("/v1/metrics")
        )
        sent = SpanSender().send([RANGE], [Origin("web", 5, NOTES)])
    assert (sent.taken_count, sent.rejected_count) == (1, 0)
    (request,) = received.requests
    (of_resource,) = request.resource_spans
    (of_scope,) = of_resource.scope_spans
    found = attributes(of_resource.resource)
    assert {key: found[key] for key in SDK} == SDK
    assert (found["service.name"], found["k8s.pod.name"]) == ("web", "p")
    assert (found["rank"], found["process.pid"]) == ("3", 5)
    assert (of_scope.scope.name, of_scope.scope.version) == ("opscope", __version__)
    assert of_resource.schema_url == of_scope.schema_url == SCHEMA_URL
