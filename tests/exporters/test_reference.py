"""The reference in the tree is the one that the table of metrics makes."""

from pathlib import Path

from opscope.metrics import METRICS
from opscope_exporters.reference import document

FILE = Path(__file__).parents[2] / "exporters" / "METRICS.md"


def test_the_reference_is_what_the_table_makes() -> None:
    made = "python -m opscope_exporters.reference > exporters/METRICS.md"
    assert FILE.read_text() == document(), f"write it again: {made}"


def test_every_metric_is_in_it_with_both_names() -> None:
    text = document()
    for metric in METRICS:
        assert f"`{metric.name}`" in text
        assert metric.prometheus_name in text
