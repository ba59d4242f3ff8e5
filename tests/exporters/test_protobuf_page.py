"""The protobuf page: Google's decoder reads the values of the snapshot."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.bench.scrape import snapshot_of
from opscope.host.snapshot import COUNTER_COLUMNS, Exemplar, SeriesKey, Snapshot
from opscope.metric_definition import Kind
from opscope.metrics import METRICS
from opscope_exporters.prometheus.exporter import Prometheus
from opscope_exporters.samples import labels_of as series_labels
from tests.examples import examples
from tests.exporters import client_model
from tests.exporters.client_model import families, labels_of, native_buckets

ACCEPT = (
    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
)
DURATION = "opscope_op_duration_seconds"


def read(snapshot: Snapshot, **options: Any) -> dict[str, Any]:
    page, content_type = Prometheus(**options).page(snapshot, ACCEPT)
    assert content_type.replace(" ", "") == ACCEPT
    return {family.name: family for family in families(b"".join(page))}


def test_every_value_of_a_snapshot_is_read_back() -> None:
    snapshot = snapshot_of(50, 1)
    found = read(snapshot)
    labels = [dict(series_labels(key)) for key in snapshot.keys]
    for metric in METRICS:
        if not metric.of_series:
            continue
        name = metric.prometheus_name + "_total" * (metric.kind is Kind.COUNTER)
        family = found[name]
        assert (family.help, family.unit) == (metric.help, metric.prometheus_unit)
        assert [labels_of(one) for one in family.metric] == labels
        if metric.kind is Kind.COUNTER:
            assert family.type == client_model.COUNTER
            values = [one.counter.value for one in family.metric]
            assert values == getattr(snapshot, metric.source).tolist()
            created = [one.counter.created_timestamp.ToNanoseconds() for one in family.metric]
            assert created == snapshot.created_unix_ns.tolist()


def test_native_buckets_are_the_recorders_one_index_further() -> None:
    snapshot = snapshot_of(50, 2)
    weights = snapshot.buckets.reshape(50, -1) / 65536
    for row, metric in enumerate(read(snapshot)[DURATION].metric):
        histogram = metric.histogram
        assert histogram.schema == 3
        assert histogram.zero_threshold == 2.0**-128
        assert histogram.sample_count_float == weights[row].sum()
        assert histogram.sample_sum == snapshot.total_s[row]
        assert histogram.created_timestamp.ToNanoseconds() == snapshot.created_unix_ns[row]
        filled = np.flatnonzero(weights[row])
        assert native_buckets(histogram) == {
            int(index) + snapshot.bucket_offset + 1: weights[row, index] for index in filled
        }


def test_a_native_buckets_bounds_hold_the_durations_in_it() -> None:
    # Bucket 0 of the first octave: from 2^(18 - 40) s to 2^(1/8) times that.
    snapshot = snapshot_of(1, 0)
    snapshot.buckets[:] = 0
    snapshot.buckets[0, 0, 0] = 65536
    (metric,) = read(snapshot)[DURATION].metric
    ((index, count),) = native_buckets(metric.histogram).items()
    assert count == 1
    # Prometheus: index i reaches from 2^((i - 1) / 8), not included, to 2^(i / 8).
    assert 2.0 ** ((index - 1) / 8) == 2.0**-22


@pytest.mark.parametrize("octaves", [1, 2, 4])
def test_classic_buckets_are_beside_them(octaves: int) -> None:
    snapshot = snapshot_of(20, 3)
    weights = snapshot.buckets.reshape(20, -1) / 65536
    ends = 2.0 ** ((snapshot.bucket_offset + 1 + np.arange(weights.shape[1])) / 8)
    for row, metric in enumerate(read(snapshot, octaves=octaves)[DURATION].metric):
        buckets = metric.histogram.bucket
        assert [bucket.upper_bound for bucket in buckets][-2:] == [16.0, float("inf")]
        for bucket in buckets:
            within = weights[row, ends <= bucket.upper_bound * 1.0001]
            assert bucket.cumulative_count_float == pytest.approx(within.sum(), rel=1e-12)


@examples(10)
@given(
    st.lists(
        st.lists(
            st.integers(0, 3).map(lambda n: n if n < 2 else n << 40), min_size=24, max_size=24
        ),
        min_size=1,
        max_size=5,
    )
)
def test_any_pattern_of_buckets_is_read_back(rows: list[list[int]]) -> None:
    buckets = np.array(rows, np.uint64).reshape(len(rows), 3, 8)
    keys = tuple(SeriesKey("s", f"op{row}", "forward", ()) for row in range(len(rows)))
    counters = np.ones((len(rows), COUNTER_COLUMNS), np.uint64)
    snapshot = Snapshot(2, keys, np.ones(len(rows), np.int64), counters, buckets, 50)
    for row, metric in enumerate(read(snapshot)[DURATION].metric):
        assert native_buckets(metric.histogram) == {
            index + snapshot.bucket_offset + 1: weight / 65536
            for index, weight in enumerate(rows[row])
            if weight
        }


@examples(10)
@given(st.text(max_size=30), st.text(max_size=30))
def test_any_label_value_is_read_back(service: str, value: str) -> None:
    snapshot = snapshot_of(1, 0)
    snapshot = replace(snapshot, keys=(SeriesKey(service, "a", "forward", (("model", value),)),))
    (metric,) = read(snapshot)[DURATION].metric
    labels = labels_of(metric)
    # Characters that no text can contain, half a surrogate pair, become "?".
    assert labels["service_name"] == service.encode(errors="replace").decode()
    assert labels["model"] == value.encode(errors="replace").decode()


def test_exemplars_are_in_the_histogram_and_in_their_classic_bucket() -> None:
    slow = Exemplar(0.3, 1_700_000_000_500_000_000, "ab" * 16, "cd" * 8)
    snapshot = replace(snapshot_of(3, 0), exemplars={1: (slow,)})
    metrics = read(snapshot)[DURATION].metric
    assert [len(metric.histogram.exemplars) for metric in metrics] == [0, 1, 0]
    marked = [bucket for bucket in metrics[1].histogram.bucket if bucket.HasField("exemplar")]
    assert [bucket.upper_bound for bucket in marked] == [0.5]
    for exemplar in (metrics[1].histogram.exemplars[0], marked[0].exemplar):
        assert labels_of(exemplar) == {"trace_id": slow.trace_id, "span_id": slow.span_id}
        assert exemplar.value == 0.3
        assert exemplar.timestamp.ToNanoseconds() == slow.time_unix_ns


def test_a_host_without_series_has_a_page() -> None:
    none = Snapshot(
        1,
        (),
        np.zeros(0, np.int64),
        np.zeros((0, COUNTER_COLUMNS), np.uint64),
        np.zeros((0, 0, 8), np.uint64),
        0,
    )
    found = read(none)
    assert DURATION not in found
    assert found["opscope_processes"].metric[0].gauge.value == 0
    assert found["target_info"].type == client_model.GAUGE
