"""Read pages of delimited protobuf with Google's own decoder, to test our encoder.

Has the fields of `io.prometheus.client` that Prometheus 3 reads, numbered as in their definition:
https://github.com/prometheus/client_model/blob/master/io/prometheus/client/metrics.proto
"""

from collections.abc import Iterator
from typing import Any

from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    message_factory,
    timestamp_pb2,
)

_FIELDS = {
    "LabelPair": "string name=1, string value=2",
    "Gauge": "double value=1",
    "Counter": "double value=1, Exemplar exemplar=2, Timestamp created_timestamp=3",
    "BucketSpan": "sint32 offset=1, uint32 length=2",
    "Histogram": "uint64 sample_count=1, double sample_count_float=4, double sample_sum=2, "
    "repeated Bucket bucket=3, sint32 schema=5, double zero_threshold=6, uint64 zero_count=7, "
    "double zero_count_float=8, repeated BucketSpan negative_span=9, "
    "repeated sint64 negative_delta=10, repeated double negative_count=11, "
    "repeated BucketSpan positive_span=12, repeated sint64 positive_delta=13, "
    "repeated double positive_count=14, Timestamp created_timestamp=15, "
    "repeated Exemplar exemplars=16",
    "Bucket": "uint64 cumulative_count=1, double cumulative_count_float=4, double upper_bound=2, "
    "Exemplar exemplar=3",
    "Exemplar": "repeated LabelPair label=1, double value=2, Timestamp timestamp=3",
    "Metric": "repeated LabelPair label=1, Gauge gauge=2, Counter counter=3, "
    "Histogram histogram=7, int64 timestamp_ms=6",
    "MetricFamily": "string name=1, string help=2, int32 type=3, repeated Metric metric=4, "
    "string unit=5",
}
_PACKAGE = "io.prometheus.client"
COUNTER, GAUGE, HISTOGRAM = 0, 1, 4


def _described() -> descriptor_pb2.FileDescriptorProto:
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="metrics.proto",
        package=_PACKAGE,
        syntax="proto3",
        dependency=["google/protobuf/timestamp.proto"],
    )
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for text in fields.split(", "):
            declared, number = text.split("=")
            *repeated, kind, called = declared.split()
            one = message.field.add(name=called, number=int(number))
            one.label = field.LABEL_REPEATED if repeated else field.LABEL_OPTIONAL
            if kind[0].isupper():
                one.type = field.TYPE_MESSAGE
                package = "google.protobuf" if kind == "Timestamp" else _PACKAGE
                one.type_name = f".{package}.{kind}"
            else:
                one.type = getattr(field, f"TYPE_{kind.upper()}")
    return file


def _family_class() -> Any:
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(_described())
    found = pool.FindMessageTypeByName(f"{_PACKAGE}.MetricFamily")
    return message_factory.GetMessageClass(found)


_FAMILY = _family_class()


def families(page: bytes) -> Iterator[Any]:
    """Each MetricFamily of the page."""
    at = 0
    while at < len(page):
        size, shift = 0, 0
        while True:
            byte = page[at]
            at += 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        assert at + size <= len(page)
        yield _FAMILY.FromString(page[at : at + size])
        at += size


def labels_of(metric: Any) -> dict[str, str]:
    return {pair.name: pair.value for pair in metric.label}


def native_buckets(histogram: Any) -> dict[int, float]:
    """The count of each native bucket, by index."""
    counts = iter(histogram.positive_count)
    found, index = {}, 0
    for span in histogram.positive_span:
        index += span.offset
        for _ in range(span.length):
            found[index] = next(counts)
            index += 1
    assert next(counts, None) is None
    return found
