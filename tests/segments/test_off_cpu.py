"""Off-CPU times, read from segments."""

import numpy as np
import pytest

from opscope.segments import layout, off_cpu, variance
from opscope.segments.dictionary import Dictionary
from opscope.segments.segment import Segment, read_header, read_segment
from opscope.segments.segment_file import SegmentError
from tests.segments.segment_writer import TICKS_PER_SECOND, Range, SegmentWriter

LABELS = (("model_id", "m"),)


def parsed(writer: SegmentWriter) -> Segment:
    raw = writer.to_bytes()

    def read(offset: int, size: int) -> bytes:
        return raw[offset : offset + size]

    return read_segment(read, read_header(read), Dictionary())


def written(main_table: int = 1) -> SegmentWriter:
    writer = SegmentWriter(window_ns=2_000_000, main_table=main_table)
    writer.add([Range("add", 1e-3, 4, 10.0, self_s=1e-3)])
    writer.add([Range("mul", 1e-3, 4, 10.0, self_s=1e-3, labels=LABELS)])
    writer.add([Range("step", 1.0, 2, self_s=0.5)])
    writer.variance("add", 3.0, 0.5, owed=(1.0, 0.25))
    writer.variance("mul", 3.0, 0.5, labels=LABELS)
    writer.variance("step", 0.0, 0.125)
    writer.variance(None, 6.0, 1.0)
    return writer


def test_they_belong_to_rows() -> None:
    writer = written()
    writer.off_cpu("add", 0.01, 0.02, 0.25, owed=0.125, count=3)
    writer.off_cpu("step", 0.25, 0.75, exact_s=0.5)
    writer.off_cpu(None, 0.0, 0.0, 0.75, owed=0.5)
    writer.off_cpu("unseen", 5.0, 5.0, 5.0)
    segment = parsed(writer)
    rows = segment.rows
    stated = variance.variances(
        segment.variances,
        rows.keys,
        rows.values[:, 0],
        rows.values[:, 1],
        np.ones(len(rows.keys)),
        TICKS_PER_SECOND,
    )
    found = off_cpu.of_rows(segment.off_cpu, rows.keys, stated, TICKS_PER_SECOND)
    ops = [segment.dictionary.ops[int(key) & layout.KEY_OP_MASK] for key in rows.keys]
    times = dict(zip(ops, (found.times / TICKS_PER_SECOND).tolist(), strict=True))
    assert times == {
        "add": pytest.approx([0.01, 0.02]),
        "mul": [0.0, 0.0],
        "step": pytest.approx([0.25, 0.75]),
    }
    self_s2 = dict(zip(ops, found.variances.rows[:, variance.SELF_S2].tolist(), strict=True))
    assert dict(zip(ops, found.counts.tolist(), strict=True)) == {"add": 3, "mul": 0, "step": 0}
    exact = dict(zip(ops, (found.exact / TICKS_PER_SECOND).tolist(), strict=True))
    assert exact == {"add": 0.0, "mul": 0.0, "step": pytest.approx(0.5)}
    # An outer range's variance is as it was.
    assert self_s2 == pytest.approx({"add": 0.25, "mul": 0.5, "step": 0.125})
    owed = dict(zip(ops, found.variances.owed[:, variance.SELF_S2].tolist(), strict=True))
    assert owed == pytest.approx({"add": 0.125, "mul": 0.0, "step": 0.0})
    phase = found.variances.phases[layout.PHASES.index("forward")]
    assert phase[variance.SELF_S2] == pytest.approx(0.75)
    assert phase[variance.PHASE_SELF_OWED] == pytest.approx(0.5)
    assert stated.phases[layout.PHASES.index("forward")][variance.SELF_S2] == pytest.approx(1.0)


def test_a_file_without_any_has_none() -> None:
    segment = parsed(written(main_table=0))
    assert not len(segment.off_cpu)
    assert not segment.is_mainly_main


@pytest.mark.parametrize(
    ("main_table", "other_s", "expected"),
    [(1, 0.0, True), (2, 0.0, False), (0, 0.0, False), (1, 0.01, True), (1, 0.1, False)],
)
def test_whether_operators_run_in_the_main_thread(
    main_table: int, other_s: float, expected: bool
) -> None:
    writer = SegmentWriter(window_ns=2_000_000, main_table=main_table)
    writer.add([Range("add", 1.0, self_s=1.0)])
    if other_s:
        writer.add([Range("add", other_s, self_s=other_s, table=1)])
    assert parsed(writer).is_mainly_main is expected


def test_impossible_times_are_refused() -> None:
    for values in ((-1.0, 0.0), (0.0, float("nan")), (float("inf"), 0.0)):
        writer = written()
        writer.off_cpu("add", *values)
        with pytest.raises(SegmentError, match="off-CPU times"):
            parsed(writer)


def test_a_key_has_one_entry() -> None:
    writer = written()
    writer.off_cpu("add", 1.0, 1.0)
    raw = bytearray(writer.to_bytes())
    item = writer._off_cpu[next(iter(writer._off_cpu))].tobytes()
    at = raw.index(item)
    raw[at + len(item) : at + 2 * len(item)] = item
    used = at - layout.CHUNK_HEADER_BYTES + 12
    raw[used : used + 4] = (2).to_bytes(4, "little")

    def read(offset: int, size: int) -> bytes:
        return bytes(raw[offset : offset + size])

    with pytest.raises(SegmentError, match="duplicate"):
        read_segment(read, read_header(read), Dictionary())
