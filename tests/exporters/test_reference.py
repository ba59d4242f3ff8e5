"""exporters/METRICS.md equals the output of its generator."""

from pathlib import Path

from opscope.metrics import METRICS
from opscope_exporters.reference import document

FILE = Path(__file__).parents[2] / "exporters" / "METRICS.md"


def test_the_reference_is_generated_from_the_table() -> None:
    assert FILE.read_text() == document(), "run: make metrics-doc"


def test_every_metric_is_in_it_with_both_names() -> None:
    text = document()
    for metric in METRICS:
        assert f"`{metric.name}`" in text
        assert metric.prometheus_name in text


def test_no_label_is_one_that_scrape_configurations_give_a_target() -> None:
    """Prometheus would call it exported_...; these are a ServiceMonitor's and a PodMonitor's."""
    target = {"container", "endpoint", "instance", "job", "namespace", "node", "pod", "service"}
    for metric in METRICS:
        assert not target & {*metric.labels}, metric.name
