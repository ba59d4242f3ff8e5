"""Series that are equal in Prometheus become one series on a page, with their sum."""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.bench.scrape import snapshot_of
from opscope.host.snapshot import SeriesKey, Snapshot
from opscope.server.exporter import PageExporter, load
from opscope_exporters.distinct import Distinct
from opscope_exporters.resource import target_labels
from opscope_exporters.textfile import Textfile
from tests.exporters.client_model import families, labels_of

OPENMETRICS = "application/openmetrics-text; version=1.0.0"
PROTOBUF = (
    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
)


def with_labels(*labels: tuple[tuple[str, str], ...]) -> Snapshot:
    """The same operator under each of these labels."""
    snapshot = snapshot_of(len(labels), 0)
    first = snapshot.keys[0]
    keys = tuple(SeriesKey(first.service, first.op, first.phase, one) for one in labels)
    return replace(snapshot, keys=keys)


def text(snapshot: Snapshot, accept: str = "") -> str:
    exporter = load("prometheus", {}, {})
    assert isinstance(exporter, PageExporter)
    return b"".join(exporter.page(snapshot, accept)[0]).decode()


def series(page: str) -> list[str]:
    """Name and labels of each line, regardless of the order of labels."""
    found = []
    for line in page.splitlines():
        if not line.startswith("#"):
            name, labels = re.match(r'(\w+)(?:\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\})? ', line).groups()  # type: ignore[union-attr]
            pairs = re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels or "")
            names = [one for one, _ in pairs]
            assert len(names) == len(set(names)), line
            found.append(f"{name}{sorted(pairs)}")
    return found


def assert_once(page: str) -> None:
    assert [one for one, count in Counter(series(page)).items() if count > 1] == []


BOTH = with_labels((("a.b", "x"),), (("a_b", "x"),), (("a_b", "y"),))


@pytest.mark.parametrize("accept", ["", OPENMETRICS])
def test_names_that_become_one_make_one_series(accept: str) -> None:
    page = text(BOTH, accept)
    assert_once(page)
    (calls,) = re.findall(r'opscope_op_samples_total\{[^}]*a_b="x"[^}]*\} (\S+)', page)
    assert float(calls) == float(BOTH.samples[:2].sum())
    (calls,) = re.findall(r'opscope_op_samples_total\{[^}]*a_b="y"[^}]*\} (\S+)', page)
    assert float(calls) == float(BOTH.samples[2])


def test_the_page_of_native_histograms_too() -> None:
    exporter = load("prometheus", {}, {})
    assert isinstance(exporter, PageExporter)
    page = b"".join(exporter.page(BOTH, PROTOBUF)[0])
    for family in families(page):
        labels = [tuple(sorted(labels_of(one).items())) for one in family.metric]
        assert len(labels) == len(set(labels)), family.name


def test_the_file_too(tmp_path: Path) -> None:
    path = tmp_path / "a.prom"
    Textfile(str(path), 1.0).export(BOTH)
    assert_once(path.read_text())


@given(
    st.lists(
        st.lists(st.tuples(st.text("a._-é1", max_size=3), st.text("xy;", max_size=2)), max_size=2),
        min_size=1,
        max_size=6,
        unique_by=tuple,
    )
)
def test_with_any_label_names_a_page_has_no_series_twice(
    labels: list[list[tuple[str, str]]],
) -> None:
    snapshot = with_labels(*(tuple(dict(one).items()) for one in labels))
    distinct = Distinct()
    added = distinct.of(snapshot)
    assert added.counters.sum() == snapshot.counters.sum()
    assert added.buckets.sum() == snapshot.buckets.sum()
    assert_once(text(snapshot))
    assert np.array_equal(distinct.of(snapshot).counters, added.counters)


def test_distinct_names_are_unchanged() -> None:
    snapshot = with_labels((("model_id", "a"),), (("model_id", "b"),))
    assert Distinct().of(snapshot) is snapshot


def test_the_label_of_a_resource_is_there_once() -> None:
    labels = target_labels({"OTEL_RESOURCE_ATTRIBUTES": "a.b=1,a_b=2"})
    assert [value for name, value in labels if name == "a_b"] == ["1;2"]


def test_the_label_of_a_host_metric_is_there_once() -> None:
    attributes = (("a.b", "1"),), (("a_b", "1"),)
    snapshot = replace(BOTH, groups={f"g{n}": one for n, one in enumerate(attributes)})
    assert_once(text(snapshot))
