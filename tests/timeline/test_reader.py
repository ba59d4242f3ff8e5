"""Reading traces: any bytes give a Trace or TraceError."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope._native import ffi
from opscope.timeline import layout
from opscope.timeline.reader import Block, Record, Trace, TraceError, read_header
from tests.examples import examples
from tests.timeline.trace_writer import TraceWriter, trace_of


def valid() -> bytes:
    writer = TraceWriter(lost_count=3)
    one = writer.thread(1, lost=2)
    one.range("a", 10, 50, sequence_nr=5, shapes=[(2, 3), None, ()])
    one.labels(model_id="m", request="")
    one.range("b", 20, 30, phase=2, flags=layout.FAILED)
    one.number(layout.FORK, 31, 32, 7)
    one.number(layout.ALLOCATION, 40, 40, 4096)
    one.labels()
    one.range("a", 60, 0)
    writer.thread(2).number(layout.TASK, 33, 90, 7).range(
        "c", 34, 80, sequence_nr=5, forward_thread_id=1, flags=layout.BACKWARD
    )
    return writer.to_bytes()


VALID = valid()
BLOCKS = (layout.HEADER_BYTES, layout.HEADER_BYTES + layout.BLOCK_UNIT)
MEANINGFUL = st.one_of(
    st.integers(0, 190), st.sampled_from(BLOCKS).flatmap(lambda s: st.integers(s, s + 700))
)


def records(trace: Trace, index: int) -> list[Record]:
    return [one for one in trace.records(trace.threads[index]) if isinstance(one, Record)]


def survives(raw: bytes) -> bool:
    def read(offset: int, size: int) -> bytes:
        assert offset >= 0
        assert 0 <= size <= layout.BLOCK_LIMIT
        return raw[offset : offset + size]

    try:
        trace = Trace(read)
        for thread in trace.threads:
            for one in trace.records(thread):
                assert isinstance(one, Block) or trace.name(one.op).isprintable()
    except TraceError as error:
        return not str(error)
    return True


def test_a_trace_is_read_as_it_was_written() -> None:
    trace = trace_of(VALID)
    assert trace.header.pid == 42
    assert trace.lost_count == 5
    assert [(t.thread_id, t.system_id, t.name, t.lost_count) for t in trace.threads] == [
        (1, 1001, "thread", 2),
        (2, 1002, "thread", 0),
    ]
    a, b, fork, allocation, again = records(trace, 0)
    labels = (("model_id", "m"), ("request", ""))
    assert trace.name(a.op) == "a"
    assert (a.start, a.end, a.number, a.shapes, a.labels) == (10, 50, 5, ((2, 3), None, ()), ())
    assert (b.start, b.number, b.phase, b.flags) == (20, -1, 2, layout.FAILED)
    assert (b.labels, b.shapes) == (labels, None)
    assert (fork.kind, fork.number, fork.labels) == (layout.FORK, 7, labels)
    assert (allocation.kind, allocation.number) == (layout.ALLOCATION, 4096)
    assert (again.start, again.end, again.labels) == (60, 0, ())
    task, c = records(trace, 1)
    assert (task.kind, task.number) == (layout.TASK, 7)
    assert (c.number, c.forward_thread_id, trace.name(c.op)) == (5, 1, "c")


def test_a_reserved_but_unused_unit_is_skipped() -> None:
    raw = bytearray(VALID)
    raw[layout.HEADER_BYTES : layout.HEADER_BYTES + 8] = bytes(8)
    assert [thread.thread_id for thread in trace_of(bytes(raw)).threads] == [2]


def test_an_operator_without_a_name_is_called_by_its_number() -> None:
    assert trace_of(VALID).name(12345) == "operator 12345"


def test_texts_of_strangers_cannot_draw_on_a_terminal() -> None:
    trace = TraceWriter()
    trace.thread().range("a\x1b[31m\n", 1, 2)
    assert [name.name for name in trace.trace().names.values()] == ["a?[31m?"]


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("magic", b"OPSCOPE\0", "not a trace"),
        ("version", 2, "version 2, not 1"),
        ("state", 0, "damaged: state"),
        ("record_bytes", 32, "damaged: record_bytes"),
        ("clock_source", 9, "damaged: clock_source"),
        ("ticks_per_second", 0, "damaged: ticks_per_second"),
        ("limit_bytes", 1 << 40, "damaged: limit_bytes"),
    ],
)
def test_a_header_that_cannot_be_is_refused_with_the_reason(
    field: str, value: object, text: str
) -> None:
    with pytest.raises(TraceError, match=text):
        TraceWriter(**{field: value}).trace()


def test_a_shape_that_cannot_be_is_refused() -> None:
    writer = TraceWriter()
    writer.thread().range("a", 1, 2, shapes=[(1,) * 17])
    with pytest.raises(TraceError, match="damaged: a shape of rank 17"):
        records(writer.trace(), 0)


def test_the_undamaged_trace_is_read() -> None:
    assert survives(VALID)


@given(st.binary(max_size=20_000))
def test_random_bytes(raw: bytes) -> None:
    assert not survives(raw)


@given(st.binary(max_size=60_000))
def test_random_bytes_behind_a_good_header(raw: bytes) -> None:
    header = TraceWriter(claimed_bytes=1 << 30).to_bytes()
    survives(header + raw)


@examples(60)
@given(st.lists(st.tuples(MEANINGFUL, st.integers(0, 255)), min_size=1, max_size=8))
def test_changed_bytes(changes: list[tuple[int, int]]) -> None:
    raw = bytearray(VALID)
    for offset, value in changes:
        raw[offset] = value
    survives(bytes(raw))


@examples(60)
@given(MEANINGFUL, st.integers(0, 2**64 - 1))
def test_changed_words(offset: int, value: int) -> None:
    raw = bytearray(VALID)
    raw[offset // 8 * 8 : offset // 8 * 8 + 8] = value.to_bytes(8, "little")
    survives(bytes(raw))


@examples(60)
@given(MEANINGFUL)
def test_cut_anywhere(size: int) -> None:
    survives(VALID[:size])


class OutOfOrder:
    """A trace being written, read by a processor that loads the words of one read in any order.

    A read that covers the word `publishing` sees it as it becomes, but what it publishes as it was
    before: zeros. What is read later is there.
    """

    def __init__(self, raw: bytes, publishing: int, published: range) -> None:
        self._raw = raw
        self._publishing = publishing
        self._before = bytearray(raw)
        self._before[published.start : published.stop] = bytes(len(published))
        self.is_published = False

    def __call__(self, offset: int, size: int) -> bytes:
        seen = self._raw if self.is_published else bytes(self._before)
        self.is_published |= self._publishing in range(offset, offset + size)
        return seen[offset : offset + size]


def offset_of(field: str) -> int:
    offset: int = ffi.offsetof("opscope_trace_header", field)
    return offset


def test_a_block_whose_size_is_seen_before_the_rest_of_it() -> None:
    fields = range(BLOCKS[0] + 8, BLOCKS[0] + layout.BLOCK.size)
    read = OutOfOrder(VALID, BLOCKS[0], fields)
    trace = Trace(read)
    assert read.is_published
    assert [(t.thread_id, t.system_id, t.name) for t in trace.threads] == [
        (1, 1001, "thread"),
        (2, 1002, "thread"),
    ]


@pytest.mark.parametrize(
    ("publishing", "published"),
    [
        (0, range(16, layout.RECORD.size + 6 * layout.WORD_BYTES)),  # start: all but its end
        (8, range(22, 23)),  # end: whether it failed
    ],
    ids=["start", "end"],
)
def test_a_record_whose_time_is_seen_before_what_it_publishes(
    publishing: int, published: range
) -> None:
    writer = TraceWriter()
    writer.thread().range("a", 10, 50, sequence_nr=5, shapes=[(2, 3)], flags=layout.FAILED)
    record = BLOCKS[0] + layout.BLOCK.size + layout.RECORD.size + layout.WORD_BYTES  # after a name
    within = range(record + published.start, record + published.stop)
    read = OutOfOrder(writer.to_bytes(), record + publishing, within)
    trace = Trace(read)
    read.is_published = False
    assert records(trace, 0) == records(writer.trace(), 0)


def test_a_header_that_is_seen_to_be_closed_before_its_end_is_seen() -> None:
    ends = {"end_anchor_ticks": 90, "end_anchor_unix_ns": 10**18 + 89}
    raw = TraceWriter(**ends).to_bytes()
    ending = range(offset_of("end_anchor_ticks"), offset_of("duration_ns"))
    header = read_header(OutOfOrder(raw, offset_of("state"), ending))
    assert (header.end_anchor_ticks, header.end_anchor_unix_ns) == tuple(ends.values())
    live = TraceWriter(state=layout.LIVE, end_anchor_ticks=90).trace().header
    assert live.end_anchor_ticks == 0
