"""A segment in which nothing was counted since the last read is recognised, and only such a one."""

from collections.abc import Callable

import numpy as np
import pytest

from opscope.segments import layout
from opscope.segments.dictionary import Dictionary
from opscope.segments.mark import Mark
from opscope.segments.segment import Segment, read_changed, read_header
from tests.segments.segment_writer import Range, SegmentWriter

ADD = Range("numpy::add", 1e-3, 5, self_s=1e-3)
QUEUE = "opscope_model_queue", "model"


class _File:
    """Reads what the writer has, as an agent does in each pass."""

    def __init__(self, writer: SegmentWriter) -> None:
        self.writer = writer
        self.dictionary = Dictionary()
        self.mark: Mark | None = None

    def read(self, raw: bytes | None = None) -> Segment | None:
        raw = self.writer.to_bytes() if raw is None else raw

        def read(offset: int, size: int) -> bytes:
            return raw[offset : offset + size]

        segment = read_changed(read, read_header(read), self.dictionary, self.mark)
        if segment is not None:
            self.mark = segment.mark
        return segment


def _settled() -> _File:
    writer = SegmentWriter().add([ADD, Range("core::mm", 1.0, table=1), Range("core::mm", 2.0)])
    writer.metric(*QUEUE, 7, layout.METRIC_GAUGE)
    writer.variance("numpy::add", 1.0)
    file = _File(writer)
    assert file.read() is not None
    assert file.read() is not None, "only a second read shows that the lines are complete"
    assert file.read() is None
    return file


def test_nothing_counted_is_recognised_from_the_third_read_on() -> None:
    file = _settled()
    assert file.read() is None


def _count(writer: SegmentWriter) -> None:
    writer.add([ADD])


def _count_without_duration(writer: SegmentWriter) -> None:
    writer.add([Range("core::mm", 2.0, failed=True)])


def _new_operator(writer: SegmentWriter) -> None:
    writer.add([Range("core::new", 1.0)])


def _lower_gauge(writer: SegmentWriter) -> None:
    writer.metric(*QUEUE, 6, layout.METRIC_GAUGE)


def _note(writer: SegmentWriter) -> None:
    writer.note("service.name", "training")


def _usage(writer: SegmentWriter) -> None:
    writer.usage("torch.jit")


def _variance(writer: SegmentWriter) -> None:
    writer.variance("numpy::add", 1.0000001)


@pytest.mark.parametrize(
    "change",
    [
        *(_count, _count_without_duration, _new_operator, _lower_gauge),
        *(_note, _usage, _variance),
    ],
)
def test_any_change_is_noticed(change: Callable[[SegmentWriter], None]) -> None:
    file = _settled()
    change(file.writer)
    assert file.read() is not None
    file.read()
    assert file.read() is None


def _with_exemplar(raw: bytes, count: int) -> bytes:
    """The segment with a chunk of so many exemplars at its end."""
    header = np.frombuffer(raw[: layout.HEADER_BYTES][: layout.HEADER.itemsize], layout.HEADER)
    chunks = int(header["chunk_count"][0])
    changed = header.copy()
    changed["chunk_count"] = chunks + 1
    chunk = np.array([layout.EXEMPLARS, 0, 0, 1], np.uint32).tobytes()
    items = np.full(1, count, np.uint8).tobytes() * layout.EXEMPLAR.itemsize
    head = changed.tobytes().ljust(layout.HEADER_BYTES, b"\0")
    body = chunk.ljust(layout.CHUNK_HEADER_BYTES, b"\0") + items.ljust(layout.ROOM_BYTES, b"\0")
    return head + raw[layout.HEADER_BYTES :] + body


def test_a_new_exemplar_in_the_place_of_another_is_noticed() -> None:
    file = _settled()
    raw = file.writer.to_bytes()
    for content in (0, 1):
        assert file.read(_with_exemplar(raw, content)) is not None
        assert file.read(_with_exemplar(raw, content)) is None


def test_calls_that_reach_their_histogram_later_than_their_cell_are_not_missed() -> None:
    """A process can be stopped between the two."""
    file = _settled()
    file.writer.add([ADD])
    raw = bytearray(file.writer.to_bytes())
    behind = SegmentWriter(file.writer.process).add(
        [ADD, Range("core::mm", 1.0, table=1), Range("core::mm", 2.0)]
    )
    lines = next(line for line in behind._lines[0])
    at = raw.index(file.writer._lines[0][0].tobytes())
    raw[at : at + 64] = lines.tobytes()
    for _ in range(4):
        segment = file.read(bytes(raw))
        assert segment is not None
        assert segment.rows.bucket_weights.sum() < segment.rows.values[:, 1].sum()
    segment = file.read()
    assert segment is not None
    assert segment.rows.bucket_weights.sum() == segment.rows.values[:, 1].sum()
    assert file.read() is None


def test_a_damaged_read_between_changes_nothing() -> None:
    file = _settled()
    file.writer.note("service.name", "training")
    raw = file.writer.to_bytes()
    with pytest.raises(Exception, match="truncated"):
        file.read(raw[: -layout.ROOM_BYTES])
    segment = file.read()
    assert segment is not None
    assert segment.dictionary.notes["service.name"] == "training"
