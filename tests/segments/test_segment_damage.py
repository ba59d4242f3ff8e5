"""For any bytes in a file, the parser returns a segment or raises SegmentError."""

import random

from hypothesis import given
from hypothesis import strategies as st

from opscope.segments import layout
from opscope.segments.dictionary import Dictionary
from opscope.segments.segment import read_header, read_segment
from opscope.segments.segment_file import SegmentError
from tests.examples import examples
from tests.segments.segment_writer import Process, Range, SegmentWriter

LABELS = (("model_id", "a"),)


def valid() -> bytes:
    random.seed(1)
    process = Process(1, 1, bytes(16), 1, bytes(16))
    writer = SegmentWriter(process, created_unix_ns=1).add(
        Range(
            f"op{n % 20}",
            10 ** random.uniform(-7, 0),
            n,
            labels=LABELS if n % 2 else (),
            table=n % 3,
        )
        for n in range(1, 200)
    )
    writer.note("program", "x")
    writer.op_id("later", extra_cost_ps=1)
    writer.usage("key")
    writer.metric("opscope.memory.live", "cpu", 1, layout.METRIC_GAUGE)
    for n in range(1, 20):
        writer.variance(f"op{n}", 10.0**n, 1e-6, labels=LABELS if n % 2 else ())
        writer.off_cpu(f"op{n}", 1e-3, 2e-3, 1e-6, labels=LABELS if n % 2 else ())
    writer.variance(None, 5.0)
    return writer.to_bytes()


VALID = valid()
# Where every byte matters: headers, the dictionary, the first cells and lines of chunks.
STARTS = range(layout.HEADER_BYTES, len(VALID), layout.CHUNK_BYTES)
MEANINGFUL = st.one_of(
    st.integers(0, 260), st.sampled_from(STARTS).flatmap(lambda s: st.integers(s, s + 2000))
)


def survives(raw: bytes, dictionary: Dictionary | None = None) -> bool:
    def read(offset: int, size: int) -> bytes:
        assert offset >= 0
        assert 0 <= size <= layout.CHUNK_BYTES
        return raw[offset : offset + size]

    try:
        segment = read_segment(read, read_header(read), dictionary or Dictionary())
    except SegmentError as error:
        return error.reason not in SegmentError.REASONS
    assert len(segment.rows.keys) == len(segment.rows.values)
    return True


def test_the_undamaged_segment_is_read() -> None:
    assert survives(VALID)


@given(st.binary(max_size=20_000))
def test_random_bytes(raw: bytes) -> None:
    assert not survives(raw)


@given(st.binary(max_size=60_000), st.integers(0, 3))
def test_random_bytes_behind_a_good_header(raw: bytes, chunks: int) -> None:
    process = Process(1, 1, bytes(16), 1, bytes(16))
    header = SegmentWriter(process, chunk_count=chunks).to_bytes()[: layout.HEADER_BYTES]
    survives(header + raw)


@examples(60)
@given(st.lists(st.tuples(MEANINGFUL, st.integers(0, 255)), min_size=1, max_size=8))
def test_changed_bytes(changes: list[tuple[int, int]]) -> None:
    raw = bytearray(VALID)
    for offset, value in changes:
        raw[offset] = value
    survives(bytes(raw))
    known = Dictionary()
    survives(VALID, known)
    survives(bytes(raw), known)


@examples(60)
@given(MEANINGFUL, st.integers(0, 2**64 - 1))
def test_changed_words(offset: int, value: int) -> None:
    raw = bytearray(VALID)
    raw[offset // 8 * 8 : offset // 8 * 8 + 8] = value.to_bytes(8, "little")
    survives(bytes(raw))


def test_lines_of_a_table_far_from_the_cells() -> None:
    raw = bytearray(SegmentWriter().add([Range("a", 1.0)]).to_bytes())
    for start in range(layout.HEADER_BYTES, len(raw), layout.CHUNK_BYTES):
        if raw[start] == layout.CELLS:
            raw[start + 4 : start + 8] = (1 << 31).to_bytes(4, "little")
    assert not survives(bytes(raw))


@given(st.integers(0, len(VALID) - 1))
def test_cut_anywhere(size: int) -> None:
    survives(VALID[:size])
